package kubesecrets_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// begin begins a sync in a process whose watch shows the Secret as it is.
func (k *kube) begin(t *testing.T, target *targets.Target) (*kubesecrets.Sink, records.Record) {
	t.Helper()
	lane := k.sink.Set.Lane("")
	lane.Put(target)
	kubesecrets.RecordBeforeFirstSync(&k.sink.Set, k.get(t, target.Secret.Name))
	r, _ := lane.Begin(target.Key)
	return k.sink.Sink.(*kubesecrets.Sink), r
}

func values(texts map[string]string) map[string]secret.Value {
	parts := map[string]secret.Value{}
	for key, text := range texts {
		parts[key] = secret.New([]byte(text))
	}
	return parts
}

// What is recognized is what Read returns, and everything in doubt is read.
func TestRecognizedIsWhatReadReturns(t *testing.T) {
	for name, c := range map[string]struct {
		patches    []string
		wants      map[string]string
		recognized bool
	}{
		"as written":                     {recognized: true},
		"a key of others besides":        {patches: []string{`{"data":{"theirs":"MQ=="}}`}, recognized: true},
		"another value":                  {patches: []string{`{"data":{"a":"eA=="}}`}},
		"the same value, but not ours":   {patches: []string{`{"data":{"a":null}}`, `{"data":{"a":"MQ=="}}`}},
		"a key is missing":               {patches: []string{`{"data":{"a":null}}`}},
		"a key too many":                 {wants: map[string]string{"a": "1"}},
		"a new value":                    {wants: map[string]string{"a": "1", "b": "new"}},
		"a named key of another, unread": {patches: []string{`{"data":{"c":"MQ=="}}`}},
		"a long revision":                {patches: []string{`{"metadata":{"annotations":{"conjur.org/secret-revision":"` + strings.Repeat("1", 200) + `"}}}`}},
		"sets":                           {patches: []string{`{"metadata":{"annotations":{"conjur.org/rotation":"x"}}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKube(t)
			wants := map[string]string{"a": "1", "b": "2"}
			target := k.created("s", "", "a", "b")
			k.sync(t, target, wants)
			for _, patch := range c.patches {
				k.merge(t, "s", patch)
			}
			if name == "a named key of another, unread" {
				target = k.created("s", "", "a", "b", "c")
			}
			if c.wants != nil {
				wants = c.wants
			}
			k.sink = k.newSink(t, cluster.Config())
			sink, r := k.begin(t, target)
			state, recognized := sink.Recognize(r, values(wants))
			if recognized != c.recognized {
				t.Fatalf("recognized is %v", recognized)
			}
			read, err := sink.Read(t.Context(), r)
			must(t, err)
			if recognized && (!reflect.DeepEqual(state.Sight, read.Sight) || !maps.EqualFunc(state.Parts, read.Parts, secret.Value.Equal)) {
				t.Errorf("it is recognized as %+v, but is %+v", state, read)
			}
			r.Status.See(read.Sight)
			if _, again := sink.Recognize(r, values(wants)); again != (name == "a new value") {
				t.Errorf("recognized after it was read: %v", again)
			}
		})
	}
}

// A Secret without anything of ours is filled by one request. If it changed meanwhile, it
// is read.
func TestABlankSecretIsNotRead(t *testing.T) {
	wants := map[string]string{"a": "1"}
	for name, c := range map[string]struct {
		before, meanwhile string
		between           string // read and write
		kind              corev1.SecretType
		verbs             []string // that are granted; none: all
		calls             []string
	}{
		"blank": {calls: []string{"PATCH apply"}},
		"with other data, changed meanwhile": {
			before: `{"data":{"theirs":"MQ=="}}`, between: `{"data":{"theirs":"Mg=="}}`, calls: []string{"GET", "PATCH apply", "GET", "PATCH apply"},
		},
		"with data of a type": {kind: corev1.SecretTypeTLS, calls: []string{"GET", "GET", "PATCH apply"}},
		"changed meanwhile":   {meanwhile: `{"data":{"theirs":"MQ=="}}`, calls: []string{"PATCH apply", "GET", "PATCH apply"}},
		"with other data":     {before: `{"data":{"theirs":"MQ=="}}`, calls: []string{"GET", "PATCH apply"}},
		"without patch":       {verbs: []string{"get", "update"}, calls: []string{"PATCH apply", "GET", "PATCH apply", "PUT vnd.kubernetes.protobuf"}},
		"immutable":           {before: `{"immutable":true}`, calls: []string{"GET"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKube(t)
			content := []string{targets.ConjurMapKey, "a: a"}
			if c.kind != "" {
				content = append(content, corev1.TLSCertKey, "", corev1.TLSPrivateKeyKey, "")
			}
			k.make(t, "s", c.kind, content...)
			if c.before != "" {
				k.merge(t, "s", c.before)
			}
			k.sink = k.newSink(t, cluster.Config())
			if c.verbs != nil {
				k.as(t, c.verbs...)
			}
			target := k.target("s", "a")
			sink, r := k.begin(t, target)
			if c.meanwhile != "" {
				k.merge(t, "s", c.meanwhile)
			}
			calls := k.wire.since(func() {
				state, ok := sink.Recognize(r, values(wants))
				if !ok {
					var err error
					state, err = sink.Read(t.Context(), r)
					must(t, err)
				}
				r.Status.See(state.Sight)
				r.Seen = state.Seen
				if c.between != "" {
					k.merge(t, "s", c.between)
				}
				_, err := sink.Apply(t.Context(), r, sinks.Changes{Parts: values(wants), Set: []string{"a"}})
				if name == "immutable" == (err == nil) {
					t.Error(err)
				}
			})
			if !slices.Equal(calls, c.calls) {
				t.Errorf("the calls are %q", calls)
			}
			if name != "immutable" && string(k.get(t, "s").Data[targets.ConjurMapKey]) != "a: a" {
				t.Error("the map was changed")
			}
		})
	}
}
