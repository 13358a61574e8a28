package kubesecrets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// wireFault is something that happens to one request: to be sent or not, and
// to come back as something else.
type wireFault struct {
	name string
	sent bool
	back func(r *http.Request, genuine *http.Response, cancel func()) (*http.Response, error)
}

func lost(*http.Request, *http.Response, func()) (*http.Response, error) {
	return nil, errors.New("connection lost")
}

func cancelled(r *http.Request, _ *http.Response, cancel func()) (*http.Response, error) {
	cancel()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// cut returns the first half of the answer.
func cut(end error) func(*http.Request, *http.Response, func()) (*http.Response, error) {
	return func(_ *http.Request, genuine *http.Response, _ func()) (*http.Response, error) {
		body, err := io.ReadAll(genuine.Body)
		half := io.Reader(strings.NewReader(string(body[:len(body)/2])))
		if end != nil {
			half = io.MultiReader(half, errorReader{end})
		}
		genuine.Body, genuine.ContentLength = io.NopCloser(half), -1
		return genuine, err
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// instead answers with a code, as the API server does.
func instead(code int, header ...string) func(*http.Request, *http.Response, func()) (*http.Response, error) {
	return func(r *http.Request, _ *http.Response, _ func()) (*http.Response, error) {
		status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":%q}`, code, canary)
		resp := answer(r, code, "application/json", status)
		for i := 0; i < len(header); i += 2 {
			resp.Header.Set(header[i], header[i+1])
		}
		return resp, nil
	}
}

func page(r *http.Request, _ *http.Response, _ func()) (*http.Response, error) {
	return answer(r, http.StatusBadGateway, "text/html", "<p>"+canary), nil
}

var wireFaults = []wireFault{
	{"lost before", false, lost},
	{"lost after", true, lost},
	{"cancelled before", false, cancelled},
	{"cancelled after", true, cancelled},
	{"cut", true, cut(io.ErrUnexpectedEOF)},
	{"cut unnoticed", true, cut(nil)},
	{"400", false, instead(400)},
	{"401", false, instead(401)},
	{"403", false, instead(403)},
	{"404", false, instead(404)},
	{"409", false, instead(409)},
	{"409 after", true, instead(409)},
	{"429", false, instead(429)},
	{"429 and again", false, instead(429, "Retry-After", "0")},
	{"500", false, instead(500)},
	{"500 after", true, instead(500)},
	{"502 of a proxy", false, page},
	{"502 of a proxy after", true, page},
	{"503 after and again", true, instead(503, "Retry-After", "0")},
	{"504 after", true, instead(504)},
}

// wireCase is a change of a Secret, of which every request goes wrong in turn.
type wireCase struct {
	name   string
	kind   corev1.SecretType
	others map[string]string // what another client wrote first; nil: there is no Secret
	synced map[string]string // what we wrote then; nil: nothing
	keys   []string          // that the target names
	want   map[string]string
}

var wireCases = []wireCase{
	{"create", "", nil, nil, []string{"a", "b"}, map[string]string{"a": canary, "b": canary}},
	{"fill", "", map[string]string{"f": "f"}, nil, []string{"a", "b"}, map[string]string{"a": canary, "b": canary}},
	{"change", "", nil, map[string]string{"a": "1", "b": "2"}, []string{"a", "b"}, map[string]string{"a": canary, "b": canary + "2"}},
	{"take over equal", "", map[string]string{"f": "f", "a": "1", "b": "2"}, nil, []string{"a", "b"}, map[string]string{"a": "1", "b": "2"}},
	{"take over other", "", map[string]string{"f": "f", "a": "1", "b": "2"}, nil, []string{"a", "b"}, map[string]string{"a": canary, "b": "2"}},
	{"key leaves", "", map[string]string{"f": "f"}, map[string]string{"a": "1", "b": "2"}, []string{"a"}, map[string]string{"a": canary}},
	{"shared key leaves", "", map[string]string{"f": "f", "a": "1", "b": "2"}, map[string]string{"a": "1", "b": "2"}, []string{"a"}, map[string]string{"a": canary}},
	{"revoked", "", map[string]string{"f": "f", "b": "2"}, map[string]string{"a": "1", "b": "2"}, []string{"a", "b"}, nil},
	{"revoked, never ours", "", map[string]string{"f": "f", "a": "1", "b": "2"}, nil, []string{"a", "b"}, map[string]string{"b": canary}},
	{"revoked, demanded", corev1.SecretTypeBasicAuth, nil, map[string]string{"username": "1", "password": "2"}, []string{"username", "password"}, nil},
}

// Whatever happens to any request, the Secret's data is as before or as
// wanted, never in between, what is not ours is untouched, and a repetition
// makes all right.
func TestEveryRequestFails(t *testing.T) {
	for _, c := range wireCases {
		t.Run(c.name, func(t *testing.T) {
			k := newKube(t)
			calls := c.run(t, k, "s", 0, wireFault{})
			for n := range calls {
				for i, fault := range wireFaults {
					if testing.Short() && (n+i)%3 > 0 { // each request and each fault all the same
						continue
					}
					t.Run(fmt.Sprintf("%d %s %s", n+1, calls[n], fault.name), func(t *testing.T) {
						c.run(t, k, fmt.Sprintf("s-%d-%d", n+1, i), n+1, fault)
					})
				}
			}
		})
	}
}

// run makes the change with a fault at request n, none when that is 0, checks
// all that must hold, and gives the requests that the change made.
func (c wireCase) run(t *testing.T, k *kube, name string, n int, fault wireFault) []string {
	target := k.created(name, c.kind, c.keys...)
	k.sink, k.wire.hook = k.newSink(t, cluster.Config()), nil
	if c.others != nil {
		k.make(t, name, c.kind, pairs(c.others)...)
	}
	if c.synced != nil {
		k.sync(t, target, c.synced)
	}
	before := k.look(t, name)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k.wire.hook = func(i int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if i != n {
			return next.RoundTrip(r)
		}
		var genuine *http.Response
		if fault.sent {
			var err error
			if genuine, err = next.RoundTrip(r); err != nil {
				t.Errorf("the genuine request fails: %v", err)
			}
			defer genuine.Body.Close()
		}
		return fault.back(r, genuine, cancel)
	}
	var err error
	calls := k.wire.since(func() { _, err = k.trySync(ctx, target, c.want) })
	k.wire.hook = nil
	expectSilent(t, err)
	c.expectWhole(t, before, k.look(t, name), err)

	k.sync(t, target, c.want)
	after := k.look(t, name)
	c.expectWhole(t, before, after, nil)
	k.sink = k.newSink(t, cluster.Config())
	if again := k.wire.since(func() { k.sync(t, target, c.want) }); !slices.Equal(again, []string{"GET"}) {
		t.Errorf("repeated, it takes %q", again)
	}
	for key := range c.want {
		if managers := owners(t, after, key); !slices.Contains(managers, "syncer Apply") {
			t.Errorf("%s is owned by %q", key, managers)
		}
	}
	return calls
}

// look returns a Secret, an empty one when there is none.
func (k *kube) look(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	list, err := k.secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(t, err)
	if len(list.Items) == 0 {
		return &corev1.Secret{}
	}
	return &list.Items[0]
}

// expectWhole checks that the Secret is as before, or as wanted. Its revision
// tells which.
func (c wireCase) expectWhole(t *testing.T, before, now *corev1.Secret, err error) {
	t.Helper()
	old, got, wanted := texts(before.Data), texts(now.Data), map[string]string{}
	for key, value := range c.others {
		if !slices.Contains(c.keys, key) && c.synced[key] == "" {
			wanted[key] = value
		}
	}
	maps.Copy(wanted, c.want)
	if c.kind == corev1.SecretTypeBasicAuth {
		wanted = map[string]string{"username": "", "password": ""}
	}
	isOld, isNew := maps.Equal(got, old), maps.Equal(got, wanted)
	if !isNew && (err == nil || !isOld) {
		t.Errorf("it holds %q; want %q or, failed, %q (%v)", got, wanted, old, err)
	}
	if raised := now.Annotations[targets.RevisionAnnotation] != before.Annotations[targets.RevisionAnnotation]; raised == isOld {
		t.Errorf("the data changed: %t; the revision: %t", !isOld, raised)
	}
}

// A change whose answer was lost is found when it is there, by the same sink.
func TestLostAnswerIsFound(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if r.Method == http.MethodPatch {
			must(t, err)
			return nil, errors.Join(errors.New("connection lost"), resp.Body.Close())
		}
		return resp, err
	}
	if _, err := k.trySync(t.Context(), target, map[string]string{"a": "1"}); err == nil {
		t.Error("no error")
	}
	k.wire.hook = nil
	state := k.read(t, target)
	if c := sinkstest.Plan(state, map[string]string{"a": "1"}, 0); !c.Empty() || !state.Parts["a"].Equal(secret.New([]byte("1"))) {
		t.Errorf("read again, there is more to do: %q, stale %t", c.Set, state.Stale)
	}
	if k.news(k.get(t, "s")) {
		t.Error("read again, it is news")
	}
}
