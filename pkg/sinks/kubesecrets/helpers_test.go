package kubesecrets_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// kube is a namespace, a sink, and another client's view of the namespace.
type kube struct {
	ns      string
	sink    *sinkstest.Keeper
	wire    *wire
	secrets corev1client.SecretInterface
}

func newKube(t *testing.T) *kube {
	t.Helper()
	k := &kube{ns: cluster.Namespace(t), wire: &wire{}}
	k.sink = k.newSink(t, cluster.Config())
	k.secrets = secretsOf(t, cluster.Config()).Secrets(k.ns)
	return k
}

// newSink makes a sink that knows nothing yet; its requests go over the wire.
func (k *kube) newSink(t *testing.T, config *rest.Config) *sinkstest.Keeper {
	t.Helper()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return through{k.wire, next} })
	return sinkstest.Keep(kubesecrets.New(secretsOf(t, config)))
}

// forget is what is done when somebody has seen a Secret go.
func (k *kube) forget(name string) { k.sink.Set.Delete(targets.KubeSecretKey(k.ns, name)) }

// news reports whether others than the sink have left a Secret so.
func (k *kube) news(s *corev1.Secret) bool {
	return k.sink.Set.Observe(targets.KubeSecretKey(k.ns, s.Name), kubesecrets.Version(s.UID, s.ResourceVersion))
}

func secretsOf(t *testing.T, config *rest.Config) corev1client.SecretsGetter {
	t.Helper()
	config.WarningHandler = rest.NoWarnings{}
	client, err := corev1client.NewForConfig(config)
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// target has one entry for each key.
func (k *kube) target(name string, keys ...string) *targets.Target {
	t := &targets.Target{Key: targets.KubeSecretKey(k.ns, name), Secret: &targets.Secret{Namespace: k.ns, Name: name}}
	for _, key := range keys {
		t.Entries = append(t.Entries, targets.Entry{Alias: key, Variable: "app/" + key})
	}
	return t
}

// created is a target that is created when missing.
func (k *kube) created(name string, kind corev1.SecretType, keys ...string) *targets.Target {
	t := k.target(name, keys...)
	t.Secret.Create, t.Secret.Type = true, string(kind)
	return t
}

// make makes a Secret by an update's field manager, with data given as key
// and value in turn.
func (k *kube) make(t *testing.T, name string, kind corev1.SecretType, pairs ...string) *corev1.Secret {
	t.Helper()
	s, err := k.secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, Data: data(pairs...),
	}, metav1.CreateOptions{FieldManager: "other"})
	must(t, err)
	return s
}

func data(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

func (k *kube) get(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s, err := k.secrets.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return s
}

// merge writes with another field manager what the JSON says.
func (k *kube) merge(t *testing.T, name, patch string) *corev1.Secret {
	t.Helper()
	s, err := k.secrets.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"})
	must(t, err)
	return s
}

func (k *kube) read(t *testing.T, target *targets.Target) sinks.State {
	t.Helper()
	state, err := k.sink.Read(t.Context(), target)
	must(t, err)
	return state
}

// trySync reads, plans and applies.
func (k *kube) trySync(ctx context.Context, target *targets.Target, want map[string]string) (sinks.Changes, error) {
	state, err := k.sink.Read(ctx, target)
	if err != nil {
		return sinks.Changes{}, err
	}
	c := sinkstest.Plan(state, want, 0)
	return c, k.sink.Apply(ctx, target, c)
}

func (k *kube) sync(t *testing.T, target *targets.Target, want map[string]string) sinks.Changes {
	t.Helper()
	c, err := k.trySync(t.Context(), target, want)
	must(t, err)
	return c
}

func (k *kube) expectData(t *testing.T, name string, want map[string]string) {
	t.Helper()
	if got := texts(k.get(t, name).Data); !maps.Equal(got, want) {
		t.Errorf("the Secret holds %q, want %q", got, want)
	}
}

func texts(data map[string][]byte) map[string]string {
	texts := map[string]string{}
	for key, value := range data {
		texts[key] = string(value)
	}
	return texts
}

func parts(pairs ...string) map[string]secret.Value {
	parts := map[string]secret.Value{}
	for key, value := range data(pairs...) {
		parts[key] = secret.New(value)
	}
	return parts
}

// setAll is the changes that write all parts, given as key and value in turn.
func setAll(pairs ...string) sinks.Changes {
	c := sinks.Changes{Parts: parts(pairs...)}
	c.Set = slices.Sorted(maps.Keys(c.Parts))
	return c
}

// owners lists, for a data key, the field managers that own it.
func owners(t *testing.T, s *corev1.Secret, key string) []string {
	t.Helper()
	var managers []string
	for _, e := range s.ManagedFields {
		var fields map[string]map[string]any
		must(t, json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields["f:data"]["f:"+key]; ok {
			managers = append(managers, e.Manager+" "+string(e.Operation))
		}
	}
	slices.Sort(managers)
	return managers
}

// expectOnlyData checks that of a Secret that we did not create only data and
// the revision are ours.
func expectOnlyData(t *testing.T, s *corev1.Secret) {
	t.Helper()
	for _, e := range s.ManagedFields {
		var fields struct {
			Type, Immutable any
			Metadata        map[string]map[string]any
		}
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(e.FieldsV1.GetRawBytes()), `"f:`, `"`)), &fields))
		delete(fields.Metadata["annotations"], targets.RevisionAnnotation)
		delete(fields.Metadata["annotations"], targets.RevisedAnnotation)
		if e.Manager == targets.FieldManager && (fields.Type != nil || fields.Immutable != nil || len(fields.Metadata["labels"])+len(fields.Metadata["annotations"]) > 0) {
			t.Errorf("ours is %s", e.FieldsV1.GetRawBytes())
		}
	}
}

func refusal(t *testing.T, err error) string {
	t.Helper()
	refused, ok := errors.AsType[*sinks.RefusedError](err)
	if !ok {
		t.Fatalf("the error is %v, want a RefusedError", err)
	}
	return refused.Reason
}

// wire is what a sink's requests pass through.
type wire struct {
	mu    sync.Mutex
	calls []string // "GET", or "PATCH" and the kind of patch
	// hook, when set, answers in place of the next; n counts from 1.
	hook func(n int, r *http.Request, next http.RoundTripper) (*http.Response, error)
}

type through struct {
	*wire
	next http.RoundTripper
}

func (w through) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Type"), "application/"), "-patch")
	w.calls = append(w.calls, strings.TrimSpace(r.Method+" "+kind))
	n, hook := len(w.calls), w.hook
	w.mu.Unlock()
	if hook == nil {
		return w.next.RoundTrip(r)
	}
	return hook(n, r, w.next)
}

// since returns the calls made meanwhile.
func (w *wire) since(run func()) []string {
	w.mu.Lock()
	w.calls = nil
	w.mu.Unlock()
	run()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// before runs f once, before the first patch goes out.
func (w *wire) before(f func()) {
	var once sync.Once
	w.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			once.Do(f)
		}
		return next.RoundTrip(r)
	}
}

// answer makes a response to a request that was not sent.
func answer(r *http.Request, code int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
