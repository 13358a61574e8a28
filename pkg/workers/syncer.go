// Package workers makes targets right, one key at a time: it fetches the
// values, renders, compares with what is there, and applies the difference.
package workers

import (
	"context"
	"errors"
	"fmt"
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

// Targets has the targets and keeps what is known of them; see records.Lane.
type Targets interface {
	Begin(targets.Key) (records.Record, bool)
	Settle(records.Record) (after records.Status, again []records.Change)
	Get(targets.Key) (*targets.Target, bool)
	Release(key targets.Key, ids ...string)
	Recall(key targets.Key, ids ...string) (*targets.Target, bool)
	Fall(key targets.Key, ids ...string) (*targets.Target, bool)
	Taken(path string) bool
}

// Values fetches variables. The answer holds every id asked for; its values
// belong to the caller.
type Values interface {
	Fetch(ctx context.Context, ids []string) map[string]variables.Answer
}

// Templates returns the text of a target's template; "" for a target without.
type Templates interface {
	Text(context.Context, *targets.Target) (string, error)
}

// Sink is where a target lands.
type Sink interface {
	Read(context.Context, records.Record) (sinks.State, error)
	Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error)
}

// Mover is a Sink whose targets may move, and leave something behind.
type Mover interface {
	RemoveFormer(former []string, taken func(path string) bool) (sinks.Cleared, error)
}

// Lister finds out which variables there are, and has Targets expand the
// targets that hold all variables.
type Lister interface {
	List(context.Context) error
}

// Renderings is called before a target with a template is rendered, and what
// Begin returns is called afterwards.
type Renderings interface {
	Begin(targets.Key) (end func())
}

// Syncer makes targets right. The fields from Lister on may be nil. It may be
// used by several goroutines, and keeps no state.
type Syncer struct {
	Targets   Targets
	Values    Values
	Templates Templates
	Sink      Sink
	Policy    Policy
	Log       *zap.Logger
	// Lister is asked for targets that are not expanded yet.
	Lister     Lister
	Renderings Renderings
	Traces     *traces.Tracer

	steps zapcore.Level // of what is logged before the outcome; see newJob
}

// Result is what a sync did to one key.
type Result struct {
	Key targets.Key
	// Wrote: the target's content or mode was changed, or removed.
	Wrote bool
	// Restored: what was written is what somebody deleted, and nothing else.
	// Nobody needs to hear of it; an application that deletes what it has
	// read would be notified for ever.
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
	// Moved is why what the target had at a former place could not be removed.
	Moved error
	// Before and After are what was and is known of the target; the zero
	// Statuses of one that is no longer kept in sync, or not here.
	Before, After records.Status
	// Again is the target itself if it is to be synced once more.
	Again []records.Change
	// Span is the sync's; whoever the result is reported to ends it.
	Span traces.Span
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
// targets are written within writing: a process that is to stop need not
// wait for a server, but should not leave a write half-way.
func (s *Syncer) Sync(reading, writing context.Context, keys []targets.Key, report func(Result)) {
	var ready, unlisted []*job
	for _, key := range keys {
		r, ok := s.Targets.Begin(key)
		if !ok {
			report(Result{Key: key}) // what it wrote is left
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

// job is one target that is being made right.
type job struct {
	records.Record
	syncer *Syncer // which logs what is of this job's trace
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
		if r.Status.Err != nil { // a retry, of which the outcome says enough
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

// clear removes what a target left at another place, once it is right where it
// is now, or revoked.
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

// syncAll makes the targets right. Those of which a variable of this node's own
// came or went are read once more, as they have other variables for it.
func (s *Syncer) syncAll(reading, writing context.Context, jobs []*job) {
	answers, done := s.fetch(reading, jobs)
	defer done()
	var turned []*job
	for _, j := range jobs {
		answers := answers(j.Spec)
		switch has, err := j.syncer.turn(j, answers); {
		case err != nil:
			j.end(Result{Err: err})
		case has:
			turned = append(turned, j)
		default:
			j.end(j.syncer.sync(reading, writing, j, answers))
		}
	}
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
		err = reading.Err() // what the draft was made from may be cut short
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

// apply brings the changes to the sink.
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

// note has the sink remember what is in a content that stays as it is. Nobody
// needs to hear of it.
func (s *Syncer) note(ctx context.Context, j *job, changes sinks.Changes) error {
	if changes.Members == nil && changes.Sets == nil {
		return nil
	}
	return j.write(ctx, changes)
}

// read and write are the sink's Read and Apply.
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
