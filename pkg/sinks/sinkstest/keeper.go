package sinkstest

import (
	"context"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Sink is the sink under test.
type Sink interface {
	Read(context.Context, records.Record) (sinks.State, error)
	Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error)
}

// Keeper keeps the status of targets for a sink, as the syncing code does.
type Keeper struct {
	Sink
	Set     records.Set
	Drifted []targets.Key // targets that others changed during a change
}

// Keep returns a Keeper without any targets.
func Keep(sink Sink) *Keeper { return &Keeper{Sink: sink} }

// Read reads the state of a target.
func (k *Keeper) Read(ctx context.Context, t *targets.Target) (state sinks.State, err error) {
	k.with(t, func(r *records.Record) {
		if state, err = k.Sink.Read(ctx, *r); err == nil || state.Version != r.Status.Version && ctx.Err() == nil {
			r.Status.See(state.Sight)
		}
	})
	return state, err
}

// Apply makes changes to a target.
func (k *Keeper) Apply(ctx context.Context, t *targets.Target, c sinks.Changes) (err error) {
	k.with(t, func(r *records.Record) {
		r.Status.Sight, err = k.Sink.Apply(ctx, *r, c)
		r.Status.WriteFailed, r.Status.Ours = err != nil, err == nil
	})
	return err
}

func (k *Keeper) with(t *targets.Target, f func(*records.Record)) {
	lane := k.Set.Lane("")
	lane.Put(t)
	r, ok := lane.Begin(t.Key)
	if !ok {
		panic(t.Key + " is being worked on")
	}
	f(&r)
	_, again := lane.Settle(r)
	for _, change := range again {
		k.Drifted = append(k.Drifted, change.Key)
	}
}
