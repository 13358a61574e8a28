package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

const conjurdPolicy = `
- !host app
- !policy
  id: db
  body:
  - !variable password
- !permit { role: !host app, privileges: [read, execute], resource: !variable db/password }
`

// conjurdURL is what conjurd prints about itself.
var conjurdURL = regexp.MustCompile(`(?m)^CONJUR_APPLIANCE_URL=(https://127\.0\.0\.1:[1-9]\d*)$`)

// conjurdFolder is an empty folder, with a policy and values beside it.
func conjurdFolder(t *testing.T) (w *world, flags []string) {
	t.Helper()
	w = newWorld(t) // of which only the folders and annotations are used
	w.Group("db", "json", "db/password")
	w.write(w.Path("policy.yml"), conjurdPolicy)
	w.write(w.Path("values.yml"), "db/password: "+w.Value["db/password"]+"\n")
	return w, []string{"--dir", w.Path("conjurd"), "--account", "dev", "--policy", w.Path("policy.yml"), "--values", w.Path("values.yml")}
}

// conjurd starts a server and points the world to it.
func (w *world) conjurd(flags ...string) *proctest.Process {
	w.Helper()
	p := spawn(w, []string{"TMPDIR=" + w.Path("tmp")}, append([]string{"conjurd", "--addr", "127.0.0.1:0"}, flags...)...)
	w.Cleanup(func() { w.Silent(p) })
	eventually(w, "the server's address and account", func() bool { return conjurdURL.MatchString(p.Log()) && len(p.Lines("CONJUR_ACCOUNT=")) > 0 })
	w.Env["CONJUR_APPLIANCE_URL"] = conjurdURL.FindStringSubmatch(p.Log())[1]
	return p
}

// TestConjurdServesAProcess from a folder of its own, which goes at the end.
func TestConjurdServesAProcess(t *testing.T) {
	t.Parallel()
	w, _ := conjurdFolder(t)
	server := w.conjurd("--account", "dev", "--policy", w.Path("policy.yml"), "--values", w.Path("values.yml"))
	folders, err := filepath.Glob(w.Path("tmp", "conjurd-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders: %v, %v", folders, err)
	}
	w.logIn(folders[0])
	p := w.start()
	w.await("db.json", w.Value["db/password"])
	p.Stop()
	server.Stop()
	nothingLeft(t, w.Path("tmp"))
}

// TestConjurdKeepsItsData serves what conjurd init prepared, twice.
func TestConjurdKeepsItsData(t *testing.T) {
	t.Parallel()
	w, flags := conjurdFolder(t)
	w.oneShot("init", 0)
	spawn(t, nil, append([]string{"conjurd", "init"}, flags...)...).Exit(0)
	for range 2 {
		server := w.conjurd("--dir", w.Path("conjurd"))
		if len(server.Lines("CONJUR_ACCOUNT=dev")) != 1 {
			t.Errorf("the server does not take the account of its folder: %s", server.Log())
		}
		w.logIn(w.Path("conjurd"))
		if err := os.RemoveAll(w.Path("secrets", "db.json")); err != nil {
			t.Fatal(err)
		}
		w.start().Exit(0)
		if !strings.Contains(w.file("db.json"), w.Value["db/password"]) {
			t.Error("the value is not what conjurd init has set")
		}
		server.Stop()
	}
}

// logIn takes the API key and the CA from a conjurd's folder.
func (w *world) logIn(folder string) {
	w.Helper()
	delete(w.Env, "CONJUR_SSL_CERTIFICATE")
	w.Env["CONJUR_CERT_FILE"] = filepath.Join(folder, "ca.pem")
	keys, err := os.ReadFile(filepath.Join(folder, "api-keys.json"))
	if err != nil {
		w.Fatal(err)
	}
	found := regexp.MustCompile(`"dev:host:app": "(\w+)"`).FindSubmatch(keys)
	if found == nil {
		w.Fatal("api-keys.json does not have the host's key")
	}
	w.Env["CONJUR_AUTHN_API_KEY"] = string(found[1])
}

func TestConjurdWithoutFolderLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		w := newWorld(t)
		server := w.conjurd()
		server.Signal(s)
		server.Exit(0)
		nothingLeft(t, w.Path("tmp"))
	}
}

// TestConjurdFilesAreTheOwners: all but the CA's certificate, which is for all.
func TestConjurdFilesAreTheOwners(t *testing.T) {
	t.Parallel()
	w, flags := conjurdFolder(t)
	p := spawn(t, nil, append([]string{"conjurd", "init"}, flags...)...)
	p.Exit(0)
	w.Silent(p)
	if keys := w.Path("conjurd", "api-keys.json"); len(p.Lines("# ", keys)) != 1 {
		t.Errorf("does not tell that keys are in %s", keys)
	}
	want := map[string]fs.FileMode{
		".": fs.ModeDir | 0o700, "data.db": 0o600, "data.db.lock": 0o600, "data.key": 0o600, "ca.key": 0o600, "ca.pem": 0o644, "admin.key": 0o600, "api-keys.json": 0o600, "address.json": 0o600,
	}
	err := filepath.WalkDir(w.Path("conjurd"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(w.Path("conjurd"), path)
		if mode, ok := want[name]; !ok || info.Mode() != mode {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode(), mode)
		}
		delete(want, name)
		content, _ := os.ReadFile(path)
		if w.Leak(string(content)) != "" {
			t.Errorf("%s holds a value in clear", name)
		}
		return nil
	})
	if err != nil || len(want) > 0 {
		t.Errorf("missing: %v, %v", want, err)
	}
	for _, file := range []string{"data.key", "ca.key", "admin.key"} {
		key, _ := os.ReadFile(w.Path("conjurd", file))
		if strings.Contains(p.Log(), strings.TrimSpace(string(key))) {
			t.Errorf("the output holds %s", file)
		}
	}
}

func TestConjurdRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	w, flags := conjurdFolder(t)
	w.write(w.Path("broken.yml"), "- !variable {")
	for name, args := range map[string][]string{
		"a folder that was not prepared": {"conjurd", "--dir", w.Path("nowhere")},
		"a policy that is none":          {"conjurd", "--policy", w.Path("broken.yml")},
		"init without a folder":          {"conjurd", "init"},
		"an address that is none":        {"conjurd", "--addr", "nowhere"},
		"a missing certificate":          {"conjurd", "--tls-cert", w.Path("cert.pem"), "--tls-key", w.Path("key.pem")},
	} {
		p := spawn(t, []string{"TMPDIR=" + w.Path("tmp")}, args...)
		p.Exit(1)
		if !strings.Contains(p.Log(), "syncer: ") {
			t.Errorf("%s: no reason told: %s", name, p.Log())
		}
		nothingLeft(t, w.Path("tmp"))
	}
	spawn(t, nil, append([]string{"conjurd", "init"}, flags...)...).Exit(0)
	server := w.conjurd("--dir", w.Path("conjurd"), "--account", "dev")
	second := spawn(t, nil, "conjurd", "--addr", "127.0.0.1:0", "--dir", w.Path("conjurd"), "--account", "dev")
	second.Exit(1)
	if !strings.Contains(second.Log(), "use") {
		t.Errorf("a folder in use: %s", second.Log())
	}
	server.Stop()
}
