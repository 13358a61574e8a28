package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBackupOfARunningServerCanBeServed takes a copy while the server serves,
// and serves the copy with the same data key. Copy and audit log are the owner's.
func TestBackupOfARunningServerCanBeServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yml")
	if err := os.WriteFile(policy, []byte("- !variable a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home, copied, audit := filepath.Join(dir, "home"), filepath.Join(dir, "copy.db"), filepath.Join(dir, "audit")
	init := spawn(t, nil, "conjurd", "init", "--dir", home, "--policy", policy)
	init.Exit(0)
	serve := spawn(t, nil, "conjurd", "--dir", home, "--addr", "127.0.0.1:0", "--backup", copied, "--audit", audit)
	eventually(t, "the server's address", func() bool { return len(serve.Lines("CONJUR_APPLIANCE_URL=")) == 1 })
	serve.Signal(syscall.SIGUSR1)
	eventually(t, "the backup", func() bool { return len(serve.Lines("backup written")) == 1 })
	serve.Stop()

	for _, name := range []string{copied, audit} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
	if err := os.Rename(copied, filepath.Join(home, "data.db")); err != nil {
		t.Fatal(err)
	}
	again := spawn(t, nil, "conjurd", "--dir", home, "--addr", "127.0.0.1:0")
	eventually(t, "the copy's server", func() bool { return len(again.Lines("CONJUR_APPLIANCE_URL=")) == 1 })
	again.Stop()
}

// TestABackupWithoutAFolderIsRefused at the start, not at the first signal.
func TestABackupWithoutAFolderIsRefused(t *testing.T) {
	t.Parallel()
	p := spawn(t, nil, "conjurd", "--addr", "127.0.0.1:0", "--backup", filepath.Join(t.TempDir(), "missing", "copy.db"))
	p.Exit(1)
	if len(p.Lines("--backup: ", "name a file in a folder that exists")) != 1 {
		t.Errorf("it says %s", p.Log())
	}
}

// TestConjurdSaysWhyALoginIsRefused, and never the credential.
func TestConjurdSaysWhyALoginIsRefused(t *testing.T) {
	t.Parallel()
	p := spawn(t, nil, "conjurd", "--addr", "127.0.0.1:0", "--plain-http")
	eventually(t, "the server's address", func() bool { return len(p.Lines("CONJUR_APPLIANCE_URL=")) == 1 })
	url := strings.TrimPrefix(strings.TrimSpace(p.Lines("CONJUR_APPLIANCE_URL=")[0]), "CONJUR_APPLIANCE_URL=")
	const wrong = "not-the-credential"
	post := func(path, body string) {
		t.Helper()
		answer, err := http.Post(url+path, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	post("/authn/default/admin/authenticate", wrong)
	post("/authn/default/host%2Fapp/authenticate", wrong)
	post("/authn-jwt/ci/default/authenticate", "jwt="+wrong)
	for _, want := range []string{
		`refused the log-in of "admin" from 127.0.0.1: the API key is wrong`,
		`refused the log-in of "host/app" from 127.0.0.1: no such user or host exists in the account "default"`,
		`refused a log-in from 127.0.0.1: CONJ00005E Webservice 'authn-jwt/ci' not found`,
	} {
		eventually(t, want, func() bool { return len(p.Lines(want)) == 1 })
	}
	if strings.Contains(p.Log(), wrong) {
		t.Error("it shows a credential")
	}
	p.Stop()
}
