package kube_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/kubetest"
)

func TestASourceHoldsWhatIsOfInterestOnly(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	immutable := true
	made := create(t, secrets(t, ns), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "db",
			Labels: map[string]string{kube.ManagedLabel: "true", "app": "canary"},
			Annotations: map[string]string{
				"conjur.org/conjur-secrets.x":                      "- a/b",
				"conjur.org/secret-revision":                       "7",
				"conjur.org/secret-revised":                        "2026-01-02T03:04:05Z",
				"conjur.org/secret-variables":                      "canary",
				"kubectl.kubernetes.io/last-applied-configuration": "canary",
			},
		},
		Data:      map[string][]byte{"conjur-map": []byte("user: app/user"), "user": []byte("canary")},
		Type:      "example.org/custom",
		Immutable: &immutable,
	})
	got, err := c.Source(t.Context(), ns, "db")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintf("%+v", got), "canary") {
		t.Errorf("more than what is of interest: %+v", got)
	}
	if got.Namespace != ns || got.Name != "db" || got.UID != made.UID || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("%s/%s %s %s is another secret than %s", got.Namespace, got.Name, got.UID, got.ResourceVersion, made.UID)
	}
	if got.Map != "user: app/user" || !got.HasMap || got.Type != "example.org/custom" || !got.Immutable {
		t.Errorf("source %+v", got)
	}
	if want := map[string]string{kube.ManagedLabel: "true"}; !maps.Equal(got.Labels, want) {
		t.Errorf("labels %v, want %v", got.Labels, want)
	}
	if want := map[string]string{"conjur.org/conjur-secrets.x": "- a/b"}; !maps.Equal(got.Annotations, want) {
		t.Errorf("annotations %v, want %v", got.Annotations, want)
	}
}

func TestTheFingerprintFollowsTheDataWithoutTheMap(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	api := secrets(t, ns)
	create(t, api, managed("a", map[string]string{"conjur-map": "x: y", "ab": "c", "d": ""}))
	read := func(c *kube.Client) [32]byte {
		t.Helper()
		s, err := c.Source(t.Context(), ns, "a")
		if err != nil {
			t.Fatal(err)
		}
		return s.Fingerprint
	}
	first := read(c)
	update(t, api, "a", func(s *corev1.Secret) {
		s.Data["conjur-map"] = []byte("x: z")
		s.Annotations = map[string]string{"conjur.org/x": "y"}
	})
	if read(c) != first {
		t.Error("the map or an annotation is in it")
	}
	if read(connect(t, "")) == first {
		t.Error("it can be compared with another process's: a short value could be guessed from it")
	}
	seen := map[[32]byte]string{first: "the first"}
	for _, data := range []map[string]string{
		{"ab": "C", "d": ""}, {"ab": "", "d": "c"}, {"a": "bc", "d": ""}, {"abc": "", "d": ""}, {"ab": "c"}, {"ab": "cd"}, {},
	} {
		update(t, api, "a", func(s *corev1.Secret) { s.Data, s.StringData = nil, data })
		now := read(c)
		if other, same := seen[now]; same {
			t.Errorf("%v has the fingerprint of %s", data, other)
		}
		seen[now] = fmt.Sprint(data)
	}
}

func TestAllLabelledSecretsAreReadPageByPage(t *testing.T) {
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	const count = 1001
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < count; i += 8 {
				if _, err := api.Create(t.Context(), managed(fmt.Sprint("s", i), map[string]string{"k": "v"}), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	other := managed("other", nil)
	other.Labels[kube.ManagedLabel] = "false"
	create(t, api, other)

	cluster.Bind(t, ns, "app", rules("secrets", "list"))
	c := connect(t, cluster.Token(t, ns, "app"))
	seen := map[string]bool{}
	if err := c.Sources(t.Context(), ns, func(s kube.Source) { seen[s.Name] = true }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != count || seen["other"] {
		t.Errorf("%d secrets, the other one: %v; want %d", len(seen), seen["other"], count)
	}
	if calls := cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app"))); len(calls) != 3 {
		t.Errorf("%d calls for %d secrets, want 3", len(calls), count)
	}
	if err := c.Sources(t.Context(), "", func(kube.Source) {}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "all namespaces") {
		t.Errorf("error %v, want that all namespaces are forbidden", err)
	}
}
