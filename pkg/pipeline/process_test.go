package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
)

// TestAChangeCountsThatComesWhileAnotherEndsWhatRuns: it is not lost in what
// comes to its end, though that could take it up.
func TestAChangeCountsThatComesWhileAnotherEndsWhatRuns(t *testing.T) {
	annotations := filepath.Join(t.TempDir(), "annotations")
	write := func(address string, more ...string) {
		text := fmt.Sprintf("conjur.org/container-mode=\"sidecar\"\nconjur.org/secrets-destination=\"file\"\nconjur.org/authn-identity=\"host/x\"\nconjur.org/server-address=%q\nconjur.org/conjur-secrets.db=\"- app/db\"\n", address) + strings.Join(more, "")
		if err := os.WriteFile(annotations, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"CONJUR_APPLIANCE_URL": "https://conjur.invalid", "CONJUR_ACCOUNT": "a", "CONJUR_AUTHN_API_KEY": "key"}
	s, stop, err := New(Options{Parts: Parts{Workers: 1}, Sources: config.Sources{
		Annotations: config.File{Name: annotations}, SecretsDir: t.TempDir(), TemplatesDir: t.TempDir(), StatusDir: t.TempDir(),
		Getenv: func(name string) string { return env[name] },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	write("127.0.0.1:8001")
	cfg, err := s.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.settings = newSettings(cfg)
	// What runs takes its time to end.
	ended := false
	current := s.begin(func() { ended = true })
	if _, err := s.newSupervisor(current); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.1:8002", "127.0.0.1:8001"} {
		write(address)
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	if !ended || !s.replaced(current) {
		t.Fatal("another address of the probes does not end what runs")
	}
	if next := s.begin(func() {}).config(); next.Server.Address != "127.0.0.1:8001" {
		t.Errorf("what runs next serves probes at %s, want the one of the second change", next.Server.Address)
	}
	write("127.0.0.1:8001", "conjur.org/conjur-secrets.web=\"- app/web\"\nconjur.org/secret-file-format.web=\"none\"\n")
	if cfg, err := s.load(nil); cfg == nil || err == nil {
		t.Errorf("a target whose settings are not valid: %v, %v", cfg != nil, err)
	}
}
