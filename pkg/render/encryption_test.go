package render_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/proctest"
)

// apiServer is a genuine kube-apiserver whose configuration of encryption is
// rendered from a set.
type apiServer struct {
	*testing.T
	dir, etcd, address string
	process            *proctest.Process
	client             *http.Client
}

const adminToken = "only-for-this-test"

// kube starts a part of the control plane's program.
func kube(t *testing.T, args ...string) *proctest.Process {
	t.Helper()
	program := os.Getenv("SYNCER_KUBE")
	if program == "" {
		t.Fatal(`SYNCER_KUBE is not set: run "make test", or "export SYNCER_KUBE=$(make -s kube)" before go test`)
	}
	return proctest.Start(t, exec.Command(program, args...), nil)
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{T: t, dir: t.TempDir(), etcd: "http://" + proctest.FreeAddress(t), address: proctest.FreeAddress(t)}
	s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	s.write("tokens", adminToken+",admin,admin,system:masters\n")
	peer := "http://" + proctest.FreeAddress(t)
	kube(t, "etcd", "--data-dir="+filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+s.etcd, "--advertise-client-urls="+s.etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	return s
}

func (s *apiServer) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// with has the API server run with the keys of a set.
func (s *apiServer) with(set *versions.Document) {
	s.Helper()
	text, err := renderSet(s.T, targets.FormatTemplate, "keys", example(s.T, "encryption-configuration.yaml.tpl"), set)
	if err != nil {
		s.Fatal(err)
	}
	s.write("encryption.yaml", text)
	s.stop()
	host, port, _ := net.SplitHostPort(s.address)
	key := filepath.Join(s.dir, "sa.key")
	s.process = kube(s.T, "kube-apiserver", "--etcd-servers="+s.etcd, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+s.dir,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://test", "--service-account-signing-key-file="+key, "--service-account-key-file="+key,
		"--token-auth-file="+filepath.Join(s.dir, "tokens"), "--authorization-mode=AlwaysAllow", "--profiling=false",
		"--encryption-provider-config="+filepath.Join(s.dir, "encryption.yaml"))
	proctest.Eventually(s.T, "the API server is ready", func() bool {
		s.process.MustRun()
		req, _ := http.NewRequest(http.MethodGet, "https://"+s.address+"/readyz", nil)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := s.client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// stop ends the API server at once; all that it has written is in etcd.
func (s *apiServer) stop() {
	if s.process != nil {
		s.process.Signal(os.Kill)
		s.process.ExitCode()
	}
}

// call sends a request to the API server.
func (s *apiServer) call(method, path string, body any) (answer map[string]any) {
	s.Helper()
	return s.send(method, "https://"+s.address+"/api/v1"+path, body)
}

func (s *apiServer) send(method, url string, body any) (answer map[string]any) {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		s.Fatalf("%s %s: status %d, %v\n%s", method, url, resp.StatusCode, err, reply)
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		s.Fatal(err)
	}
	return answer
}

// secret returns a Secret as the API server shows it; it fails if that cannot
// decrypt it.
func (s *apiServer) secret(name string) map[string]any {
	s.Helper()
	got := s.call(http.MethodGet, "/namespaces/default/secrets/"+name, nil)
	data, _ := got["data"].(map[string]any)
	if want := base64.StdEncoding.EncodeToString([]byte("value of " + name)); data["x"] != want {
		s.Errorf("Secret %s has %v", name, data)
	}
	return got
}

// storedUnder fails the test if etcd has a Secret under another key.
func (s *apiServer) storedUnder(name, id string) {
	s.Helper()
	key := base64.StdEncoding.EncodeToString([]byte("/registry/secrets/default/" + name))
	answer := s.send(http.MethodPost, s.etcd+"/v3/kv/range", map[string]string{"key": key})
	kvs, _ := answer["kvs"].([]any)
	if len(kvs) != 1 {
		s.Fatalf("etcd has %d values of %s", len(kvs), name)
	}
	stored, err := base64.StdEncoding.DecodeString(kvs[0].(map[string]any)["value"].(string))
	if err != nil {
		s.Fatal(err)
	}
	if prefix := "k8s:enc:secretbox:v1:" + id + ":"; !bytes.HasPrefix(stored, []byte(prefix)) {
		s.Errorf("%s is stored as %.40q, not under %s", name, stored, id)
	}
	if strings.Contains(string(stored), "value of") {
		s.Errorf("%s is stored in plain", name)
	}
}

// An API server goes through a rotation of its keys, and no Secret is lost: what
// was written before, between and after is read at each stage.
func TestAnAPIServerThroughARotation(t *testing.T) {
	before, after := rotated(t, generate.Config{Random: 32})
	old, _ := before.Primary()
	primary, _ := after.Primary()
	s := newAPIServer(t)
	make := func(name string) {
		t.Helper()
		s.call(http.MethodPost, "/namespaces/default/secrets", map[string]any{
			"metadata": map[string]string{"name": name}, "stringData": map[string]string{"x": "value of " + name},
		})
	}
	s.with(before)
	proctest.Eventually(t, "the namespace is there", func() bool {
		return strings.Contains(fmt.Sprint(s.call(http.MethodGet, "/namespaces", nil)), "name:default")
	})
	for _, name := range []string{"a", "b"} {
		make(name)
		s.storedUnder(name, old.ID)
	}

	s.with(after)
	make("c")
	s.storedUnder("c", primary.ID)
	for _, name := range []string{"a", "b"} {
		s.storedUnder(name, old.ID)
		s.call(http.MethodPut, "/namespaces/default/secrets/"+name, s.secret(name)) // as a migration does
		s.storedUnder(name, primary.ID)
	}

	s.with(after.Retire(old.ID, versions.Entry{At: time.Now()}))
	for _, name := range []string{"a", "b", "c"} {
		s.secret(name)
	}
}
