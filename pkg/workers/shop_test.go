package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// data is a Sink that holds the data keys of one Secret that are ours. As with
// server-side apply, a key that is applied no more is gone.
type data struct {
	t     *testing.T
	mu    sync.Mutex
	keys  map[string]string
	ids   []string // the members that are remembered with the keys
	sets  map[string]targets.DeliveredSet
	reads int
	stale bool
	fails error
}

func (d *data) Read(context.Context, records.Record) (sinks.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	state := sinks.State{Sight: records.Sight{Version: "read"}, Stale: d.stale, Members: d.ids, Sets: d.sets, Parts: map[string]secret.Value{}}
	for key, value := range d.keys {
		state.Parts[key] = secret.New([]byte(value))
	}
	return state, nil
}

func (d *data) Apply(_ context.Context, _ records.Record, c sinks.Changes) (records.Sight, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return records.Sight{}, d.fails
	}
	if c.Parts == nil {
		d.t.Error("a Secret is never to go as a whole")
	}
	if c.Members != nil {
		d.ids = c.Members
	}
	if c.Sets != nil { // as an annotation keeps them
		text, _ := json.Marshal(*c.Sets)
		d.sets = nil
		_ = json.Unmarshal(text, &d.sets)
	}
	if c.Empty() {
		return records.Sight{Version: "written"}, nil
	}
	before := d.keys
	d.keys, d.stale = map[string]string{}, false
	for key, value := range c.Parts {
		d.keys[key] = string(value.Bytes())
	}
	for key := range before {
		if _, stays := d.keys[key]; !stays && !slices.Contains(c.Remove, key) {
			d.t.Errorf("the key %q goes, and is not among those to remove", key)
		}
	}
	return records.Sight{Version: "written"}, nil
}

// shop is a fixture with the target "secret/shop/db", which the tests define as
// its Secret would.
type shop struct {
	*fixture
	data *data
	logs *observer.ObservedLogs
	def  definitions.SecretDefinition
	text func(*targets.Target) (string, error)
}

const db = targets.Key("secret/shop/db")

func newShop(t *testing.T, conjurMap string, annotations ...string) *shop {
	s := &shop{fixture: newFixture(t), data: &data{t: t}}
	s.def = definitions.SecretDefinition{Namespace: "shop", Name: "db", HasMap: true, Annotations: map[string]string{}}
	s.text = func(group *targets.Target) (string, error) { return group.Template.Inline, nil }
	s.define(conjurMap, annotations...)
	s.restart()
	return s
}

// restart forgets what the process knows.
func (s *shop) restart() {
	core, logs := observer.New(zapcore.InfoLevel)
	s.logs = logs
	before := s.syncer
	s.forget()
	s.syncer = &workers.Syncer{
		Targets: &s.set, Values: s.values, Templates: s, Sink: s.data,
		Policy: before.Policy, Log: zap.New(core),
	}
}

func (s *shop) Text(_ context.Context, t *targets.Target) (string, error) { return s.text(t) }

// define sets the map, and annotations in pairs without their domain.
func (s *shop) define(conjurMap string, annotations ...string) {
	s.def.Map = conjurMap
	for i := 0; i < len(annotations); i += 2 {
		s.def.Annotations["conjur.org/"+annotations[i]] = annotations[i+1]
	}
	target := definitions.FromSecret(s.def)
	s.set.Put(target)
}

func (s *shop) one() workers.Result { return s.sync(db)[db] }

// holds checks the data, "key=value" in order of the keys.
func (s *shop) holds(want ...string) {
	s.t.Helper()
	var got []string
	for _, key := range slices.Sorted(maps.Keys(s.data.keys)) {
		got = append(got, key+"="+s.data.keys[key])
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("the Secret holds %q, want %q", got, want)
	}
}

// delivers expects a sync that writes, has no error, and leaves this.
func (s *shop) delivers(want ...string) {
	s.t.Helper()
	if r := s.one(); r.Err != nil || !r.Wrote || r.Removed {
		s.t.Errorf("result %+v, want a write", r)
	}
	s.holds(want...)
}

// rests expects a sync that does nothing and has no error.
func (s *shop) rests() {
	s.t.Helper()
	if r := s.one(); r.Err != nil || r.Wrote {
		s.t.Errorf("result %+v, want nothing to do", r)
	}
}

func (s *shop) give(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		s.values.set(pairs[i], pairs[i+1])
	}
}

func (s *shop) gone(id string) {
	s.values.set(id, &variables.GoneError{Variable: id, Reason: variables.Missing, Observations: 2})
}
func (s *shop) suspect(id string) { s.values.set(id, &variables.SuspectError{Variable: id, Needed: 2}) }
func (s *shop) unknown(id string) { s.values.set(id, errors.New("status 502 for "+id)) }

// did checks which keys a sync wrote, removed as revoked, and dropped.
func (s *shop) did(r workers.Result, set, revoked, dropped string) {
	s.t.Helper()
	for what, lists := range map[string][2]string{
		"set": {strings.Join(r.Set, " "), set}, "revoked": {strings.Join(r.Revoked, " "), revoked}, "dropped": {strings.Join(r.Dropped, " "), dropped},
	} {
		if lists[0] != lists[1] {
			s.t.Errorf("%s: %q, want %q", what, lists[0], lists[1])
		}
	}
}

// failed expects an error of a type that says something.
func failed[E error](t *testing.T, err error, says ...string) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Errorf("error %v, want a %T", err, e)
		return e
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	return e
}

const (
	ofCfg       = "conjur-secrets.cfg" // annotations, without their domain
	formatCfg   = "secret-file-format.cfg"
	templateCfg = "secret-file-template.cfg"
)
