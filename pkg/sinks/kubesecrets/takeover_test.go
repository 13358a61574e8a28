package kubesecrets_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

// formerWriters are those who may have filled a Secret before us, each with
// the keys a and b of the values given, the key foreign and a conjur-map.
var formerWriters = map[string]func(t *testing.T, k *kube, a, b string){
	"an update": func(t *testing.T, k *kube, a, b string) {
		k.makeForeign(t, a, b, "other", nil)
	},
	"kubectl apply": func(t *testing.T, k *kube, a, b string) {
		s := k.foreign(a, b)
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		applied, err := json.Marshal(s)
		must(t, err)
		k.makeForeign(t, a, b, "kubectl-client-side-apply", map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)})
	},
	"a full update by the Secrets Provider": func(t *testing.T, k *kube, a, b string) {
		k.makeForeign(t, "", "", "kubectl-create", nil)
		s := k.get(t, "s")
		s.Data["a"], s.Data["b"] = []byte(a), []byte(b)
		_, err := k.secrets.Update(t.Context(), s, metav1.UpdateOptions{FieldManager: "secrets-provider"})
		must(t, err)
	},
	"another server-side apply": func(t *testing.T, k *kube, a, b string) {
		k.makeForeign(t, a, b, "other", nil)
		body := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"` + encode(a) + `","b":"` + encode(b) + `"}}`
		force := true
		_, err := k.secrets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "gitops", Force: &force})
		must(t, err)
	},
	"nobody that is known": func(t *testing.T, k *kube, a, b string) {
		k.makeForeign(t, a, b, "other", nil)
		if s := k.merge(t, "s", `{"metadata":{"managedFields":[{}]}}`); len(s.ManagedFields) > 0 {
			t.Fatalf("managedFields are still there: %v", s.ManagedFields)
		}
	},
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func (k *kube) foreign(a, b string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "s",
			Labels:          map[string]string{"conjur.org/managed-by-provider": "true", "team": "blue"},
			Annotations:     map[string]string{"note": "theirs"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "1"}},
			Finalizers:      []string{"example.org/hold"},
		},
		Data: data("a", a, "b", b, "foreign", "kept", targets.ConjurMapKey, "a: app/a\nb: app/b\n"),
	}
}

func (k *kube) makeForeign(t *testing.T, a, b, manager string, annotations map[string]string) {
	t.Helper()
	s := k.foreign(a, b)
	maps.Copy(s.Annotations, annotations)
	_, err := k.secrets.Create(t.Context(), s, metav1.CreateOptions{FieldManager: manager})
	must(t, err)
}

// expectForeign checks what is not ours, and that of our keys there are these.
func (k *kube) expectForeign(t *testing.T, before *corev1.Secret, ours map[string]string) {
	t.Helper()
	want := map[string]string{"foreign": "kept", targets.ConjurMapKey: "a: app/a\nb: app/b\n"}
	maps.Copy(want, ours)
	k.expectData(t, "s", want)
	now := k.get(t, "s")
	for _, s := range []*corev1.Secret{now, before} {
		delete(s.Annotations, targets.RevisionAnnotation)
		delete(s.Annotations, targets.RevisedAnnotation)
	}
	if !maps.Equal(now.Labels, before.Labels) || !maps.Equal(now.Annotations, before.Annotations) ||
		!slices.Equal(now.Finalizers, before.Finalizers) || len(now.OwnerReferences) != 1 || now.OwnerReferences[0].Name != "d" {
		t.Errorf("the metadata became\n%+v, from\n%+v", now.ObjectMeta, before.ObjectMeta)
	}
}

// Whoever wrote the keys before, and whether their values are those wanted or
// not: they become ours, a key that leaves the map or is revoked goes, and
// nothing else changes.
func TestTakeOver(t *testing.T) {
	for name, write := range formerWriters {
		for _, equal := range []bool{true, false} {
			t.Run(name+", equal "+strconv.FormatBool(equal), func(t *testing.T) {
				k := newKube(t)
				if equal {
					write(t, k, "1", "2")
				} else {
					write(t, k, "old", "older")
				}
				testTakeOver(t, k, equal)
			})
		}
	}
}

func testTakeOver(t *testing.T, k *kube, equal bool) {
	before := k.get(t, "s")
	both := map[string]string{"a": "1", "b": "2"}
	target := k.target("s", "a", "b")
	if state := k.read(t, target); !state.Stale || len(state.Parts) != 2 {
		t.Errorf("before, there are %d parts, stale %t", len(state.Parts), state.Stale)
	}
	k.sync(t, target, both)
	k.expectForeign(t, before, both)
	after := k.get(t, "s")
	if _, raised := after.Annotations[targets.RevisionAnnotation]; raised == equal {
		t.Errorf("equal values: %t; a revision is there: %t", equal, raised)
	}
	for _, key := range []string{"a", "b"} {
		if managers := owners(t, after, key); !slices.Contains(managers, "syncer Apply") || !equal && len(managers) > 1 {
			t.Errorf("%s is owned by %q", key, managers)
		}
	}
	expectOnlyData(t, after)
	if c := k.sync(t, target, both); !c.Empty() || k.get(t, "s").ResourceVersion != after.ResourceVersion {
		t.Errorf("the second time %q is set", c.Set)
	}

	smaller := k.target("s", "a") // b has left the map
	if c := k.sync(t, smaller, map[string]string{"a": "1"}); !slices.Equal(c.Remove, []string{"b"}) {
		t.Errorf("b left the map, and %q is removed", c.Remove)
	}
	k.expectForeign(t, before, map[string]string{"a": "1"})
	k.sync(t, smaller, nil) // a is revoked
	k.expectForeign(t, before, nil)
	if state := k.read(t, smaller); state.Parts != nil || state.Stale {
		t.Errorf("after all is gone there is %v", state)
	}
	k.sync(t, target, both) // and restored
	k.expectForeign(t, before, both)
}

// A revoked key goes also when we never wrote it.
func TestRevokedKeyOfOthers(t *testing.T) {
	for name, write := range formerWriters {
		t.Run(name, func(t *testing.T) {
			k := newKube(t)
			write(t, k, "1", "2")
			before := k.get(t, "s")
			k.sync(t, k.target("s", "a", "b"), map[string]string{"a": "1"})
			k.expectForeign(t, before, map[string]string{"a": "1"})
		})
	}
}

// A key is removed in one write together with all else that changes, also when
// another owns it as well. That changes nobody's right to another key, even
// one that comes in the same moment.
func TestRemovalIsOneChange(t *testing.T) {
	k := newKube(t)
	k.makeForeign(t, "1", "2", "other", nil)
	target := k.target("s", "a", "b")
	k.sync(t, target, map[string]string{"a": "1", "b": "2"})
	k.wire.before(func() { k.merge(t, "s", `{"data":{"late":"MQ=="}}`) })
	calls := k.wire.since(func() { k.sync(t, target, map[string]string{"b": "new"}) })
	if want := []string{"GET", "GET", "PATCH merge", "GET", "PATCH merge", "PATCH apply"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	for _, key := range []string{"foreign", "late"} {
		if got := owners(t, k.get(t, "s"), key); !slices.Equal(got, []string{"other Update"}) {
			t.Errorf("the key %s is owned by %q", key, got)
		}
	}
}
