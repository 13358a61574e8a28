package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// job is the sync of one target.
type job struct {
	records.Record
	syncer   *Syncer // logs with the trace of this job
	before   records.Status
	report   func(Result)
	span     traces.Span
	switched bool // see switchVariables
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
	j.Status.RevokedRemoved = j.Status.RevokedRemoved || result.Removed || len(result.Revoked) > 0
	if revoked, ok := errors.AsType[*RevokedError](result.Err); ok {
		revoked.TargetEmpty = j.Status.TargetEmpty
		revoked.Never = !j.Status.RevokedRemoved && (!revoked.Kept || j.Status.TargetEmpty) && revoked.neverFound()
	}
	j.Status.Err = result.Err
	if result.Wrote {
		j.Status.Changed = time.Now()
	}
	result.Moved = s.removeFormer(j, result.Err)
	result.After, result.Again = s.Targets.Settle(j.Record)
	j.report(result)
}

// removeFormer removes the content that a target left at another place. It does so after the
// target is right at its new place, or is revoked.
func (s *Syncer) removeFormer(j *job, err error) error {
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
		s.Log.Info("Removed the old file of a moved target", key, zap.String("file", path))
	}
	for _, path := range done.Altered {
		s.Log.Warn("Keeping the old file of a moved target, because somebody changed it", key, zap.String("file", path))
	}
	return err
}

// readDestination and write call the sink's Read and Apply.
func (j *job) readDestination(ctx context.Context) (sinks.State, error) {
	defer j.span.Step("read")()
	return j.syncer.Sink.Read(ctx, j.Record)
}

func (j *job) write(ctx context.Context, changes sinks.Changes) (err error) {
	defer j.span.Step("write")()
	j.Status.TargetEmpty = false
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

// Reporter is called with the state of a subject; nil means no error.
type Reporter interface {
	Report(subject string, err error)
}

// Marked returns a sink that calls mark before each write about which the application must
// be notified, and the function that mark returns after it. A write that only restores
// what the application deleted is not one. An error of mark is reported and stops nothing.
func Marked(s Sink, mark func() (end func(), err error), reporter Reporter) Sink {
	return marked{s, mark, reporter}
}

type marked struct {
	Sink
	mark     func() (end func(), err error)
	reporter Reporter
}

func (m marked) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if !c.Empty() && !c.Restores {
		end, err := m.mark()
		m.reporter.Report("journal", err)
		defer end()
	}
	return m.Sink.Apply(ctx, r, c)
}

// RemoveFormer implements Mover.
func (m marked) RemoveFormer(former []string, taken func(path string) bool) (sinks.Cleared, error) {
	if mover, ok := m.Sink.(Mover); ok {
		return mover.RemoveFormer(former, taken)
	}
	return sinks.Cleared{}, nil
}

// patience is how long a sync may delay those of other namespaces in its share. Usually
// it takes some milliseconds.
const patience = time.Second

// inTurn runs the jobs of a share one after the other. If one takes longer than patience,
// the jobs of other namespaces no longer wait for it. Those of the same namespace still do.
// inTurn returns when all jobs have ended.
func inTurn(jobs []*job, run func(*job)) {
	var slow sync.WaitGroup
	defer slow.Wait()
	for len(jobs) > 0 {
		first := jobs[0]
		jobs = jobs[1:]
		isOwn := func(j *job) bool { return j.Spec.Key.Namespace() == first.Spec.Key.Namespace() }
		isOther := func(j *job) bool { return !isOwn(j) }
		if !slices.ContainsFunc(jobs, isOther) {
			run(first) // it delays nobody else
			continue
		}
		ended := make(chan struct{})
		slow.Go(func() {
			defer close(ended)
			run(first)
		})
		select {
		case <-ended:
		case <-time.After(patience):
			own := slices.DeleteFunc(slices.Clone(jobs), isOther)
			slow.Go(func() {
				<-ended
				for _, j := range own {
					run(j)
				}
			})
			jobs = slices.DeleteFunc(slices.Clone(jobs), isOwn)
		}
	}
}
