package kubesecrets_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/length"
)

// editor is another client, with keys of its own in the Secret.
type editor struct {
	k    *kube
	last map[string]string
}

// edit writes a value, by a full update of what was read, until that meets no
// conflict, and checks that its earlier edits are all there.
func (e *editor) edit(ctx context.Context, n int) error {
	for {
		s, err := e.k.secrets.Get(ctx, "s", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range e.last {
			if string(s.Data[key]) != value {
				return fmt.Errorf("their key %s holds %q, want %q", key, s.Data[key], value)
			}
		}
		key, value := "theirs-"+strconv.Itoa(n%5), strconv.Itoa(n)
		s.Data[key], s.Labels = []byte(value), map[string]string{"edit": value}
		switch _, err := e.k.secrets.Update(ctx, s, metav1.UpdateOptions{FieldManager: "editor"}); {
		case err == nil:
			e.last[key], e.last[targets.ConjurMapKey] = value, "map"
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
	}
}

var edits = length.Flag("edits", 500, 150, "how often another client edits the Secret")

// Another client edits other keys of a Secret while ours rotate, and
// one of ours comes and goes. Nothing of theirs or of ours is ever lost.
func TestEditRace(t *testing.T) {
	edits, k := edits(), newKube(t)
	k.make(t, "s", "", "a", "taken over", "b", "taken over", targets.ConjurMapKey, "map")
	var edited sync.WaitGroup
	defer edited.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	e := &editor{k: k, last: map[string]string{}}
	done := make(chan struct{})
	edited.Go(func() {
		defer close(done)
		for n := range edits {
			if err := e.edit(ctx, n); err != nil {
				t.Errorf("edit %d: %v", n, err)
				return
			}
		}
	})
	target := k.target("s", "a", "b", "c")
	ours, rounds := map[string]string{}, 0
	for racing := true; racing; rounds++ {
		select {
		case <-done:
			racing = false
		default:
		}
		ours = k.rotate(ctx, t, target, ours, rounds)
	}
	edited.Wait()
	if t.Failed() {
		return
	}
	want := maps.Clone(ours)
	maps.Copy(want, e.last)
	k.expectData(t, "s", want)
	s := k.get(t, "s")
	if s.Labels["edit"] != strconv.Itoa(edits-1) || s.Annotations[targets.RevisionAnnotation] == "" {
		t.Errorf("the labels are %v, the annotations %v", s.Labels, s.Annotations)
	}
	if t.Logf("%d rotations during %d edits", rounds, edits); rounds < edits/20 {
		t.Errorf("that is too few to be a race")
	}
}

// rotate syncs new values, as often as it takes, after checking that the last
// are there. It gives the new ones.
func (k *kube) rotate(ctx context.Context, t *testing.T, target *targets.Target, last map[string]string, n int) map[string]string {
	t.Helper()
	if s, err := k.secrets.Get(ctx, "s", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	} else {
		expectAmong(t, s, last)
	}
	want := map[string]string{"a": "a" + strconv.Itoa(n), "b": "b" + strconv.Itoa(n)}
	if n%2 == 0 {
		want["c"] = "c" + strconv.Itoa(n)
	}
	for {
		_, err := k.trySync(ctx, target, want)
		if err == nil {
			return want
		}
		if ctx.Err() != nil {
			t.Fatalf("rotation %d never came through: %v", n, err)
		}
		t.Logf("rotation %d: %v", n, err)
	}
}

// expectAmong checks that ours are there, and c only then.
func expectAmong(t *testing.T, s *corev1.Secret, ours map[string]string) {
	t.Helper()
	for key, value := range ours {
		if string(s.Data[key]) != value {
			t.Errorf("our key %s holds %q, want %q", key, s.Data[key], value)
		}
	}
	if value, ok := s.Data["c"]; ok && ours["c"] == "" {
		t.Errorf("the key c is back, with %q", value)
	}
}

// TestNoWriteLandsOnAnother: each is for the Secret as it was read, also one that
// creates it. Another process may have written with the same field manager.
func TestNoWriteLandsOnAnother(t *testing.T) {
	for _, exists := range []bool{true, false} {
		t.Run(fmt.Sprintf("exists %t", exists), func(t *testing.T) {
			k := newKube(t)
			target := k.created("s", corev1.SecretTypeOpaque, "a")
			if exists {
				k.sync(t, target, map[string]string{"a": "1"})
			}
			other := sinkstest.Keep(kubesecrets.New(secretsOf(t, cluster.Config())))
			k.wire.before(func() {
				must(t, other.Apply(t.Context(), target, setAll("a", "newer")))
			})
			calls := k.wire.since(func() { k.sync(t, target, map[string]string{"a": "2"}) })
			if n := len(slices.DeleteFunc(calls, func(c string) bool { return c == "GET" })); n != 2 {
				t.Errorf("%d writes, want one that meets a conflict, and one for what is there now", n)
			}
		})
	}
}

// TestAKeyThatSomebodyRepairsStaysRepaired: a key that a change keeps has the value that it
// has after a conflict, not the one that was read. A key that somebody removed stays away.
func TestAKeyThatSomebodyRepairsStaysRepaired(t *testing.T) {
	for patch, want := range map[string]map[string]string{
		`{"data":{"b":"` + encode("repaired") + `"}}`: {"a": "2", "b": "repaired"},
		`{"data":{"b":null}}`:                         {"a": "2"},
	} {
		k := newKube(t)
		target := k.created("s", corev1.SecretTypeOpaque, "a", "b")
		k.sync(t, target, map[string]string{"a": "1", "b": "old"})
		k.wire.before(func() {
			_, err := cluster.Core.Secrets(k.ns).Patch(t.Context(), "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			must(t, err)
		})
		change := sinks.Changes{Parts: map[string]secret.Value{"a": secret.New([]byte("2")), "b": secret.New([]byte("old"))}, Set: []string{"a"}, Kept: []string{"b"}}
		must(t, k.sink.Apply(t.Context(), target, change))
		k.expectData(t, "s", want)
	}
}
