package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/test/proctest"
)

// scriptBefore and scriptAfter are around the certificate in the script that
// these tests feed; the genuine ones are known by their hashes alone.
const scriptBefore, scriptAfter = "#!/bin/sh\nset -e\nput() {\n  cat <<EOF\n", "\nEOF\n}\nput\n"

func testScript() inject.Script {
	digest := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	return inject.Script{Prefix: digest(scriptBefore), Suffix: digest(scriptAfter)}
}

// podCertificate is a certificate as Conjur issues it, and what says that it is
// awaited.
func podCertificate(t *testing.T) (text, awaited string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/namespace/shop/podname/web-0"}}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), hex.EncodeToString(sum[:])
}

// shell is the binary called sh, as the kubelet starts it in a container.
type shell struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	dir string
}

func startShell(t *testing.T, awaited string, out *os.File, args ...string) *shell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{dir: t.TempDir()}
	link := filepath.Join(t.TempDir(), "sh")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if awaited != "" {
		if err := os.WriteFile(s.path()+".awaited", []byte(awaited), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd = exec.Command(link, args...)
	s.cmd.Args[0] = "sh"
	s.cmd.Env = []string{asCommand + "=1", "CONJUR_CLIENT_CERT_PATH=" + s.path()}
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.in.Close(); _ = s.cmd.Process.Kill() })
	return s
}

func (s *shell) path() string { return filepath.Join(s.dir, "client.pem") }

// wantStatus waits for the end. The input need not have ended.
func (s *shell) wantStatus(t *testing.T, want int) {
	t.Helper()
	stuck := time.AfterFunc(proctest.Patience, func() { _ = s.cmd.Process.Kill() })
	defer stuck.Stop()
	state, err := s.cmd.Process.Wait()
	if err != nil || state.ExitCode() != want {
		t.Errorf("it ended as %v (%v), want the status %d", state, err, want)
	}
}

func TestShellTakesUpACertificate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ end, deaf bool }{
		"as documented":          {end: true},
		"late, and nobody there": {deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, awaited := podCertificate(t)
			s := startShell(t, awaited, received(t, c.deaf))
			io.WriteString(s.in, scriptBefore+text+scriptAfter)
			if c.end {
				_ = s.in.Close()
			}
			s.wantStatus(t, 0)
			if got, err := os.ReadFile(s.path()); err != nil || string(got) != text {
				t.Errorf("the file holds %q, %v", got, err)
			}
		})
	}
}

// received is where a process writes to; a deaf one has nobody at the other end.
func received(t *testing.T, deaf bool) *os.File {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if deaf {
		_ = in.Close()
	} else {
		t.Cleanup(func() { _ = in.Close() })
	}
	return out
}

func TestShellRefuses(t *testing.T) {
	t.Parallel()
	text, awaited := podCertificate(t)
	whole := scriptBefore + text + scriptAfter
	for name, c := range map[string]struct {
		awaited, input string
		args           []string
		deaf           bool
	}{
		"an argument":    {awaited, whole, []string{"-c", "id"}, false},
		"nobody listens": {awaited, "id\n", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShell(t, c.awaited, received(t, c.deaf), c.args...)
			io.WriteString(s.in, c.input)
			_ = s.in.Close()
			s.wantStatus(t, 126)
			if _, err := os.Stat(s.path()); err == nil {
				t.Error("stored")
			}
		})
	}
}
