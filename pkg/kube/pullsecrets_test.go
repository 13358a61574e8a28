package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

const ours = "conjur.org/pull-secrets"

// builder is a service account with a pull Secret of somebody else.
type builder struct {
	t        *testing.T
	accounts corev1client.ServiceAccountInterface
	client   *kube.Client
	ns       string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	ns := cluster.Namespace(t)
	cluster.Bind(t, ns, "app", rules("serviceaccounts", "get", "patch"))
	b := &builder{t, cluster.Core.ServiceAccounts(ns), connect(t, cluster.Token(t, ns, "app")), ns}
	mounts := false
	_, err := b.accounts.Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Name: "builder", Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"theirs": "1"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}, Secrets: []corev1.ObjectReference{{Name: "token"}}, AutomountServiceAccountToken: &mounts,
	}, metav1.CreateOptions{FieldManager: "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *builder) read() *corev1.ServiceAccount {
	b.t.Helper()
	account, err := b.accounts.Get(b.t.Context(), "builder", metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return account
}

func (b *builder) set(wanted ...string) {
	b.t.Helper()
	if _, _, err := b.client.SetPullSecrets(b.t.Context(), b.ns, "builder", wanted, func(string) bool { return false }); err != nil {
		b.t.Fatal(err)
	}
}

// keep wants none, and lets those stay that are there.
func (b *builder) keep() {
	b.t.Helper()
	if _, _, err := b.client.SetPullSecrets(b.t.Context(), b.ns, "builder", nil, func(string) bool { return true }); err != nil {
		b.t.Fatal(err)
	}
}

// has wants these pull Secrets, and that note.
func (b *builder) has(when, note string, want ...string) {
	b.t.Helper()
	account := b.read()
	var got []string
	for _, r := range account.ImagePullSecrets {
		got = append(got, r.Name)
	}
	if !slices.Equal(got, want) || account.Annotations[ours] != note {
		b.t.Errorf("%s: %v, noted %q; want %v, noted %q", when, got, account.Annotations[ours], want, note)
	}
}

func TestPullSecretsComeAndGoBesideThoseOfOthers(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	before := b.read()
	b.set("registry", "theirs")
	b.has("one of ours, and one that is there already", "registry", "theirs", "registry")
	version := b.read().ResourceVersion
	b.set("registry")
	b.has("nothing new", "registry", "theirs", "registry")
	if now := b.read().ResourceVersion; now != version {
		t.Error("what is right was written again")
	}
	b.set("registry", "mirror")
	b.has("two of ours", "mirror,registry", "theirs", "registry", "mirror")
	b.set("mirror")
	b.has("one less", "mirror", "theirs", "mirror")
	b.keep()
	b.has("one of which too little is known", "mirror", "theirs", "mirror")
	b.set()
	b.has("none of ours", "", "theirs")

	after := b.read()
	for _, account := range []*corev1.ServiceAccount{before, after} {
		account.ManagedFields, account.ResourceVersion = nil, ""
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the account was\n%+v and is\n%+v", before, after)
	}
}

// TestAnEntryThatSomebodyTookIsGone: its note goes with it, and it is theirs when
// they put it there again.
func TestAnEntryThatSomebodyTookIsGone(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	replace := func(list string) {
		t.Helper()
		patch := []byte(`{"imagePullSecrets":` + list + `}`)
		if _, err := b.accounts.Patch(t.Context(), "builder", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.set("registry")
	replace("null")
	b.set()
	b.has("taken off by somebody else", "")
	b.set("registry")
	replace("null")
	b.set("registry")
	b.has("taken off by somebody else, and wanted", "registry", "registry")
	replace("null")
	b.keep()
	b.has("taken off by somebody else, and little known of", "")
	replace(`[{"name":"registry"}]`)
	b.set("registry")
	b.has("put on by somebody else", "", "registry")
	b.set()
	b.has("no longer ours", "", "registry")
	replace("null")
	b.set("registry")
	b.has("on an account without any", "registry", "registry")
	b.set()
	if account := b.read(); account.ImagePullSecrets != nil {
		t.Errorf("an empty list stays: %v", account.ImagePullSecrets)
	}
}

// TestPullSecretsBesideEdits: what somebody else changes between the read and the
// write is not lost.
func TestPullSecretsBesideEdits(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	ctx, stop := context.WithCancel(t.Context())
	edited := make(chan []string, 1)
	go func() {
		defer stop()
		made := []string{"theirs"}
		for len(made) < 20 {
			name := fmt.Sprintf("edit-%d", len(made))
			account, err := b.accounts.Get(t.Context(), "builder", metav1.GetOptions{})
			if err == nil {
				account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
				_, err = b.accounts.Update(t.Context(), account, metav1.UpdateOptions{})
			}
			if err == nil {
				made = append(made, name)
			} else if !apierrors.IsConflict(err) {
				t.Error(err)
				break
			}
		}
		edited <- made
	}()
	for wanted := []string(nil); ctx.Err() == nil; {
		if wanted = append(wanted, "registry"); len(wanted) > 1 {
			wanted = nil
		}
		_, _, err := b.client.SetPullSecrets(t.Context(), b.ns, "builder", wanted, func(string) bool { return false })
		if err != nil && !apierrors.IsConflict(err) {
			t.Error(err)
		}
	}
	b.set()
	b.has("after all edits", "", <-edited...)
}

func TestNoPullSecretsWithoutARightOrAnAccount(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	cluster.Bind(t, b.ns, "reader", rules("serviceaccounts", "get"))
	reader := connect(t, cluster.Token(t, b.ns, "reader"))
	never := func(string) bool { return false }
	if _, _, err := reader.SetPullSecrets(t.Context(), b.ns, "builder", []string{"registry"}, never); !apierrors.IsForbidden(err) {
		t.Errorf("without the right to patch: %v", err)
	}
	if _, _, err := b.client.SetPullSecrets(t.Context(), b.ns, "nobody", []string{"registry"}, never); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), b.ns+"/nobody") {
		t.Errorf("without an account: %v", err)
	}
	b.has("after both", "", "theirs")
}

// What is said of missing accounts ends when the Secret names others, or is gone.
func TestMissingAccountsAreSaidUntilTheyAreNoLongerNamed(t *testing.T) {
	c := played(t, func(w http.ResponseWriter, r *http.Request, say func(string, ...any)) {
		if strings.HasSuffix(r.URL.Path, "/none") {
			w.WriteHeader(http.StatusNotFound)
			say(statusJSON, "none", "NotFound", http.StatusNotFound)
			return
		}
		say(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"builder","namespace":"n","uid":"u","resourceVersion":"1"}}`)
	})
	set, heard := &records.Set{}, make(reports, 100)
	key := targets.KubeSecretKey("n", "db")
	a := c.NewPullSecrets(set, func(string, string) bool { return true }, c.NewRecorder("syncer", heard), heard, zap.NewNop())
	names := func(accounts ...string) {
		set.Lane("").Put(&targets.Target{Key: key, Secret: &targets.Secret{Namespace: "n", Name: "db", PullFor: accounts}})
		a.Changed(key)
	}
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			if got := next(t, heard, want); !strings.HasPrefix(got, want) {
				t.Errorf("reported %q, want %q", got, want)
			}
		}
	}
	names()
	running(t, a.Run)
	const missing, found = "service accounts of secret/n/db: there is no service account none in", "service accounts of secret/n/db: <nil>"
	names("none")
	expect("pull secrets of n/none: <nil>", missing)
	if limits := set.Lane("").Limited()[key]; len(limits) != 1 || limits[0] != "none: there is no such service account" {
		t.Errorf("limits %q", limits)
	}
	names("builder")
	expect("pull secrets of n/", "pull secrets of n/", found)
	names("none")
	expect("pull secrets of n/", "pull secrets of n/", missing)
	set.Delete(key)
	a.Changed(key)
	expect("pull secrets of n/none: <nil>", found)
}
