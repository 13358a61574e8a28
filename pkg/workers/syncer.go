// Package workers brings targets to their wanted state, one key at a time. It fetches the
// values, renders them, compares the result with the existing content, and applies the
// difference.
package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	Fall(key targets.Key, ids ...string) (*targets.Target, bool)
	Taken(path string) bool
}

// Values fetches variables. The answer holds every id asked for; the caller owns its
// values.
type Values interface {
	Fetch(ctx context.Context, ids []string) map[string]variables.Answer
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

// Renderings is called before a target with a template is rendered. The function that
// Begin returns is called after the rendering.
type Renderings interface {
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
	Lister     Lister
	Renderings Renderings
	Traces     *traces.Tracer

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
	var ready, unlisted []*job
	for _, key := range keys {
		r, ok := s.Targets.Begin(key)
		if !ok {
			report(Result{Key: key}) // the content that it wrote stays
			continue
		}
		j := s.newJob(r, report)
		switch t := r.Spec; {
		case len(t.Faults) > 0:
			j.end(Result{Err: &InvalidError{Key: key, Faults: t.Faults}})
		case t.Secret != nil && t.Secret.Unread != "":
			j.end(Result{Err: fmt.Errorf("it is not known what %s is to hold: %s", key, t.Secret.Unread)})
		case t.Secret != nil && t.Secret.Missing && !t.Secret.Create:
			j.end(Result{Err: &sinks.MissingError{Namespace: t.Secret.Namespace, Name: t.Secret.Name}})
		case t.Open():
			unlisted = append(unlisted, j)
		default:
			ready = append(ready, j.syncer.recall(reading, j))
		}
	}
	s.syncAll(reading, writing, ready)
	if len(unlisted) > 0 {
		s.syncAll(reading, writing, s.list(reading, unlisted))
	}
}

// job is the sync of one target.
type job struct {
	records.Record
	syncer *Syncer // logs with the trace of this job
	before records.Status
	report func(Result)
	span   traces.Span
	turned bool // see turn
}

func (s *Syncer) newJob(r records.Record, report func(Result)) *job {
	j := &job{Record: r, syncer: s, before: r.Status, report: report, span: s.Traces.Begin(string(r.Spec.Key))}
	if fields := j.span.Fields(); fields != nil || r.Status.Err != nil {
		own := *s
		own.Log, j.syncer = s.Log.With(fields...), &own
		if r.Status.Err != nil { // a retry: its outcome says enough
			own.steps = zap.DebugLevel
		}
	}
	return j
}

// end settles the target and reports the outcome.
func (j *job) end(result Result) {
	s := j.syncer
	s.reportLeftOut(j)
	result.Key, result.Before, result.Span = j.Spec.Key, j.before, j.span
	j.Status.Err = result.Err
	if result.Wrote {
		j.Status.Changed = time.Now()
	}
	result.Moved = s.clear(j, result.Err)
	result.After, result.Again = s.Targets.Settle(j.Record)
	j.report(result)
}

// clear removes the content that a target left at another place. It does so after the
// target is right at its new place, or is revoked.
func (s *Syncer) clear(j *job, err error) error {
	if revoked, ok := errors.AsType[*RevokedError](err); err != nil && (!ok || revoked.Kept) {
		return nil
	}
	j.Status.Ours = j.Status.Ours || err == nil && j.Status.Version != ""
	mover, moves := s.Sink.(Mover)
	if !moves || len(j.Status.Former) == 0 {
		return nil
	}
	key := zap.String("target", string(j.Spec.Key))
	done, err := mover.RemoveFormer(j.Status.Former, s.Targets.Taken)
	j.Status.Former = done.Left
	for _, path := range done.Removed {
		s.Log.Info("Removed what a target had under another name", key, zap.String("file", path))
	}
	for _, path := range done.Altered {
		s.Log.Warn("Leaving what a target had under another name, as somebody has altered it", key, zap.String("file", path))
	}
	return err
}

// syncAll syncs the targets. If a node-specific variable of a target appeared or
// disappeared, syncAll reads the target once more, because the target now has other
// variables.
func (s *Syncer) syncAll(reading, writing context.Context, jobs []*job) {
	answers, done := s.fetch(reading, jobs)
	defer done()
	var mu sync.Mutex
	var turned []*job
	inTurn(jobs, func(j *job) {
		answers := answers(j.Spec)
		switch has, err := j.syncer.turn(j, answers); {
		case err != nil:
			j.end(Result{Err: err})
		case has:
			mu.Lock()
			turned = append(turned, j)
			mu.Unlock()
		default:
			j.end(j.syncer.sync(reading, writing, j, answers))
		}
	})
	if len(turned) > 0 {
		s.syncAll(reading, writing, turned)
	}
}

func (s *Syncer) sync(reading, writing context.Context, j *job, answers map[string]variables.Answer) Result {
	t := j.Spec
	d := s.draft(reading, j, answers)
	defer wipeParts(d.want.Parts)
	result := Result{Warnings: d.allWarnings(), Work: d.work, Err: joined(d.errs...)}
	if d.idle() {
		s.lookOnce(reading, j)
		d.tellBare(j.Status.Bare)
		return result
	}
	have, err := j.read(reading)
	if err == nil {
		err = reading.Err() // the draft's input may be incomplete
	}
	if err != nil {
		result.Err = failed("reading", t, err)
		return result
	}
	defer wipeParts(have.Parts)
	j.see(have)

	d.revokeSets(t, have)
	changes := Plan(d.want, have, s.Policy)
	if errs := append(d.doubts(t, have), d.older(have)...); len(errs) > 0 && !changes.Empty() {
		d.hold(t.Key, errs...)
		result.Err = joined(d.errs...)
		changes = Plan(d.want, have, s.Policy)
	}
	d.keepSets(t, j.Status, have)
	if !d.held && (len(d.sets) > 0 || len(have.Sets) > 0) {
		changes.Sets = &d.sets
	}
	changes.Members = d.members(t, have.Members)
	deleted, stays := s.deleted(j, d.want, have)
	changes.Restores = deleted
	switch {
	case changes.Empty():
		if err := s.note(writing, j, changes); err != nil {
			result.Err = err
			return result
		}
		late := (!d.held || d.want.Gone != nil) && remember(j, d.want)
		result.Wrote, result.Removed = late, late && d.want.Gone != nil
		s.noteContent(j, &d)
		return result
	case stays:
		s.noteContent(j, &d)
		return result
	}
	if err := s.apply(writing, j, changes); err != nil {
		unsure(&j.Status, d.want.Gone != nil)
		result.Err = err
		return result
	}
	remember(j, d.want)
	s.noteContent(j, &d)
	result.Wrote, result.Restored = true, deleted
	s.account(t, &d, changes, &result)
	return result
}

// apply applies the changes to the sink.
func (s *Syncer) apply(ctx context.Context, j *job, changes sinks.Changes) error {
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

// note makes the sink remember the members of content that stays unchanged. It triggers
// no notification.
func (s *Syncer) note(ctx context.Context, j *job, changes sinks.Changes) error {
	if changes.Members == nil && changes.Sets == nil {
		return nil
	}
	return j.write(ctx, changes)
}

// read and write call the sink's Read and Apply.
func (j *job) read(ctx context.Context) (sinks.State, error) {
	defer j.span.Step("read")()
	return j.syncer.Sink.Read(ctx, j.Record)
}

func (j *job) write(ctx context.Context, changes sinks.Changes) (err error) {
	defer j.span.Step("write")()
	j.Status.Bare = false
	if j.Status.Sight, err = j.syncer.Sink.Apply(ctx, j.Record, changes); err != nil {
		return failed("writing", j.Spec, err)
	}
	return nil
}

// failed wraps an error with the action and the target. The sink of Secrets names the
// Secret itself.
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
