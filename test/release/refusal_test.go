//go:build long

package release

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

// request is a release that somebody asks for.
type request struct {
	repo, version, out, key string
	env                     []string
}

// TestReleaseRefusesBeforeItBuilds: an error names the fault, before anything is built.
// Nothing is left behind.
func TestReleaseRefusesBeforeItBuilds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, r *request)
		want  string
	}{
		"a changed file": {func(t *testing.T, r *request) { write(t, filepath.Join(r.repo, "README.md"), nil) }, "README.md"},
		"a new file": {func(t *testing.T, r *request) {
			write(t, filepath.Join(r.repo, "new.go"), nil)
			r.env = otherGit(t, r.repo)
		}, "new.go"},
		"a tag of another commit": {func(t *testing.T, r *request) {
			run(t, r.repo, nil, "git", "tag", "v"+r.version, "HEAD~1")
		}, "another commit"},
		"a version with v":         {version("v0.2.0"), "such as"},
		"a short version":          {version("0.2"), "such as"},
		"a command":                {version("; rm"), "such as"},
		"a version with a build":   {version("0.2.0+1"), "such as"},
		"no version":               {version(""), "such as"},
		"a candidate":              {version("0.2.0-rc.1"), "Chart.yaml"},
		"another version":          {version("9.9.9"), "Chart.yaml"},
		"a missing key":            {func(_ *testing.T, r *request) { r.key = "missing" }, "missing"},
		"a key that others read":   {func(t *testing.T, r *request) { chmod(t, r.key, 0o644) }, "chmod 600"},
		"a key that is none":       {func(t *testing.T, r *request) { write(t, r.key, []byte("\n")) }, "key"},
		"a key for another method": {ed25519Key, "ECDSA"},
		"a key with a password": {func(t *testing.T, r *request) {
			encryptedKey(t, r)
			r.env = []string{"COSIGN_PASSWORD=wrong"}
		}, "COSIGN_PASSWORD"},
		"a folder with files": {func(t *testing.T, r *request) { write(t, filepath.Join(mkdir(t, r.out), "a"), nil) }, "empty folder"},
		"a file":              {func(t *testing.T, r *request) { write(t, r.out, nil) }, "empty folder"},
		"a folder in a file": {func(t *testing.T, r *request) {
			write(t, r.out, nil)
			r.out = filepath.Join(r.out, "dist")
		}, "not a directory"},
		"a folder that cannot be made": {func(_ *testing.T, r *request) { r.out = "/proc/dist" }, "/proc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &request{out: filepath.Join(t.TempDir(), "dist"), key: newKey(t)}
			r.repo, r.version = clone(t)
			parent := filepath.Dir(r.out)
			c.spoil(t, r)
			before, dirty := names(t, parent), status(t, r.repo)
			temporary := t.TempDir()
			out, err := try("", append(r.env, "TMPDIR="+temporary), tool, arguments(r.repo, r.version, r.out, r.key)...)
			if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "building") {
				t.Errorf("%v: want %q in\n%s", err, c.want, out)
			}
			if after := names(t, parent); !slices.Equal(after, before) {
				t.Errorf("beside the release, %q became %q", before, after)
			}
			if after := status(t, r.repo); after != dirty {
				t.Errorf("the repository has changed: %s", after)
			}
			if left := names(t, temporary); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func version(text string) func(*testing.T, *request) {
	return func(_ *testing.T, r *request) { r.version = text }
}

func ed25519Key(t *testing.T, r *request) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r.key = writeKey(t, key)
}

// encryptedKey replaces the key by one that no password opens, as cosign writes them.
func encryptedKey(t *testing.T, r *request) {
	text := `{"kdf":{"name":"scrypt","params":{"N":32768,"r":8,"p":1},"salt":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) +
		`"},"cipher":{"name":"nacl/secretbox","nonce":"` + base64.StdEncoding.EncodeToString(make([]byte, 24)) +
		`"},"ciphertext":"` + base64.StdEncoding.EncodeToString(make([]byte, 64)) + `"}`
	write(t, r.key, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: []byte(text)}))
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func status(t *testing.T, repo string) string {
	t.Helper()
	return run(t, repo, nil, "git", "status", "--porcelain")
}

// TestReleaseEndsInTheMiddle: a signal leaves no release and no changed repository,
// also in the default folder. After SIGTERM, nothing at all is left.
func TestReleaseEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			repo, version := clone(t)
			temporary := t.TempDir()
			cmd := exec.Command(tool, arguments(repo, version, "dist", newKey(t))...)
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary, "GOCACHE="+t.TempDir()) // so that the build takes long
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			p := proctest.Start(t, cmd, nil)
			proctest.Eventually(t, "the build", func() bool { return len(p.Lines("building")) > 0 })
			whom := p.PID()
			if signal == syscall.SIGKILL {
				whom = -whom // also the processes that it has started
			}
			if err := syscall.Kill(whom, signal); err != nil {
				t.Fatal(err)
			}
			if p.ExitCode() == 0 {
				t.Errorf("it succeeded: %s", p.Log())
			}
			if left := names(t, temporary); signal == syscall.SIGTERM && len(left) > 0 {
				t.Errorf("left %q", left)
			}
			if dirty := status(t, repo); dirty != "" {
				t.Errorf("the repository has changed: %s", dirty)
			}
			if _, err := os.Stat(filepath.Join(repo, "dist")); err == nil {
				t.Error("a release is there")
			}
		})
	}
}

// TestMakePassesTextsOn: a setting of make release is never a command.
func TestMakePassesTextsOn(t *testing.T) {
	t.Parallel()
	repo, _ := clone(t)
	for _, name := range []string{"VERSION", "DIST", "KEY"} {
		out, err := try(repo, nil, "make", "release", "VERSION=none", name+"=0.2'; touch "+name+"; '")
		if _, made := os.Stat(filepath.Join(repo, name)); err == nil || made == nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
