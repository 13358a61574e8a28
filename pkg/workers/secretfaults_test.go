package workers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// A slip in the definition takes nothing away.
func TestWhatIsFaultyStaysAndTheOthersGoOn(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass\nold: p/old", ofCfg, "- p: p/pass", formatCfg, "json")
	s.give("p/user", "me", "p/pass", "secret", "p/old", "x")
	s.one()
	s.give("p/user", "you")
	s.define("user: p/user\npass: 5", formatCfg, "toml")
	r := s.one()
	s.holds(`cfg={"p":"secret"}`, "pass=secret", "user=you")
	s.did(r, "user", "", "old")
	invalid := failed[*workers.InvalidError](t, r.Err, "conjur-map: line 2", "conjur.org/secret-file-format.cfg: unknown format")
	if len(invalid.Faults) != 2 || !workers.Permanent(r.Err, false) {
		t.Errorf("%+v, want two faults that no retry mends", invalid)
	}
	s.give("p/user", "they")
	s.define("user: [")
	reads := s.data.reads
	r = s.one()
	failed[*workers.InvalidError](t, r.Err, "not valid YAML")
	if s.data.reads != reads {
		t.Error("looked at a Secret of which nothing is known")
	}
	s.define("user: p/user\n~: x")
	r = s.one()
	failed[*workers.InvalidError](t, r.Err)
	s.holds(`cfg={"p":"secret"}`, "pass=secret", "user=they")
}

func TestABrokenTemplateKeepsItsLastResult(t *testing.T) {
	s := newShop(t, "user: p/user", ofCfg, "- u: p/user", templateCfg, `u={{ secret "u" }}`)
	s.give("p/user", "me")
	s.one()
	s.give("p/user", "you")
	for text, says := range map[string]string{`{{ secret "nope" }}`: "nope", `{{ bad`: "not defined", `{{ index .SecretsArray 9 }}`: "outside of the list"} {
		s.define("user: p/user", templateCfg, text)
		r := s.one()
		s.holds("cfg=u=me", "user=you")
		broken := failed[*workers.RenderError](t, r.Err, `rendering the data key "cfg" of secret/shop/db`, says)
		if broken.Part != "cfg" || !workers.Permanent(r.Err, false) {
			t.Errorf("%+v, want an error about cfg that no retry mends", broken)
		}
	}
	s.define("user: p/user", templateCfg, `v={{ secret "u" }}`)
	s.delivers("cfg=v=you", "user=you")
}

func TestATemplateThatNeverWorkedHoldsNothingUp(t *testing.T) {
	s := newShop(t, "user: p/user", ofCfg, "- u: p/user", templateCfg, `{{ secret "nope" }}`)
	s.give("p/user", "me")
	r := s.one()
	failed[*workers.RenderError](t, r.Err)
	s.did(r, "user", "", "")
	s.holds("user=me")
	if r := s.one(); r.Wrote || r.Err == nil {
		t.Errorf("result %+v, want nothing to do and the error", r)
	}
}

func TestATemplateThatCannotBeReadIsTriedAgain(t *testing.T) {
	s := newShop(t, "user: p/user", ofCfg, "- u: p/user", "secret-file-template-configmap.cfg", "cm/key")
	s.give("p/user", "me")
	s.text = func(group *targets.Target) (string, error) {
		return "", fmt.Errorf("there is no ConfigMap %s", group.Template.ConfigMap.Name)
	}
	r := s.one()
	s.holds("user=me")
	if r.Err == nil || workers.Permanent(r.Err, true) || !strings.Contains(r.Err.Error(), "there is no ConfigMap cm") {
		t.Errorf("error %v, want one that is worth a retry", r.Err)
	}
	s.text = func(*targets.Target) (string, error) { return `u={{ secret "u" }}`, nil }
	s.delivers("cfg=u=me", "user=me")
}

func TestAValueThatAFormatCannotHoldConcernsItsGroupAlone(t *testing.T) {
	s := newShop(t, "raw: p/bin", ofCfg, "- b: p/bin", formatCfg, "json")
	s.give("p/bin", "\xff")
	r := s.one()
	failed[*workers.RenderError](t, r.Err, `cannot hold the value of alias "b"`)
	s.holds("raw=\xff")
}

// … nor one that may be there, with keys that would seem to have left it.
func TestAnUnreadSecretIsNotTouched(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	s.delivers("user=me")
	s.def.HasMap, s.def.Unread = false, "it is forbidden"
	s.def.Configured = &targets.Target{Secret: &targets.Secret{Create: true}}
	s.define("")
	before := len(s.values.fetches)
	r := s.one()
	if r.Err == nil || !strings.Contains(r.Err.Error(), "it is forbidden") || workers.Permanent(r.Err, true) {
		t.Errorf("error %v, want that it cannot be read", r.Err)
	}
	for _, ids := range s.values.fetches[before:] {
		if len(ids) > 0 {
			t.Errorf("fetched %v", ids)
		}
	}
	s.holds("user=me")
}

func TestAMissingSecretIsNotFetched(t *testing.T) {
	s := newShop(t, "")
	s.def.HasMap, s.def.Missing = false, true
	s.define("")
	r := s.one()
	missing := failed[*sinks.MissingError](t, r.Err, "there is no Secret shop/db")
	if missing == nil || workers.Permanent(r.Err, true) {
		t.Errorf("error %v, want one that ends when the Secret appears", r.Err)
	}
	for _, ids := range s.values.fetches {
		if len(ids) > 0 {
			t.Errorf("fetched %v", ids)
		}
	}
	s.def.Configured = &targets.Target{
		Entries: []targets.Entry{{Alias: "user", Variable: "p/user"}}, Secret: &targets.Secret{Create: true},
	}
	s.define("")
	s.give("p/user", "me")
	s.delivers("user=me")
}

func TestAFailedWriteIsAnError(t *testing.T) {
	s := newShop(t, "user: p/user\npass: 5")
	s.give("p/user", "me")
	s.data.fails = &sinks.RefusedError{Target: db, Reason: "the Secret is immutable"}
	r := s.one()
	failed[*sinks.RefusedError](t, r.Err, "immutable")
	if n := strings.Count(r.Err.Error(), string(db)); n != 1 {
		t.Errorf("the Secret is named %d times: %v", n, r.Err)
	}
	if r.Wrote || len(r.Set) > 0 || !workers.Permanent(r.Err, false) {
		t.Errorf("result %+v", r)
	}
	s.data.fails = errors.New("status 503")
	if r := s.one(); r.Wrote || workers.Permanent(r.Err, true) {
		t.Errorf("result %+v, want an error that is worth a retry", r)
	}
}

// Targets share a sync, not their errors.
func TestOnePoisonousSecretAmongOthers(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	keys := []targets.Key{}
	sink := many{}
	s.syncer.Sink = sink
	for i := range 50 {
		def := definitions.SecretDefinition{Namespace: "ns", Name: fmt.Sprint("s", i), HasMap: true, Map: "user: p/user"}
		if i == 20 {
			def.Map = "user: p/user\n" + strings.Repeat("k", 1500) + ": p/user\nbad: [x]"
			def.Annotations = map[string]string{"conjur.org/conjur-secrets.x": "- u: p/user", "conjur.org/secret-file-template.x": `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`}
		}
		target := definitions.FromSecret(def)
		s.set.Put(target)
		keys = append(keys, target.Key)
	}
	results := s.sync(keys...)
	for _, key := range keys {
		if got := fmt.Sprint(sink[key]); got != "map[user:me]" {
			t.Errorf("%s holds %s", key, got)
		}
		if key != "secret/ns/s20" && results[key].Err != nil {
			t.Errorf("%s: %v", key, results[key].Err)
		}
	}
	failed[*workers.InvalidError](t, results["secret/ns/s20"].Err, "line 2", `"bad"`)
	failed[*workers.RenderError](t, results["secret/ns/s20"].Err, `"x"`)
	if len(results["secret/ns/s20"].Err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(results["secret/ns/s20"].Err.Error()))
	}
}

// many is a Sink for Secrets of which nothing is there.
type many map[targets.Key]map[string]string

func (m many) Read(context.Context, records.Record) (sinks.State, error) { return sinks.State{}, nil }

func (m many) Apply(_ context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	m[r.Spec.Key] = map[string]string{}
	for key, value := range c.Parts {
		m[r.Spec.Key][key] = string(value.Bytes())
	}
	return records.Sight{}, nil
}

// outdated is a Sink that recognizes a state which is no longer the present one: it holds
// one key, with its wanted value and another one.
type outdated struct {
	*data
	recognized int
}

func (o *outdated) Recognize(_ records.Record, wanted map[string]secret.Value) (sinks.State, bool) {
	o.recognized++
	return sinks.State{Sight: records.Sight{Version: "old"}, Seen: "old", Parts: map[string]secret.Value{"user": wanted["user"], "pass": {}}}, true
}

func (o *outdated) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if r.Seen == "old" {
		return records.Sight{}, sinks.ErrOutdated
	}
	return o.data.Apply(ctx, r, c)
}

// TestAnOutdatedStateIsReadAndPlannedAnew: the second plan removes a key that the first did
// not know, and the values are still those of Conjur.
func TestAnOutdatedStateIsReadAndPlannedAnew(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass")
	s.give("p/user", "me", "p/pass", "secret")
	s.data.keys = map[string]string{"user": "you", "former": "x"}
	sink := &outdated{data: s.data}
	s.syncer.Sink = sink
	r := s.one()
	s.did(r, "pass user", "", "former")
	s.holds("pass=secret", "user=me")
	if r.Err != nil || sink.recognized != 1 || s.data.reads != 1 {
		t.Errorf("after %d looks and %d reads: %v", sink.recognized, s.data.reads, r.Err)
	}
	s.data.fails = sinks.ErrOutdated // a sink that says so of a state that was read
	s.give("p/pass", "other")
	if r := s.one(); !errors.Is(r.Err, sinks.ErrOutdated) || sink.recognized != 2 {
		t.Errorf("it goes on with %v after %d looks", r.Err, sink.recognized)
	}
}
