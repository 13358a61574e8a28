//go:build long

package release

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/gobuild"
)

// tool is the command that makes releases.
var tool string

func TestMain(m *testing.M) {
	os.Exit(gobuild.Main(m, func(dir string) error {
		tool = filepath.Join(dir, "release")
		return gobuild.Build(tool, "../../deploy/tools", "./release")
	}).Run())
}

// clone clones the repository at its commit, and returns the chart's version.
func clone(t *testing.T) (dir, version string) {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "clone")
	run(t, "../..", nil, "git", "clone", "-q", ".", dir)
	var chart struct{ Version string }
	if err := yaml.Unmarshal(read(t, dir, "deploy/chart/syncer/Chart.yaml"), &chart); err != nil {
		t.Fatal(err)
	}
	return dir, chart.Version
}

// run runs a command and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// arguments are those for a release for one platform.
func arguments(repo, version, out, key string) []string {
	return []string{"-repo", repo, "-version", version, "-out", out, "-key", key, "-platforms", "linux/amd64"}
}

// newKey writes a new private key for releases.
func newKey(t *testing.T) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return writeKey(t, key)
}

// writeKey writes a private key that only this user may read.
func writeKey(t *testing.T, key crypto.PrivateKey) (path string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
