package kubesecrets_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// outlining syncs as the workers do: it reads only what is not recognized, and again what
// was outdated. Without recognize, it reads before each change.
type outlining struct {
	*kube
	recognize            bool
	recognized, outdated int
}

func (o *outlining) sync(t *testing.T, target *targets.Target, want map[string]string) error {
	t.Helper()
	sink := o.sink.Sink.(*kubesecrets.Sink)
	lane := o.sink.Set.Lane("")
	lane.Put(target)
	r, ok := lane.Begin(target.Key)
	if !ok {
		t.Fatal("the target is held")
	}
	defer func() { lane.Settle(r) }()
	state, known := sinks.State{}, false
	if o.recognize {
		state, known = sink.Recognize(r, values(want))
	}
	for {
		if !known {
			var err error
			if state, err = sink.Read(t.Context(), r); err != nil {
				r.Status.See(state.Sight)
				return err
			}
		} else {
			o.recognized++
		}
		r.Status.See(state.Sight)
		r.Seen = state.Seen
		var err error
		r.Status.Sight, err = sink.Apply(t.Context(), r, sinkstest.Plan(state, want, 0))
		if !errors.Is(err, sinks.ErrOutdated) {
			return err
		}
		if !known {
			t.Fatal("a state that was read is outdated")
		}
		known = false
		o.outdated++
	}
}

// restart continues with a process whose watch shows the Secret as it is.
func (o *outlining) restart(t *testing.T) {
	t.Helper()
	o.sink = o.newSink(t, cluster.Config())
	if live, err := o.secrets.Get(t.Context(), "s", metav1.GetOptions{}); err == nil && o.recognize {
		kubesecrets.RecordBeforeFirstSync(&o.sink.Set, live)
	}
}

// settled is a Secret without what differs between two equal histories.
func settled(s *corev1.Secret) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s immutable %v labels %v\n", s.Type, s.Immutable != nil && *s.Immutable, s.Labels)
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		fmt.Fprintf(&text, "  %s = %q\n", key, s.Data[key])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		fmt.Fprintf(&text, "  annotation %s\n", name)
	}
	var owners []string
	for _, e := range s.ManagedFields {
		owners = append(owners, fmt.Sprintf("  %s %s %s\n", e.Manager, e.Operation, e.FieldsV1.GetRawString()))
	}
	slices.Sort(owners)
	return text.String() + strings.Join(owners, "")
}

// TestAnOutlineLeavesWhatAReadLeaves compares two Secrets with the same history. One is read
// before each change, the other only where an outline does not do. Other clients change both
// in each way that the sink has to notice.
func TestAnOutlineLeavesWhatAReadLeaves(t *testing.T) {
	steps := 150
	if testing.Short() {
		steps = 60
	}
	for seed := range uint64(4) {
		created := seed%2 == 0
		t.Run(fmt.Sprintf("created %v, seed %d", created, seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			tried := &outlining{kube: newKube(t), recognize: true}
			model := &outlining{kube: newKube(t)}
			both := []*outlining{tried, model}
			if !created {
				for _, o := range both {
					o.make(t, "s", "", targets.ConjurMapKey, "a: a")
				}
			}
			pick := func(from ...string) string { return from[random.IntN(len(from))] }
			keys, want := []string{"a", "b"}, map[string]string{"a": "0", "b": "0"}
			for step := range steps {
				var did []string
				for range min(step, random.IntN(4)/3) { // most syncs follow none
					patch := fmt.Sprintf(pick(
						`{"data":{%q:"eA=="}}`, `{"data":{%q:null}}`, `{"data":{"theirs":"eA=="},"metadata":{"labels":{"l":%q}}}`,
						`{"metadata":{"annotations":{"note":%q}}}`, `{"metadata":{"annotations":{"conjur.org/secret-revision":null,"other":%q}}}`,
						`{"metadata":{"labels":{"app.kubernetes.io/managed-by":%q}}}`, `{"metadata":{"annotations":{"conjur.org/restarted":%q}}}`,
						`apply %s`, `delete %s`,
					), pick("a", "b", "c"))
					did = append(did, patch)
					for _, o := range both {
						o.disturb(t, patch, want, created)
					}
				}
				switch random.IntN(8) {
				case 0: // other keys
					keys = [][]string{{"a"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}}[random.IntN(4)]
				case 1: // nothing new
				case 2: // another process
					for _, o := range both {
						o.restart(t)
					}
				default:
					want[pick(keys...)] = fmt.Sprint(step)
				}
				wanted := map[string]string{}
				for _, key := range keys {
					wanted[key] = want[key]
				}
				var left [2]string
				for i, o := range both {
					target := o.target("s", keys...)
					target.Secret.Create = created
					err := o.sync(t, target, wanted)
					left[i] = fmt.Sprintf("error %v\n", err != nil)
					if s, err := o.secrets.Get(t.Context(), "s", metav1.GetOptions{}); err == nil {
						left[i] += settled(s)
					}
				}
				if left[0] != left[1] {
					t.Fatalf("step %d, after %q: with an outline\n%swith a read\n%s", step, did, left[0], left[1])
				}
			}
			if tried.recognized < steps/10 || tried.outdated == 0 {
				t.Errorf("of %d syncs, only %d used an outline, and %d met a changed Secret", steps, tried.recognized, tried.outdated)
			}
		})
	}
}

// disturb changes the Secret as another client.
func (o *outlining) disturb(t *testing.T, patch string, want map[string]string, created bool) {
	t.Helper()
	verb, key, _ := strings.Cut(patch, " ")
	switch verb {
	case "apply": // it owns the key with us
		force := true
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{%q:%q}}`, key, want[key])
		if len(want[key])%2 == 0 {
			body = fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{%q:"eA=="}}`, key)
		}
		_, err := o.secrets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "applier", Force: &force})
		must(t, err)
	case "delete":
		must(t, o.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
		if created {
			o.make(t, "s", "", key, "other")
		} else {
			o.make(t, "s", "", targets.ConjurMapKey, "a: a")
		}
	default:
		o.merge(t, "s", patch)
	}
}

// TestAPlainSecretIsChangedByOneRequest says which Secrets are changed without a read.
func TestAPlainSecretIsChangedByOneRequest(t *testing.T) {
	apply, read := []string{"PATCH apply"}, []string{"GET", "PATCH apply"}
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprintf("k%02d", i)] = "1"
	}
	sixteen := maps.Clone(many)
	delete(sixteen, "k16")
	theirs := func(size int) string {
		return fmt.Sprintf(`{"data":{"theirs":%q}}`, base64.StdEncoding.EncodeToString(make([]byte, size)))
	}
	for name, c := range map[string]struct {
		kind      corev1.SecretType
		before    map[string]string // default: a and b
		patch     string            // of another client, before the Secret is read once more
		apply     string            // in its place, a server-side apply
		anew      bool              // another process reads it
		manager   string            // of the patch; default: other
		after     map[string]string // default: a has changed
		adjust    func(*targets.Target)
		meanwhile string // "delete", "make", or a patch
		verbs     []string
		calls     []string
		fails     bool
	}{
		"a new value":              {calls: apply},
		"all values":               {after: map[string]string{"a": "2", "b": "2"}, calls: apply},
		"a shorter value":          {after: map[string]string{"a": "", "b": "1"}, calls: apply},
		"the same values":          {after: map[string]string{"a": "1", "b": "1"}, calls: []string{"GET"}},
		"a key more":               {after: map[string]string{"a": "2", "b": "1", "c": "1"}, calls: read},
		"a key less":               {after: map[string]string{"a": "2"}, calls: read},
		"another key":              {after: map[string]string{"a": "2", "c": "1"}, calls: read},
		"a named key, not made":    {adjust: func(t *targets.Target) { t.Entries = append(t.Entries, targets.Entry{Alias: "c", Variable: "c"}) }, calls: read},
		"16 keys":                  {before: sixteen, after: changed(sixteen), calls: apply},
		"17 keys":                  {before: many, after: changed(many), calls: read},
		"512 KiB":                  {after: map[string]string{"a": strings.Repeat("x", 512<<10-1), "b": "1"}, calls: apply},
		"a byte more":              {after: map[string]string{"a": strings.Repeat("x", 512<<10), "b": "1"}, calls: read},
		"256 KiB of others":        {patch: theirs(256 << 10), calls: apply},
		"a byte more of others":    {patch: theirs(256<<10 + 1), calls: read},
		"seen by a watch":          {anew: true, calls: apply},
		"restarts of others, seen": {anew: true, patch: `{"metadata":{"annotations":{"conjur.org/restarted":"x"}}}`, calls: read},
		"no revision, seen": {
			anew: true, patch: `{"metadata":{"annotations":{"conjur.org/secret-revision":null,"conjur.org/secret-revised":null,"conjur.org/secret-filled":null}}}`, calls: read,
		},
		"our update": {manager: targets.FieldManager, patch: `{"metadata":{"labels":{"l":"x"}}}`, calls: read},
		"another type": {
			kind: corev1.SecretTypeBasicAuth, before: map[string]string{"username": "1", "password": "1"}, after: map[string]string{"username": "1", "password": "2"},
			calls: []string{"GET", "GET", "PATCH apply"},
		},
		"immutable":           {patch: `{"immutable":true}`, calls: []string{"GET"}, fails: true},
		"a key of two owners": {apply: `"data":{"a":"MQ=="}`, calls: read},
		"a wildcard":          {adjust: func(t *targets.Target) { t.Expanded = map[string]bool{"app/a": true} }, calls: read},
		"a wildcard of a group": {adjust: func(t *targets.Target) {
			t.Entries = t.Entries[1:]
			t.Secret.Groups = []*targets.Target{{Group: "a", Expanded: map[string]bool{"app/a": true}}}
		}, calls: read},
		"another definition":   {adjust: func(t *targets.Target) { t.Secret.UID = "other" }, calls: []string{"GET"}, fails: true},
		"changed meanwhile":    {meanwhile: theirs(1), calls: []string{"PATCH apply", "GET", "PATCH apply"}},
		"deleted meanwhile":    {meanwhile: "delete", calls: []string{"PATCH apply", "GET", "GET", "PATCH apply"}},
		"made again meanwhile": {meanwhile: "make", calls: []string{"PATCH apply", "GET", "PATCH apply"}},
		"without the verb":     {verbs: []string{"get", "update"}, calls: []string{"PATCH apply", "GET", "PATCH apply", "GET", "PATCH apply", "PUT vnd.kubernetes.protobuf"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outlining{kube: newKube(t), recognize: true}
			one := map[string]string{"a": "1", "b": "1"}
			before, after := c.before, c.after
			if before == nil {
				before = one
			}
			if after == nil {
				after = map[string]string{"a": "2", "b": "1"}
			}
			keys := slices.Sorted(maps.Keys(before))
			must(t, o.sync(t, o.created("s", c.kind, keys...), before))
			switch {
			case c.apply != "":
				_, err := o.secrets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},`+c.apply+`}`), metav1.PatchOptions{FieldManager: "applier"})
				must(t, err)
			case c.patch != "":
				_, err := o.secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(c.patch), metav1.PatchOptions{FieldManager: cmp.Or(c.manager, "other")})
				must(t, err)
			}
			if c.anew {
				o.restart(t)
			}
			must(t, o.sync(t, o.created("s", c.kind, keys...), before))
			if c.verbs != nil {
				knows := o.sink
				o.as(t, c.verbs...)
				knows.Sink, o.sink = o.sink.Sink, knows
			}
			switch c.meanwhile {
			case "":
			case "delete", "make":
				must(t, o.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
				if c.meanwhile == "make" {
					o.make(t, "s", "", "a", "1")
				}
			default:
				o.merge(t, "s", c.meanwhile)
			}
			target := o.created("s", c.kind, slices.Sorted(maps.Keys(after))...)
			if c.adjust != nil {
				c.adjust(target)
			}
			calls := o.wire.since(func() {
				if err := o.sync(t, target, after); (err != nil) != c.fails {
					t.Error(err)
				}
			})
			if !slices.Equal(calls, c.calls) {
				t.Errorf("the calls are %q, want %q", calls, c.calls)
			}
			got := texts(o.get(t, "s").Data)
			delete(got, "theirs")
			if c.fails {
				after = before
			}
			if !maps.Equal(got, after) {
				t.Error("the Secret does not hold the wanted values")
			}
		})
	}
}

// TestAnOutlineNeedsAnApply: an apply removes nothing that an update of ours has written.
func TestAnOutlineNeedsAnApply(t *testing.T) {
	o := &outlining{kube: newKube(t), recognize: true}
	o.make(t, "s", "", targets.ConjurMapKey, "a: a")
	o.merge(t, "s", `{"metadata":{"annotations":{"note":"x"}}}`) // from now on, no update makes these maps
	o.as(t, "get", "update")
	must(t, o.sync(t, o.target("s", "a"), map[string]string{"a": "1"}))
	calls := o.wire.since(func() { must(t, o.sync(t, o.target("s", "a"), map[string]string{"a": "2"})) })
	if want := []string{"GET", "PATCH apply", "GET", "PATCH apply", "PUT vnd.kubernetes.protobuf"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
}

// TestAnOutlineKeepsRestarts: the apply lists the annotation that says who needs a restart.
func TestAnOutlineKeepsRestarts(t *testing.T) {
	o := &outlining{kube: newKube(t), recognize: true}
	target := o.created("s", "", "a")
	target.Secret.Restart = []string{"deployment/web"}
	for _, value := range []string{"1", "2", "3"} {
		must(t, o.sync(t, target, map[string]string{"a": value}))
	}
	if o.recognized != 2 || o.outdated != 0 {
		t.Errorf("%d changes used an outline, and %d met a changed Secret", o.recognized, o.outdated)
	}
	target.Secret.Restart = nil
	before := o.get(t, "s").Annotations[targets.RestartsAnnotation]
	must(t, o.sync(t, target, map[string]string{"a": "4"}))
	if after, noted := o.get(t, "s").Annotations[targets.RestartsAnnotation]; !noted || before == "" {
		t.Errorf("the restarts %q have become %q", before, after)
	}
}

// TestAnOutlineKeepsNoValue: a key that keeps its value is read, because only its name is
// known.
func TestAnOutlineKeepsNoValue(t *testing.T) {
	o := &outlining{kube: newKube(t), recognize: true}
	target := o.created("s", "", "a", "b")
	must(t, o.sync(t, target, map[string]string{"a": "1", "b": "1"}))
	r, _ := o.sink.Set.Lane("").Begin(target.Key)
	sink, want := o.sink.Sink.(*kubesecrets.Sink), values(map[string]string{"a": "2", "b": "2"})
	state, ok := sink.Recognize(r, want)
	r.Seen = state.Seen
	_, err := sink.Apply(t.Context(), r, sinks.Changes{Parts: map[string]secret.Value{"a": want["a"], "b": state.Parts["b"]}, Set: []string{"a"}, Kept: []string{"b"}})
	must(t, err)
	if o.expectData(t, "s", map[string]string{"a": "2", "b": "1"}); !ok {
		t.Error("it was not recognized")
	}
}

func changed(values map[string]string) map[string]string {
	values = maps.Clone(values)
	for key := range values {
		values[key] += "2"
	}
	return values
}
