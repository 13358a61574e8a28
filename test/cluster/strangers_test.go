package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/secretsync/syncer/pkg/health/status"
)

// keySet makes the set jwt, which the host rotates may change and app may read.
func (w *world) keySet(rotated string) {
	w.Helper()
	w.Server.Policy(`
- !variable jwt
- !variable jwt/control
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable jwt }
`)
	w.rotates(rotated)
}

// showing makes a Secret that shows the set jwt.
func (w *world) showing(namespace, name string, changes ...func(*corev1.Secret)) *corev1.Secret {
	w.Helper()
	keys := func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(`"*": {keys: jwt}`) }
	return w.secretIn(namespace, name, nil, append(changes, keys)...)
}

// shownIn returns what a Secret of a namespace shows of the set jwt.
func (w *world) shownIn(namespace, name string) shownSet {
	var all map[string]shownSet
	_ = json.Unmarshal([]byte(w.readIn(namespace, name).Annotations["conjur.org/rotation"]), &all)
	return all["jwt"]
}

// idles waits until a Secret shows another primary, alone, and returns it.
func (w *world) idles(name string, before shownSet) (now shownSet) {
	w.Helper()
	eventually(w.TB, "a set that is idle, with a new primary", func() bool {
		now = w.shown(name)
		return now.Stage == "idle" && now.Primary != before.Primary && len(now.IDs) == 1
	})
	return now
}

// rotationEvents returns all Events of a namespace about rotations.
func (w *world) rotationEvents(namespace string) (messages []string) {
	w.Helper()
	list, err := plane.Core.Events(namespace).List(context.WithoutCancel(w.Context()), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range list.Items {
		if strings.HasPrefix(e.Reason, "Rotation") {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// forged makes a Secret claim a late step, under the name of a field manager.
func (w *world) forged(namespace, name, manager string) {
	w.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"conjur.org/managed-by-provider": "true"},
			Annotations: map[string]string{"conjur.org/rotation": `{"jwt":{"step":1000000,"stage":"idle","primary":"x","ids":["x"]}}`},
		},
		Data: map[string][]byte{"conjur-map": []byte(`"*": {keys: jwt}`)},
	}
	if _, err := plane.Core.Secrets(namespace).Create(w.Context(), s, metav1.CreateOptions{FieldManager: manager}); err != nil {
		w.Fatal(err)
	}
}

// TestAStrangerStopsNoRotation: a rotation waits for no Secret whose identity may not read
// the set, and sends it no Event, even right after the start of the process.
func TestAStrangerStopsNoRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.join()
	w.Server.Policy("- !host other\n")
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + mallory
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}}")
	i := slices.IndexFunc(w.settings, func(s string) bool { return strings.Contains(s, "identities: [") })
	w.settings[i] = strings.Replace(w.settings[i], "identities: [", "identities: ["+w.identity("other", mallory)+", ", 1)
	w.showing(w.namespace, "keys")
	w.showing(mallory, "stranger")
	w.forged(mallory, "forged", "syncer")
	w.forged(mallory, "forged-by-kubectl", "kubectl")
	p := w.start()
	before := w.idles("keys", shownSet{})
	w.rotate("now", "jwt").Exit(0)
	before = w.idles("keys", before)
	p.Stop()
	p = w.start() // it knows nothing yet
	w.rotate("now", "jwt").Exit(0)
	w.idles("keys", before)
	if said := w.rotationEvents(mallory); len(said) > 0 {
		t.Errorf("the stranger hears of the set: %q", said)
	}
	p.Stop()
}

// TestAForgedAnnotationOfAnotherManagerCountsForNothing, even where the set may be
// read.
func TestAForgedAnnotationOfAnotherManagerCountsForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}}")
	w.showing(w.namespace, "keys")
	w.forged(w.namespace, "forged", "kubectl")
	p := w.start()
	before := w.idles("keys", shownSet{})
	w.rotate("now", "jwt").Exit(0)
	w.idles("keys", before)
	p.Stop()
}

// TestOnlyPermittedNamespacesAreWaitedFor: among those that may read a set, the
// configuration chooses.
func TestOnlyPermittedNamespacesAreWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + mallory
	w.keySet(fmt.Sprintf("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s, namespaces: [%s]}}", w.namespace))
	w.showing(w.namespace, "keys")
	p := w.start()
	before := w.idles("keys", shownSet{})
	w.forged(mallory, "forged", "syncer")
	p.Stop()
	p = w.start()
	w.rotate("now", "jwt").Exit(0)
	w.idles("keys", before)
	if said := w.rotationEvents(mallory); len(said) > 0 {
		t.Errorf("the stranger hears of the set: %q", said)
	}
	p.Stop()
}

// unbind takes Syncer's rights in a namespace away, and bind gives them back.
func (w *world) unbind(namespace string) (bind func()) {
	w.Helper()
	roles, err := rbacv1client.NewForConfig(plane.Config())
	if err != nil {
		w.Fatal(err)
	}
	bindings := roles.RoleBindings(namespace)
	all, err := bindings.List(w.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 {
		w.Fatalf("%d role bindings in %s: %v", len(all.Items), namespace, err)
	}
	binding := &all.Items[0]
	if err := bindings.Delete(w.Context(), binding.Name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	return func() {
		w.Helper()
		binding.ResourceVersion, binding.UID = "", ""
		if _, err := bindings.Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestANamespaceWithoutRightsStopsNoOthersSet: at the start, a rotation does not wait for a
// namespace that never showed the set, even if its identity may read the set.
func TestANamespaceWithoutRightsStopsNoOthersSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + mallory
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}}")
	w.showing(w.namespace, "keys")
	p := w.start()
	before := w.idles("keys", shownSet{})
	p.Stop()
	w.unbind(mallory)
	p = w.start()
	w.rotate("now", "jwt").Exit(0)
	w.idles("keys", before)
	p.Stop()
}

// TestANamespaceThatShowedTheSetIsWaitedForAWhile: then a version is promoted. No version is
// retired before the namespace can be read. It makes no difference whether the rights were
// lost before the start or later.
func TestANamespaceThatShowedTheSetIsWaitedForAWhile(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"before the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			shared := w.join()
			w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + shared
			w.Env["SERVER_STATUS"] = "true"
			w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 5s}}")
			w.showing(w.namespace, "keys")
			w.showing(shared, "keys")
			p := w.start()
			before := w.idles("keys", shownSet{})
			eventually(t, "the set in both namespaces, and a note of them", func() bool {
				p := w.rotate("status", "jwt", "--output", "json")
				return w.shownIn(shared, "keys").Primary == before.Primary && p.ExitCode() == 0 && strings.Contains(p.Log(), shared)
			})
			if !later {
				p.Stop()
			}
			bind := w.unbind(shared)
			if !later {
				p = w.start()
			}
			w.withoutRights(shared, before)
			bind()
			eventually(t, "the old one gone from both namespaces", func() bool {
				return len(w.shown("keys").IDs) == 1 && len(w.shownIn(shared, "keys").IDs) == 1
			})
			p.Stop()
		})
	}
}

// withoutRights rotates the set jwt while Syncer cannot read a namespace that shows it.
func (w *world) withoutRights(namespace string, before shownSet) {
	w.Helper()
	w.rotate("now", "jwt").Exit(0)
	eventually(w.TB, "a status that names the namespace", func() bool {
		s, err := status.Client{URL: "http://" + w.address}.Get(w.Context())
		return err == nil && len(s.Rotations) == 1 && strings.Contains(s.Rotations[0].Unread, namespace) && s.Rotations[0].Problem == ""
	})
	eventually(w.TB, "an Event that names the namespace", func() bool {
		return slices.ContainsFunc(w.events("keys", "RotationWaiting"), func(m string) bool { return strings.Contains(m, namespace) })
	})
	eventually(w.TB, "a new primary, and the old one beside it", func() bool {
		after := w.shown("keys")
		return after.Primary != before.Primary && len(after.IDs) == 2
	})
	w.polls(5)
	if now := w.shown("keys"); len(now.IDs) != 2 {
		w.Errorf("a version was retired that a namespace may use which cannot be read: %+v", now)
	}
	if _, metrics := w.get("/metrics"); !strings.Contains(metrics, fmt.Sprintf(`syncer_rotation_unread_seconds{set="jwt",unread=%q}`, namespace)) {
		w.Error("no metric names the namespace")
	}
}

// TestMissingVariablesDelayNoOtherNamespacesRemoval with one identity for both namespaces,
// right after a start, and if the Secret contains data under their keys.
func TestMissingVariablesDelayNoOtherNamespacesRemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + mallory
	w.Variables("a", "b", "c", "d")
	w.secret("alice", map[string]string{"a": "a", "b": "b", "c": "c", "d": "d"})
	missing := map[string]string{}
	for i := range 12 {
		missing[fmt.Sprintf("k%d", i)] = fmt.Sprintf("missing/%d", i)
	}
	w.secretIn(mallory, "bad", missing, func(s *corev1.Secret) { s.Data["k0"] = []byte("held") })
	p := w.start()
	w.awaitData("alice", map[string]string{"a": w.Value["a"], "d": w.Value["d"]})
	w.Server.Policy("- !delete { record: !variable a }\n")
	w.awaitData("alice", map[string]string{"a": "", "b": w.Value["b"]}) // not after the hold of ten minutes
	p.Stop()
}
