package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

const workloadsPolicy = `
- !policy
  id: conjur/authn-k8s/prod
  body:
  - !webservice
  - !policy { id: ca, body: [ !variable cert, !variable key ] }
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy
  id: apps
  body:
  - !host { id: web, annotations: { authn-k8s/namespace: NAMESPACE, authn-k8s/deployment: web } }
  - !host { id: other, annotations: { authn-k8s/namespace: NAMESPACE, authn-k8s/deployment: other } }
- !grant { role: !group conjur/authn-k8s/prod/apps, members: [ !host apps/web, !host apps/other ] }
`

// makeWorkload makes a Pod as the controllers of a Deployment would.
func makeWorkload(t *testing.T, w *world) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "authenticator", Image: "none"}}},
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}}},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
	if _, err := plane.Apps.ReplicaSets(w.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1-a", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "2"}}},
		Spec:       template.Spec,
	}
	if _, err := plane.Core.Pods(w.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestConjurdLooksUpPods with the documented rights. Without a kubelet, conjurd cannot
// deliver a certificate, and the audit reports that.
func TestConjurdLooksUpPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	makeWorkload(t, w)
	plane.Bind(t, w.namespace, "conjurd",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "namespaces"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create", "get"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get"}})
	ca, err := conjurd.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	values, err := yaml.Marshal(map[string]string{"conjur/authn-k8s/prod/ca/cert": string(ca.Cert), "conjur/authn-k8s/prod/ca/key": string(ca.Key)})
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	address, audit := proctest.FreeAddress(t), filepath.Join(w.dir, "audit")
	p := proctest.Spawn(t, binary, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + w.dir}, "conjurd", "--plain-http", "--addr", address, "--audit", audit,
		"--policy", file("policy", strings.ReplaceAll(workloadsPolicy, "NAMESPACE", w.namespace)), "--values", file("values", string(values)),
		"--kubernetes", "--kubeconfig", plane.KubeconfigFor(t, plane.Token(t, w.namespace, "conjurd")))
	eventually(t, "conjurd's address", func() bool { return len(p.Lines("CONJUR_APPLIANCE_URL")) > 0 })
	for host, reason := range map[string]string{
		"web":   "running sh in " + w.namespace + "/web-1-a, container authenticator",
		"other": "the Pod " + w.namespace + "/web-1-a is not of the host's deployment",
	} {
		if status := injectAt(t, "http://"+address, w.namespace, host); status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", host, status)
		}
		text, err := os.ReadFile(audit)
		if err != nil || !strings.Contains(string(text), reason) {
			t.Errorf("%s: the audit has no %q:\n%s", host, reason, text)
		}
	}
	execs := plane.Calls(t, kubetest.ByUser(kubetest.UserName(w.namespace, "conjurd")), func(c kubetest.Call) bool { return c.Subresource == "exec" })
	if len(execs) == 0 {
		t.Error("nothing was run")
	}
	p.Stop()
}

// injectAt asks for a certificate for the Pod, as the host.
func injectAt(t *testing.T, base, namespace, host string) int {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/namespace/" + namespace + "/podname/web-1-a"}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: host}, URIs: []*url.URL{uri}}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/authn-k8s/prod/inject_client_cert", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Host-Id-Prefix", "host.apps")
	res, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
