package sources_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// client is that of the service account "app" of a namespace.
func client(t *testing.T, namespace string) *kube.Client {
	t.Helper()
	c, err := kube.Connect(kube.Config{Kubeconfig: cluster.KubeconfigFor(t, cluster.Token(t, namespace, "app"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// allow permits "app" verbs on a resource, of the names given only if any are.
func allow(t *testing.T, namespace, resource, verbs string, names ...string) (revoke func()) {
	t.Helper()
	return cluster.Bind(t, namespace, "app", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{resource}, Verbs: strings.Fields(verbs), ResourceNames: names,
	})
}

// calls counts those of "app" by their verb.
func calls(t *testing.T, namespace string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, c := range cluster.Calls(t, kubetest.ByUser(kubetest.UserName(namespace, "app"))) {
		count[c.Verb]++
	}
	return count
}

func secret(t *testing.T, namespace, name string, data map[string]string, annotations ...string) {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{targets.ManagedLabel: targets.ManagedValue}},
		StringData: data,
	}
	annotate(s, annotations)
	if _, err := cluster.Core.Secrets(namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// annotate sets annotations that are given as name, value, name, value….
func annotate(s *corev1.Secret, annotations []string) {
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations[annotations[i]] = annotations[i+1]
	}
}

func changeSecret(t *testing.T, namespace, name string, change func(*corev1.Secret)) {
	t.Helper()
	api := cluster.Core.Secrets(namespace)
	s, err := api.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	if _, err := api.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deleteSecret(t *testing.T, namespace, name string) {
	t.Helper()
	if err := cluster.Core.Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// expect waits for texts, one after the other.
func expect(t *testing.T, from <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-from:
			if got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		case <-time.After(deadline):
			t.Fatalf("no %q within %v", w, deadline)
		}
	}
}

// collect waits for texts in any order, and passes over others.
func collect(t *testing.T, from <-chan string, want ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for end := time.After(deadline); len(missing) > 0; {
		select {
		case got := <-from:
			delete(missing, got)
		case <-end:
			t.Fatalf("no %v within %v", missing, deadline)
		}
	}
}

// await passes over texts until one has all the parts wanted.
func await(t *testing.T, from <-chan string, parts ...string) {
	t.Helper()
	end := time.After(deadline)
next:
	for {
		select {
		case got := <-from:
			for _, part := range parts {
				if !strings.Contains(got, part) {
					continue next
				}
			}
			return
		case <-end:
			t.Fatalf("nothing with %q within %v", parts, deadline)
		}
	}
}

// reporting returns a Reporter that hands on each change of how a subject goes, as
// "subject: error".
func reporting() (chan string, reportFunc) {
	heard := make(chan string, 1000)
	var mu sync.Mutex
	last := map[string]string{}
	return heard, func(subject string, err error) {
		mu.Lock()
		defer mu.Unlock()
		text := fmt.Sprint(err)
		if known, ok := last[subject]; ok && known == text || !ok && err == nil {
			return
		}
		last[subject] = text
		heard <- subject + ": " + text
	}
}

// reportFunc is called with what is reported, and with what is remarked on,
// which begins with "limited".
type reportFunc func(subject string, err error)

func (f reportFunc) Report(subject string, err error) { f(subject, err) }
func (f reportFunc) Remark(subject string, err error) { f(subject, fmt.Errorf("limited: %w", err)) }

// enqueueFunc is called with each hint.
type enqueueFunc func(h queue.Hint, keys ...targets.Key)

func (f enqueueFunc) Enqueue(h queue.Hint, keys ...targets.Key) { f(h, keys...) }

var running = proctest.Running
