package kube_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// deadline is generous: these tests wait for something to happen, not for time
// to pass.
const deadline = time.Minute

var cluster *kubetest.ControlPlane

func TestMain(m *testing.M) {
	if watchChild() {
		os.Exit(0)
	}
	proctest.AtOnce(8)
	goleak.VerifyTestMain(kubetest.Own(m, &cluster))
}

// connect makes a Client: of a service account when there is a token, else of
// the administrator.
func connect(t *testing.T, token string) *kube.Client {
	t.Helper()
	path := cluster.Kubeconfig()
	if token != "" {
		path = cluster.KubeconfigFor(t, token)
	}
	c, err := kube.Connect(kube.Config{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// secrets is the administrator's way to the Secrets of a namespace, apart from
// what is tested.
func secrets(t *testing.T, namespace string) corev1client.SecretInterface {
	t.Helper()
	return cluster.Core.Secrets(namespace)
}

func managed(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{targets.ManagedLabel: targets.ManagedValue}},
		StringData: data,
	}
}

func create(t *testing.T, api corev1client.SecretInterface, s *corev1.Secret) *corev1.Secret {
	t.Helper()
	made, err := api.Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func update(t *testing.T, api corev1client.SecretInterface, name string, change func(*corev1.Secret)) {
	t.Helper()
	s, err := api.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	if _, err := api.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, api corev1client.SecretInterface, name string) {
	t.Helper()
	if err := api.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// next waits for what a channel brings.
func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatalf("%s: not within %v", what, deadline)
	}
	panic("unreachable")
}

var running = proctest.Running

// rules permits verbs on a resource.
func rules(resource string, verbs ...string) rbacv1.PolicyRule {
	groups := []string{"", "apps", "coordination.k8s.io"}
	return rbacv1.PolicyRule{APIGroups: groups, Resources: []string{resource}, Verbs: verbs}
}
