// Package workers brings targets to their wanted state, one key at a time. It fetches the
// values, renders them, compares the result with the existing content, and applies the
// difference.
package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Targets stores the targets and their statuses; see records.Lane.
type Targets interface {
	Begin(targets.Key) (records.Record, bool)
	Settle(records.Record) (after records.Status, again []records.Change)
	Get(targets.Key) (*targets.Target, bool)
	Release(key targets.Key, ids ...string)
	Recall(key targets.Key, ids ...string) (*targets.Target, bool)
	FallBack(key targets.Key, ids ...string) (*targets.Target, bool)
	Taken(path string) bool
}

// Values fetches variables. The answer holds every id asked for; the caller owns its
// values. earlier may be nil, or answers that the caller still owns; see variables.Client.
type Values interface {
	Fetch(ctx context.Context, ids []string, earlier map[string]variables.Answer) map[string]variables.Answer
}

// Templates returns the text of a target's template, or "" for a target without one.
type Templates interface {
	Text(context.Context, *targets.Target) (string, error)
}

// Sink is the destination of a target.
type Sink interface {
	Read(context.Context, records.Record) (sinks.State, error)
	Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error)
}

// Mover is a Sink whose targets may move and leave content at the old place.
type Mover interface {
	RemoveFormer(former []string, taken func(path string) bool) (sinks.Cleared, error)
}

// Lister finds out which variables exist. It makes Targets expand the targets that hold
// all variables.
type Lister interface {
	List(context.Context) error
}

// RenderCrashes remembers which target is rendered, so that the next process renders a target
// last that killed this one. It is called before a target with a template is rendered. The function that
// Begin returns is called after the rendering.
type RenderCrashes interface {
	Begin(targets.Key) (end func())
}

// Syncer brings targets to their wanted state. The fields from Lister on may be nil.
// Several goroutines may use it, and it keeps no state.
type Syncer struct {
	Targets   Targets
	Values    Values
	Templates Templates
	Sink      Sink
	Policy    Policy
	Log       *zap.Logger
	// Lister is used for targets that are not expanded yet.
	Lister        Lister
	RenderCrashes RenderCrashes
	Traces        *traces.Tracer

	steps zapcore.Level // log level of the messages before the outcome; see newJob
}

// Result is the outcome of a sync for one key.
type Result struct {
	Key targets.Key
	// Wrote means that the target's content or mode was changed or removed.
	Wrote bool
	// Restored means that the sync wrote back exactly the content that somebody deleted.
	// It triggers no notification. Otherwise an application that deletes each file after
	// reading it would be notified forever.
	Restored bool
	// Removed means that something was removed because a variable that an entry names is
	// gone.
	Removed bool
	// Set, Revoked and Dropped are the names of parts, in ascending order. Set were
	// written. Revoked were removed because a variable of theirs is gone. Dropped were
	// removed because the target no longer has them.
	Set, Revoked, Dropped []string
	// Warnings tell an operator about problems of the content.
	Warnings []Warning
	// Work is render.Data.Work plus one; 0 if no Secret was rendered.
	Work int
	// Err is why the target is not in the wanted state: *UnknownError, *RevokedError,
	// *RenderError, *InvalidError, several of these joined, or an error of the template
	// or the sink. A target with an error may still have been written, or partly removed.
	// See Permanent.
	Err error
	// Moved is why the content at a former place could not be removed.
	Moved error
	// Before and After are the status of the target before and after the sync. They are
	// zero if the target is no longer kept in sync, or is not on this node.
	Before, After records.Status
	// Again holds the target if it needs another sync.
	Again []records.Change
	// Span is the span of the sync. The receiver of the result ends it.
	Span traces.Span
}

// Warning tells an operator about a problem of the content.
type Warning struct {
	Part string // the affected group of a Secret; "": the target or the Secret
	Left string // the variable of a wildcard that was left out; "": none
	Text string
}

// Sync brings the targets of the keys to their wanted state and reports each target as
// soon as it is done. One request fetches the variables of all keys, except for targets
// whose variables must first be listed. A failure of one target does not affect the
// others, and a slow one delays only those of its namespace. Then report is called
// concurrently.
//
// Values, templates and states are read within the context reading. Targets are written
// within the context writing. A stopping process need not wait for a server, but should
// not stop in the middle of a write.
func (s *Syncer) Sync(reading, writing context.Context, keys []targets.Key, report func(Result)) {
	jobs, unlisted := s.begin(reading, keys, report)
	s.syncAll(reading, writing, jobs)
	s.syncAll(reading, writing, s.listVariables(reading, unlisted))
}

// syncAll fetches the values of all targets together, and then delivers each target. If a
// node-specific variable of a target appeared or disappeared, syncAll reads the target
// once more, because the target now has other variables.
func (s *Syncer) syncAll(reading, writing context.Context, jobs []*job) {
	for len(jobs) > 0 {
		var mu sync.Mutex
		var again []*job
		answers, done := s.fetch(reading, jobs)
		inTurn(jobs, func(j *job) {
			answers := answers(j.Spec)
			switch switched, err := j.syncer.switchVariables(j, answers); {
			case err != nil:
				j.end(Result{Err: err})
			case switched:
				mu.Lock()
				again = append(again, j)
				mu.Unlock()
			default:
				j.end(j.syncer.deliver(reading, writing, j, answers))
			}
		})
		done()
		jobs = again
	}
}

// deliver renders one target, plans the difference to its existing content, and applies
// it.
func (s *Syncer) deliver(reading, writing context.Context, j *job, answers map[string]variables.Answer) Result {
	d := s.render(reading, j, answers)
	defer secret.Wipe(d.want.Parts)
	result := Result{Warnings: d.allWarnings(), Work: d.work, Err: joined(d.errs...)}
	if d.idle() {
		s.lookOnce(reading, j, d.held)
		d.markEmpty(j.Status.TargetEmpty)
		return result
	}
	have, err := s.findContent(reading, j, d.want.Parts)
	defer secret.Wipe(have.Parts) // it may share bytes with the wanted content
	if err == nil {
		err = s.change(writing, j, &d, have, &result)
	}
	if errors.Is(err, sinks.ErrOutdated) {
		have, err = s.readContent(reading, j)
		defer secret.Wipe(have.Parts)
		if err == nil {
			err = s.change(writing, j, &d, have, &result)
		}
	}
	if err != nil {
		result.Err = err
	}
	return result
}

// change makes the existing content the wanted content.
func (s *Syncer) change(ctx context.Context, j *job, d *draft, have sinks.State, result *Result) error {
	changes, stays := s.plan(j, d, have)
	result.Err = joined(d.errs...)
	return s.apply(ctx, j, d, changes, stays, result)
}

// begin starts the sync of each target, and reports those that cannot be synced. The
// variables of unlisted targets must first be listed.
func (s *Syncer) begin(ctx context.Context, keys []targets.Key, report func(Result)) (ready, unlisted []*job) {
	for _, key := range keys {
		r, ok := s.Targets.Begin(key)
		if !ok {
			report(Result{Key: key}) // the content that it wrote stays
			continue
		}
		j := s.newJob(r, report)
		switch t := r.Spec; {
		case len(t.Faults) > 0:
			s.lookOnce(ctx, j, false)
			j.end(Result{Err: &InvalidError{Key: key, Faults: t.Faults}})
		case t.Secret != nil && t.Secret.Unread != "":
			j.end(Result{Err: fmt.Errorf("the content of %s is not known: %s", key, t.Secret.Unread)})
		case t.Secret != nil && t.Secret.Missing && !t.Secret.Create:
			j.Status.Sets = nil // with the Secret, they are gone
			j.end(Result{Err: &sinks.MissingError{Namespace: t.Secret.Namespace, Name: t.Secret.Name}})
		case t.NeedsList():
			unlisted = append(unlisted, j)
		default:
			ready = append(ready, j.syncer.recall(ctx, j))
		}
	}
	return ready, unlisted
}

// plan returns the changes that make the existing content the wanted content. Uncertain
// content stays, and the draft then says why. stays means that deleted content is not
// restored.
func (s *Syncer) plan(j *job, d *draft, have sinks.State) (changes sinks.Changes, stays bool) {
	t := j.Spec
	d.revokeSets(t, have)
	changes = Plan(d.want, have, s.Policy)
	if errs := append(d.uncertain(t, have), d.older(have)...); len(errs) > 0 && !changes.Empty() {
		d.hold(t.Key, errs...)
		changes = Plan(d.want, have, s.Policy)
	}
	if !d.held || !changes.Empty() {
		d.shows = d.shown(j, have, changes.Parts)
		if len(d.shows) > 0 || len(have.Sets) > 0 {
			changes.Sets = &d.shows
		}
	}
	changes.Members = d.members(t, have.Members)
	changes.Restores, stays = s.deleted(j, d.want, have)
	return changes, stays
}

// apply makes the planned changes and remembers the content. The result says what
// changed.
func (s *Syncer) apply(ctx context.Context, j *job, d *draft, changes sinks.Changes, stays bool, result *Result) error {
	switch {
	case changes.Empty():
		if err := s.recordMembers(ctx, j, changes); err != nil {
			return err
		}
		// An earlier write that seemed to fail did happen. It is reported now.
		late := (!d.held || d.want.Gone != nil) && remember(j, d.want)
		result.Wrote, result.Removed = late, late && d.want.Gone != nil
	case stays:
	default:
		if err := s.write(ctx, j, changes); err != nil {
			setUnknown(&j.Status, d.want.Gone != nil)
			return err
		}
		remember(j, d.want)
		result.Wrote, result.Restored = true, changes.Restores
		s.reportChanges(j.Spec, d, changes, result)
	}
	s.noteContent(j, d)
	return nil
}

// write writes the changes to the sink.
func (s *Syncer) write(ctx context.Context, j *job, changes sinks.Changes) error {
	log := s.Log.With(place(j.Spec)...)
	doing, done := "Writing target", "Target written"
	if t := j.Spec; t.Secret == nil && t.File.Path == "" {
		doing, done = "Setting environment variables", "Environment variables set"
	}
	log.Log(s.steps, doing, zap.Int("set", len(changes.Set)), zap.Int("remove", len(changes.Remove)))
	if err := j.write(ctx, changes); err != nil {
		return err
	}
	j.Status.Ours = true
	log.Info(done)
	return nil
}

// recordMembers makes the sink remember the members of content that stays unchanged. It
// triggers no notification.
func (s *Syncer) recordMembers(ctx context.Context, j *job, changes sinks.Changes) error {
	if changes.Members == nil && changes.Sets == nil {
		return nil
	}
	return j.write(ctx, changes)
}
