// Package workers makes targets right, one key at a time: it fetches the
// values, renders, compares with what is there, and applies the difference.
package workers

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
)

// Targets finds the target of a key; false when it is no longer kept in sync.
// Release takes variables that are proven to be gone out of a target that
// holds all variables, unless there is more to it than that, and Recall brings
// back into it those that it seems to have held; see targets.Set.
type Targets interface {
	Get(targets.Key) (*targets.Target, bool)
	Release(key targets.Key, ids ...string)
	Recall(key targets.Key, ids ...string) (*targets.Target, bool)
}

// Values fetches variables. The answer holds every id asked for; its values
// belong to the caller.
type Values interface {
	Fetch(ctx context.Context, ids []string) map[string]variables.Answer
}

// Templates gives the text of a target's template; "" for a target without.
type Templates interface {
	Text(context.Context, *targets.Target) (string, error)
}

// Sink is where a target lands.
type Sink interface {
	Read(context.Context, *targets.Target) (sinks.State, error)
	Apply(context.Context, *targets.Target, sinks.Changes) error
}

// Syncer makes targets right. All fields but List and Writing are needed. It
// may be used by several goroutines, one for each key at a time, and keeps no
// state but which variables are in the targets that hold all of them.
type Syncer struct {
	Targets   Targets
	Values    Values
	Templates Templates
	Sink      Sink
	Policy    Policy
	// List finds out which variables there are, and has Targets expand the
	// targets that hold all variables. It is called for those that are not
	// expanded yet; nil when there are none.
	List func(context.Context) error
	// Rendering, when not nil, is called before a target with a template is
	// rendered, and what it returns afterwards.
	Rendering func(targets.Key) (end func())
	// Writing, when not nil, is called before a target is written or removed,
	// unless it is only restored.
	Writing func(targets.Key)
	// Deliveries, when not nil, tells what somebody deleted from what is new.
	Deliveries *Deliveries
	Log        *zap.Logger

	contents contents
}

// Result is what a sync did to one key.
type Result struct {
	Key targets.Key
	// Wrote: the target's content or mode was changed, or removed.
	Wrote bool
	// Restored: what was written is what somebody deleted, and nothing else.
	// Nobody needs to be told of it; an application that deletes what it has
	// read would be told for ever.
	Restored bool
	// Removed: something was removed because a variable of it is gone that an
	// entry names.
	Removed bool
	// Set, Revoked and Dropped are the names of the parts that were written,
	// that were removed because a variable of theirs is gone, and that were
	// removed because the target no longer has them; each in ascending order.
	Set, Revoked, Dropped []string
	// Warnings are what a person should know of the content that was made.
	Warnings []Warning
	// Work is render.Data.Work and one more; 0 if no Secret was rendered.
	Work int
	// Err is why the target is not as it should be: *UnknownError,
	// *RevokedError, *RenderError, *InvalidError, several of these joined, or
	// an error of the template or the sink. A target can be both written, or
	// removed from, and in error. See Permanent.
	Err error
}

// Warning is what a person should know of a content.
type Warning struct {
	Part string // the group of a Secret that it is about; "": the target or the Secret
	Left string // the variable that a wildcard stands for and that was left out; "": none
	Text string
}

// Sync makes the targets of the keys right and reports each as soon as it is
// done. The variables of all keys travel together, but for those of targets
// for which the variables must be listed first. One target's failure does not
// touch the others.
//
// Values, templates and states are read within the context reading, and
// targets are written within writing: a process that is told to stop need not
// wait for a server, but should not leave a write half-way.
func (s *Syncer) Sync(reading, writing context.Context, keys []targets.Key, report func(Result)) {
	var ts []*targets.Target
	var unlisted []targets.Key
	for _, key := range keys {
		switch t, ok := s.Targets.Get(key); {
		case !ok:
			s.contents.forget(key)
			s.Deliveries.removed(key)
			report(Result{Key: key}) // forgotten; what it wrote is left
		case t.Secret != nil && t.Secret.Unread != "":
			report(Result{Key: key, Err: fmt.Errorf("it is not known what %s is to hold: %s", key, t.Secret.Unread)})
		case t.Secret != nil && t.Secret.Missing && !t.Secret.Create:
			report(Result{Key: key, Err: &sinks.MissingError{Namespace: t.Secret.Namespace, Name: t.Secret.Name}})
		case t.Wildcard():
			unlisted = append(unlisted, key)
		default:
			ts = append(ts, s.recall(reading, t))
		}
	}
	s.syncAll(reading, writing, ts, report)
	if len(unlisted) > 0 {
		s.syncAll(reading, writing, s.list(reading, unlisted, report), report)
	}
}

func (s *Syncer) syncAll(reading, writing context.Context, ts []*targets.Target, report func(Result)) {
	answers, done := s.fetch(reading, ts)
	defer done()
	for _, t := range ts {
		report(s.sync(reading, writing, t, answers(t)))
	}
}

func (s *Syncer) sync(reading, writing context.Context, t *targets.Target, answers map[string]variables.Answer) Result {
	d := s.draft(reading, t, answers)
	defer wipeParts(d.want.Parts)
	result := Result{Key: t.Key, Warnings: d.allWarnings(), Work: d.work, Err: joined(d.errs...)}
	if d.idle() {
		return result
	}
	have, err := s.Sink.Read(reading, t)
	if err == nil {
		err = reading.Err() // what the draft was made from may be cut short
	}
	if err != nil {
		result.Err = failed("reading", t, err)
		return result
	}
	defer wipeParts(have.Parts)

	changes := Plan(d.want, have, s.Policy)
	if errs := d.doubts(t, have); len(errs) > 0 && !changes.Empty() {
		d.hold(t.Key, errs...)
		result.Err = joined(d.errs...)
		changes = Plan(d.want, have, s.Policy)
	}
	changes.Members = d.members(t, have.Members)
	deleted, stays := s.deleted(t, d.want, have)
	switch {
	case changes.Empty():
		if err := s.note(writing, t, changes); err != nil {
			result.Err = err
			return result
		}
		late := (!d.held || d.want.Gone != nil) && s.remember(t, d.want)
		result.Wrote, result.Removed = late, late && d.want.Gone != nil
		s.settle(t, &d)
		return result
	case stays:
		s.settle(t, &d)
		return result
	}
	if err := s.apply(writing, t, changes, deleted); err != nil {
		s.Deliveries.failed(t.Key, d.want.Gone != nil)
		result.Err = err
		return result
	}
	s.remember(t, d.want)
	s.settle(t, &d)
	result.Wrote, result.Restored = true, deleted
	s.tell(t, &d, changes, &result)
	return result
}

// apply brings the changes to the sink.
func (s *Syncer) apply(ctx context.Context, t *targets.Target, changes sinks.Changes, restores bool) error {
	log := s.Log.With(place(t)...)
	log.Info("Writing target", zap.Int("set", len(changes.Set)), zap.Int("remove", len(changes.Remove)))
	if s.Writing != nil && !restores {
		s.Writing(t.Key)
	}
	if err := s.Sink.Apply(ctx, t, changes); err != nil {
		s.contents.forget(t.Key)
		return failed("writing", t, err)
	}
	log.Info("Target written")
	return nil
}

// note has the sink remember what is in a content that stays as it is. Nobody
// needs to be told.
func (s *Syncer) note(ctx context.Context, t *targets.Target, changes sinks.Changes) error {
	if changes.Members == nil {
		return nil
	}
	if err := s.Sink.Apply(ctx, t, changes); err != nil {
		return failed("writing", t, err)
	}
	return nil
}

// failed says what was being done with a target. The sink of Secrets names them
// itself.
func failed(doing string, t *targets.Target, err error) error {
	if t.Secret != nil {
		return fmt.Errorf("%s %w", doing, err)
	}
	return fmt.Errorf("%s %s: %w", doing, t.Key, err)
}

func wipe(answers map[string]variables.Answer) {
	for _, a := range answers {
		a.Value.Wipe()
	}
}

func wipeParts(parts map[string]secret.Value) {
	for _, v := range parts {
		v.Wipe()
	}
}
