package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/secretsync/syncer/config"
)

// TestAChangeCountsThatComesWhileAnotherEndsWhatRuns: it is not lost in what
// comes to its end, though that could take it up.
func TestAChangeCountsThatComesWhileAnotherEndsWhatRuns(t *testing.T) {
	annotations := filepath.Join(t.TempDir(), "annotations")
	write := func(login string) {
		text := fmt.Sprintf("conjur.org/container-mode=\"sidecar\"\nconjur.org/secrets-destination=\"file\"\nconjur.org/authn-identity=%q\nconjur.org/conjur-secrets.db=\"- app/db\"\n", login)
		if err := os.WriteFile(annotations, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"CONJUR_APPLIANCE_URL": "https://conjur.invalid", "CONJUR_ACCOUNT": "a", "CONJUR_AUTHN_API_KEY": "key"}
	s, stop, err := New(Options{Workers: 1, Sources: config.Sources{
		Annotations: annotations, SecretsDir: t.TempDir(), TemplatesDir: t.TempDir(), StatusDir: t.TempDir(),
		Getenv: func(name string) string { return env[name] },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	write("host/right")
	if s.cfg, err = s.load(); err != nil {
		t.Fatal(err)
	}
	// What runs takes its time to end.
	ended := false
	current := s.begin(func() { ended = true })
	if _, err := s.newHost(current); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"host/wrong", "host/right"} {
		write(login)
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	if !ended || !s.replaced(current) {
		t.Fatal("another identity does not end what runs")
	}
	if next := s.begin(func() {}); next.Conjur.Login != "host/right" {
		t.Errorf("what runs next logs in as %s, want host/right", next.Conjur.Login)
	}
}
