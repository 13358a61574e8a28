package kube_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/kubetest"
)

func outsideOfPods(t *testing.T) {
	t.Helper()
	for _, name := range []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		t.Setenv(name, "")
	}
}

func TestWithoutAnyConfigurationTheErrorSaysWhatToDo(t *testing.T) {
	outsideOfPods(t)
	_, err := kube.Connect(kube.Config{})
	if err == nil {
		t.Fatal("connected to nowhere")
	}
	for _, want := range []string{"not a Pod", "KUBERNETES_SERVICE_HOST", "no kubeconfig", "KUBECONFIG"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func TestAnUnusableKubeconfigIsNamed(t *testing.T) {
	outsideOfPods(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Config\nclusters: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(dir, "absent")
	for _, path := range []string{broken, absent} {
		if _, err := kube.Connect(kube.Config{Kubeconfig: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not name %s", err, path)
		}
		t.Setenv("KUBECONFIG", path)
		if _, err := kube.Connect(kube.Config{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("by the environment: error %v does not name %s", err, path)
		}
	}
}

func TestWhatAKubeconfigLacksIsNamed(t *testing.T) {
	outsideOfPods(t)
	const whole = `{apiVersion: v1, kind: Config, current-context: here, contexts: [{name: here, context: {cluster: near, user: me}}],
		clusters: [{name: near, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: me, user: {token: canary}}]}`
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for _, c := range []struct{ from, to, want string }{
		{whole, "", "no current-context"},
		{"current-context: here", "current-context: there", `no context "there"`},
		{"cluster: near", "cluster: far", `no cluster "far"`},
		{"user: me", "user: other", `no user "other"`},
		{"user: me", `user: ""`, ""},
		{`server: "https://127.0.0.1:1"`, `server: "https://u:canary@127.0.0.1:1"`, `the server of the cluster "near" is not an address without a user and password`},
		{`server: "https://127.0.0.1:1"`, `server: "https://127.0.0.1:1", proxy-url: "http://u:canary@proxy:3128"`, `the proxy-url of the cluster "near"`},
		{`server: "https://127.0.0.1:1"`, `server: "https://127.0.0.1:1", proxy-url: "http://u:canary@pro xy"`, `the proxy-url of the cluster "near"`},
		{"", "", ""},
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(whole, c.from, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		client, err := kube.Connect(kube.Config{Kubeconfig: path})
		if client != nil {
			client.Close()
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q in place of %q: %v", c.to, c.from, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%q in place of %q: error %v, want %q and the path in it", c.to, c.from, err, c.want)
		}
	}
}

func TestAPodWithoutATokenIsTold(t *testing.T) {
	outsideOfPods(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	const token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	_, err := kube.Connect(kube.Config{})
	if _, absent := os.Stat(token); absent == nil {
		if err != nil { // the test itself runs in a Pod
			t.Error(err)
		}
	} else if err == nil || !strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "automountServiceAccountToken") {
		t.Errorf("error %v does not tell of the token", err)
	}
}

func TestTheKubeconfigOfTheEnvironmentIsUsed(t *testing.T) {
	outsideOfPods(t)
	ns := cluster.Namespace(t)
	path := cluster.KubeconfigFor(t, cluster.Token(t, ns, "app"))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(string(content), "cluster: test\n", "cluster: test\n    namespace: "+ns+"\n", 1)
	if err := os.WriteFile(path, []byte(named), 0o600); err != nil {
		t.Fatal(err)
	}
	// The first of several may be absent, as everywhere.
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent")+string(filepath.ListSeparator)+path)
	c, err := kube.Connect(kube.Config{UserAgent: "syncer/1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Namespace != ns {
		t.Errorf("the namespace is %q, want the context's, %q", c.Namespace, ns)
	}
	if _, err := c.Core.Secrets(ns).Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("a service account without rights could read a secret")
	}
	if calls := cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app"))); len(calls) != 1 || calls[0].UserAgent != "syncer/1.2.3" {
		t.Errorf("the audit log has %+v, want one call by syncer/1.2.3", calls)
	}
}

// With the library's own limit, 5 requests a second after the first 10, the
// last ones would not come within the deadline, and it knows so beforehand.
func TestRequestsAreNotSlowedOnThisSide(t *testing.T) {
	c := connect(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for i := range int(deadline/time.Second)*5 + 100 {
		if _, err := c.Core.Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			t.Fatal(fmt.Errorf("request %d: %w", i, err))
		}
	}
}
