package kube_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/kubetest"
)

func TestASecretHoldsWhatIsOfInterestOnly(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	made := create(t, secrets(t, ns), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "db",
			Labels: map[string]string{targets.ManagedLabel: "true", "app": "canary"},
			Annotations: map[string]string{
				"conjur.org/conjur-secrets.x":                      "- a/b",
				"conjur.org/secret-revision":                       "7",
				"conjur.org/secret-revised":                        "2026-01-02T03:04:05Z",
				"conjur.org/secret-variables":                      "canary",
				"kubectl.kubernetes.io/last-applied-configuration": "canary",
			},
		},
		Data: map[string][]byte{"conjur-map": []byte("user: app/user"), "user": []byte("canary")},
	})
	got, err := c.Secret(t.Context(), ns, "db")
	if err != nil {
		t.Fatal(err)
	}
	h := hear()
	w := c.WatchSecrets(kube.Selection{Namespace: ns, Name: "db"}, nil, h)
	running(t, w.Run)
	h.expect(t, "put: db user: app/user")
	stored, _ := w.Find(ns, "db")
	for _, s := range []*kube.Secret{got, stored} {
		text := fmt.Sprintf("%+v", s)
		if strings.Contains(text, "canary") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("canary"))) || s.ManagedFields != nil {
			t.Errorf("more than what is of interest: %s", text)
		}
	}
	if got.Namespace != ns || got.Name != "db" || got.UID != made.UID || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("%s/%s %s %s is another secret than %s", got.Namespace, got.Name, got.UID, got.ResourceVersion, made.UID)
	}
	if text, ok := got.ConjurMap(); text != "user: app/user" || !ok {
		t.Errorf("secret %+v", got)
	}
	if want := map[string]string{"conjur.org/conjur-secrets.x": "- a/b"}; !maps.Equal(got.Annotations, want) {
		t.Errorf("annotations %v, want %v", got.Annotations, want)
	}
}

func TestAllLabelledSecretsAreReadPageByPage(t *testing.T) {
	t.Parallel()
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
	other.Labels[targets.ManagedLabel] = "false"
	create(t, api, other)

	cluster.Bind(t, ns, "app", rules("secrets", "list"))
	c := connect(t, cluster.Token(t, ns, "app"))
	h := hear()
	if err := c.WatchSecrets(kube.Selection{Namespace: ns}, nil, h).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(h.heard) != count {
		t.Errorf("%d secrets, want %d", len(h.heard), count)
	}
	if calls := cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app"))); len(calls) != 51 {
		t.Errorf("%d calls for %d secrets, want 51", len(calls), count)
	}
	if err := c.WatchSecrets(kube.Selection{}, nil, h).Look(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want that all namespaces are forbidden", err)
	}
}
