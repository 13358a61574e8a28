package kubesecrets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

func isMissing(err error) bool { _, ok := errors.AsType[*sinks.MissingError](err); return ok }

func (k *kube) delete(t *testing.T, name string) {
	t.Helper()
	must(t, k.secrets.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// expectNone checks that there is no Secret.
func (k *kube) expectNone(t *testing.T) {
	t.Helper()
	list, err := k.secrets.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) > 0 {
		t.Errorf("there is the Secret %s", list.Items[0].Name)
	}
}

func TestMissing(t *testing.T) {
	k := newKube(t)
	target := k.target("s", "a")
	if _, err := k.sink.Read(t.Context(), target); !isMissing(err) {
		t.Errorf("Read says %v", err)
	}
	if err := k.sink.Apply(t.Context(), target, setAll("a", "1")); !isMissing(err) || !strings.Contains(err.Error(), k.ns+"/s") {
		t.Errorf("Apply says %v", err)
	}
	k.expectNone(t)
	k.make(t, "s", "")
	k.sync(t, target, map[string]string{"a": "1"})
	k.expectData(t, "s", map[string]string{"a": "1"})
}

// A Secret that is deleted at any time is not created, unless the target says
// so, and then it is whole.
func TestDeleted(t *testing.T) {
	want := map[string]string{"a": "1", "b": "2"}
	for _, moment := range []string{"before Apply", "before the write"} {
		for _, create := range []bool{false, true} {
			k := newKube(t)
			target := k.target("s", "a", "b")
			target.Secret.Create = create
			k.make(t, "s", "", "a", "1", "b", "old")
			k.read(t, target)
			c := setAll("a", "1", "b", "2")
			c.Set = []string{"b"}
			if moment == "before Apply" {
				k.delete(t, "s")
			} else {
				k.wire.before(func() { k.delete(t, "s") })
			}
			err := k.sink.Apply(t.Context(), target, c)
			switch {
			case create && err != nil, !create && !isMissing(err):
				t.Errorf("deleted %s, create %t: Apply says %v", moment, create, err)
			case create:
				k.expectData(t, "s", want)
			default:
				k.expectNone(t)
			}
		}
	}
}

// What should go is gone with its Secret.
func TestDeletedBeforeRemoval(t *testing.T) {
	for _, ours := range []bool{true, false} {
		k := newKube(t)
		target := k.target("s", "a")
		k.make(t, "s", "", "a", "1")
		if ours {
			k.sync(t, target, map[string]string{"a": "2"})
		}
		k.wire.before(func() { k.delete(t, "s") })
		k.sync(t, target, nil)
		k.expectNone(t)
	}
}

// A Secret that was made anew is another one: what was worked out for the
// former is not written to it, but read, and worked out, again.
func TestMadeAnew(t *testing.T) {
	for _, moment := range []string{"before Apply", "before the write", "before the write, a removal"} {
		k := newKube(t)
		target := k.target("s", "a", "b")
		k.make(t, "s", "", "a", "1", "b", "old")
		k.read(t, target)
		anew := func() {
			k.delete(t, "s")
			k.make(t, "s", "", "foreign", "f", "b", "f")
		}
		c := setAll("a", "2", "b", "2")
		switch moment {
		case "before Apply":
			anew()
		case "before the write":
			k.wire.before(anew)
		default:
			c = sinks.Changes{Remove: []string{"a", "b"}}
			k.wire.before(anew)
		}
		err := k.sink.Apply(t.Context(), target, c)
		if err == nil || !strings.Contains(err.Error(), "created again") || !strings.HasPrefix(err.Error(), string(target.Key)+": ") {
			t.Errorf("%s: Apply says %v", moment, err)
		}
		k.expectData(t, "s", map[string]string{"foreign": "f", "b": "f"})
		k.sync(t, target, map[string]string{"a": "2", "b": "2"})
		k.expectData(t, "s", map[string]string{"foreign": "f", "a": "2", "b": "2"})
	}
}

// A definition is that of one object. Another of the same name is neither read
// nor written by it, nor is one made in its place, whenever it is deleted.
func TestOtherThanDefined(t *testing.T) {
	for _, create := range []bool{false, true} {
		for _, anew := range []bool{false, true} {
			for _, moment := range []string{"before Read", "before Apply", "before the write"} {
				what := fmt.Sprintf("create %t, made anew %t, %s", create, anew, moment)
				k := newKube(t)
				target := k.target("s", "a")
				target.Secret.Create = create
				target.Secret.UID = string(k.make(t, "s", "", "a", "1").UID)
				k.sync(t, target, map[string]string{"a": "2"})
				replace := func() {
					k.delete(t, "s")
					if anew {
						k.make(t, "s", "", "a", "theirs")
					}
				}
				c := setAll("a", "3")
				switch moment {
				case "before Read":
					replace()
					if _, err := k.sink.Read(t.Context(), target); !isOther(err, create, anew) {
						t.Errorf("%s: Read says %v", what, err)
					}
				case "before Apply":
					replace()
					k.forget("s") // somebody saw it go
				default:
					k.wire.before(replace)
				}
				if err := k.sink.Apply(t.Context(), target, c); !isOther(err, create, anew) || !strings.Contains(err.Error(), k.ns+"/s") {
					t.Errorf("%s: Apply says %v", what, err)
				}
				if !anew {
					k.expectNone(t)
					continue
				}
				k.expectData(t, "s", map[string]string{"a": "theirs"})
				target.Secret.UID = string(k.get(t, "s").UID)
				k.sync(t, target, map[string]string{"a": "3"})
				k.expectData(t, "s", map[string]string{"a": "3"})
			}
		}
	}
}

// isOther tells the errors for a Secret that is not what was defined: none of
// them is for good.
func isOther(err error, create, anew bool) bool {
	_, refused := errors.AsType[*sinks.RefusedError](err)
	switch {
	case err == nil || refused:
		return false
	case anew:
		return strings.Contains(err.Error(), "created again")
	}
	return isMissing(err) != create
}

func TestCreate(t *testing.T) {
	k := newKube(t)
	target := k.created("s", corev1.SecretTypeBasicAuth, "username")
	k.sync(t, target, map[string]string{"username": "1"})
	s := k.get(t, "s")
	if s.Type != corev1.SecretTypeBasicAuth || s.Labels["app.kubernetes.io/managed-by"] != "syncer" || len(s.Labels) != 1 || s.Annotations[targets.RevisionAnnotation] == "" {
		t.Errorf("it is of type %s, with the labels %v and the annotations %v", s.Type, s.Labels, s.Annotations)
	}
	k.sync(t, target, map[string]string{"username": "2"})
	if s := k.get(t, "s"); s.Type != corev1.SecretTypeBasicAuth || len(s.Labels) != 1 {
		t.Errorf("after a change it is of type %s, with the labels %v", s.Type, s.Labels)
	}
	k.merge(t, "s", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"team","more":"1"}}}`)
	k.sync(t, target, map[string]string{"username": "3"})
	if labels := k.get(t, "s").Labels; labels["app.kubernetes.io/managed-by"] != "team" || len(labels) != 2 {
		t.Errorf("the labels of others became %v", labels)
	}
	k.merge(t, "s", `{"metadata":{"labels":null,"annotations":null}}`)
	k.sync(t, target, map[string]string{"username": "4"})
	if s := k.get(t, "s"); len(s.Labels) != 0 || len(s.Annotations) != 2 {
		t.Errorf("the labels are %v again, the annotations %v", s.Labels, s.Annotations)
	}
	if s := k.get(t, "s"); s.Data["username"][0] != '4' {
		t.Errorf("the data is %q", s.Data)
	}
}

// Somebody else creates the Secret at the same time.
func TestCreatedMeanwhile(t *testing.T) {
	for _, kind := range []corev1.SecretType{corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth} {
		k := newKube(t)
		k.wire.before(func() { k.make(t, "s", kind, "username", "old", "f", "1") })
		_, err := k.trySync(t.Context(), k.created("s", "Opaque", "username"), map[string]string{"username": "1"})
		if kind == corev1.SecretTypeOpaque {
			must(t, err)
			k.expectData(t, "s", map[string]string{"username": "1", "f": "1"})
			continue
		}
		if reason := refusal(t, err); !strings.Contains(reason, "should be of type Opaque") {
			t.Errorf("the reason is %q", reason)
		}
		k.expectData(t, "s", map[string]string{"username": "old", "f": "1"})
	}
}

// as is a sink with the rights of a service account that may do these verbs.
func (k *kube) as(t *testing.T, verbs ...string) {
	t.Helper()
	account := strings.Join(append([]string{"may"}, verbs...), "-")
	token := cluster.Token(t, k.ns, account)
	cluster.Bind(t, k.ns, account, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs})
	k.sink = k.newSink(t, cluster.ConfigFor(token))
}

// An error names the verb that is missing, and where.
func TestRights(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1", "b", "2")
	fails := func(target *targets.Target, verb string) {
		t.Helper()
		_, err := k.trySync(t.Context(), target, map[string]string{"a": "canary"})
		if err == nil || !strings.Contains(err.Error(), "the verb "+verb+" for secrets in the namespace "+k.ns) || strings.Contains(err.Error(), "canary") {
			t.Errorf("without %s the error is %v", verb, err)
		}
	}
	k.as(t, "list", "patch")
	fails(k.target("s", "a"), "get")
	k.as(t, "get")
	fails(k.target("s", "a"), "patch")
	k.as(t, "get", "patch")
	fails(k.created("new", "", "a"), "create")
	// Everything else goes with these two.
	k.sync(t, k.target("s", "a", "b"), map[string]string{"a": "3"})
	k.expectData(t, "s", map[string]string{"a": "3"})
	k.as(t, "get", "patch", "create")
	k.sync(t, k.created("new", "", "a"), map[string]string{"a": "3"})
}

func TestNamespaces(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	target.Secret.Namespace = "nosuch"
	if err := k.sink.Apply(t.Context(), target, setAll("a", "canary")); err == nil || !strings.Contains(err.Error(), "there is no namespace nosuch") {
		t.Errorf("without a namespace Apply says %v", err)
	}
	must(t, cluster.Core.Namespaces().Delete(t.Context(), k.ns, metav1.DeleteOptions{}))
	target = k.created("s", "", "a")
	if err := k.sink.Apply(t.Context(), target, setAll("a", "canary")); err == nil || !strings.Contains(err.Error(), "the namespace "+k.ns+" is being deleted") {
		t.Errorf("in a namespace that ends Apply says %v", err)
	}
}

// A removal from what is gone is done.
func TestRemovalFromNothing(t *testing.T) {
	k := newKube(t)
	for _, target := range []*targets.Target{k.target("s", "a"), k.created("s", "", "a")} {
		calls := k.wire.since(func() { must(t, k.sink.Apply(t.Context(), target, sinks.Changes{Remove: []string{"a"}})) })
		if !slices.Equal(calls, []string{"GET"}) {
			t.Errorf("the calls are %q", calls)
		}
	}
	k.expectNone(t)
}
