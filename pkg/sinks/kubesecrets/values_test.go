package kubesecrets_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// recorder keeps the values of all Secrets that a sink is given.
type recorder struct {
	corev1client.SecretsGetter
	values map[string][][]byte
}

type recording struct {
	corev1client.SecretInterface
	*recorder
}

func (r *recorder) Secrets(namespace string) corev1client.SecretInterface {
	return recording{r.SecretsGetter.Secrets(namespace), r}
}

func (r *recorder) record(s *corev1.Secret) {
	for key, value := range s.Data {
		r.values[key] = append(r.values[key], value)
	}
}

func (r recording) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	s, err := r.SecretInterface.Get(ctx, name, o)
	if err == nil {
		r.record(s)
	}
	return s, err
}

func (r recording) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, sub ...string) (*corev1.Secret, error) {
	s, err := r.SecretInterface.Patch(ctx, name, kind, body, o, sub...)
	if err == nil {
		r.record(s)
	}
	return s, err
}

// Read leaves the values that are ours to its caller and clears all others;
// Apply clears all, but those of its caller.
func TestValuesAreCleared(t *testing.T) {
	k := newKube(t)
	k.makeForeign(t, "1", "2", "other", nil)
	r := &recorder{secretsOf(t, cluster.Config()), map[string][][]byte{}}
	k.sink = sinkstest.Keep(kubesecrets.New(r))
	target := k.target("s", "a", "b", "none")
	cleared := func(when string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			for _, value := range r.values[key] {
				if len(value) == 0 || !bytes.Equal(value, make([]byte, len(value))) {
					t.Errorf("%s, of %s there is %q", when, key, value)
				}
			}
		}
	}
	state := k.read(t, target)
	cleared("after Read", "foreign", targets.ConjurMapKey)
	if string(state.Parts["a"].Bytes()) != "1" || string(state.Parts["b"].Bytes()) != "2" || len(state.Parts) != 2 {
		t.Error("Read has not the values")
	}
	for _, v := range state.Parts {
		v.Wipe()
	}
	cleared("wiped", "a", "b")

	c := setAll("a", "3")
	c.Remove = []string{"b"}
	must(t, k.sink.Apply(t.Context(), target, c))
	cleared("after Apply", "a", "b", "foreign", targets.ConjurMapKey)
	if n := len(r.values["foreign"]); n != 4 {
		t.Errorf("there were %d answers", n)
	}
	if string(c.Parts["a"].Bytes()) != "3" {
		t.Error("Apply has cleared the value of its caller")
	}
	k.expectForeign(t, k.get(t, "s"), map[string]string{"a": "3"})
}

// share makes another manager an owner of the key, by a server-side apply of
// the value that it has.
func (k *kube) share(t *testing.T, key, value string) {
	t.Helper()
	body := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"` + key + `":"` + encode(value) + `"}}`
	_, err := k.secrets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "late"})
	must(t, err)
}

// A key that gets another owner in the very moment in which we remove it goes
// all the same, although no later sync would take it for ours.
func TestSharedMeanwhile(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	must(t, k.sink.Apply(t.Context(), target, setAll("a", "1", "b", "2")))
	k.wire.before(func() { k.share(t, "b", "2") })
	k.sync(t, target, map[string]string{"a": "1"})
	k.expectData(t, "s", map[string]string{"a": "1"})
}

// What was removed must not be in the answer.
func TestAnswerIsLookedAt(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a", "b")
	k.sync(t, target, map[string]string{"a": "1", "b": "2"})
	swallowed := false
	k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && !swallowed {
			swallowed = true
			r = r.Clone(r.Context())
			r.Method, r.Body, r.URL.RawQuery = http.MethodGet, nil, ""
		}
		return next.RoundTrip(r)
	}
	k.sync(t, target, map[string]string{"a": "1"})
	if k.expectData(t, "s", map[string]string{"a": "1"}); !swallowed {
		t.Error("no write was swallowed")
	}
}

// Endless conflicts are an error, after a number of attempts.
func TestEndlessConflicts(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			return instead(http.StatusConflict)(r, nil, nil)
		}
		return next.RoundTrip(r)
	}
	calls := k.wire.since(func() {
		err := k.sink.Apply(t.Context(), k.target("s", "a"), setAll("a", "2"))
		if err == nil || !strings.Contains(err.Error(), "another client changed it") {
			t.Errorf("the error is %v", err)
		}
	})
	if n := len(calls); n != 32 || !slices.Equal(calls[:3], []string{"GET", "PATCH apply", "GET"}) {
		t.Errorf("the %d calls are %q", n, calls)
	}
}

// The map itself is never a part, even where the definition or the API server
// takes it for ours; and it stays.
func TestConjurMapIsNoPart(t *testing.T) {
	k := newKube(t)
	body := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"MQ==","` + targets.ConjurMapKey + `":"` + encode("map") + `"}}`
	_, err := k.secrets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: targets.FieldManager})
	must(t, err)
	target := k.target("s", "a", targets.ConjurMapKey)
	if state := k.read(t, target); len(state.Parts) != 1 {
		t.Errorf("there are %d parts", len(state.Parts))
	}
	must(t, k.sink.Apply(t.Context(), target, sinks.Changes{Parts: parts("a", "2"), Set: []string{"a"}, Remove: []string{targets.ConjurMapKey}}))
	k.expectData(t, "s", map[string]string{"a": "2", targets.ConjurMapKey: "map"})
}
