package sinks

import (
	"context"
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// keeper is a Files with the status of its targets, as those keep it who sync.
type keeper struct {
	*Files
	set    records.Set
	status map[targets.Key]records.Status
}

func newKeeper(dir string, owner *Owner) *keeper {
	return &keeper{Files: NewFiles(dir, owner), status: map[targets.Key]records.Status{}}
}

func (k *keeper) record(t *targets.Target) records.Record {
	return records.Record{Spec: t, Status: k.status[t.Key]}
}

func (k *keeper) Read(ctx context.Context, t *targets.Target) (State, error) {
	state, err := k.Files.Read(ctx, k.record(t))
	if err == nil {
		status := k.status[t.Key]
		status.See(state.Sight)
		status.WriteFailed = false
		k.status[t.Key] = status
	}
	return state, err
}

func (k *keeper) Apply(ctx context.Context, t *targets.Target, c Changes) error {
	sight, err := k.Files.Apply(ctx, k.record(t), c)
	status := k.status[t.Key]
	if ctx.Err() == nil {
		status.Sight, status.Ours, status.WriteFailed = sight, err == nil, err != nil
	}
	k.status[t.Key] = status
	return err
}

func (k *keeper) Altered(ts []*targets.Target) []targets.Key {
	var all []records.Record
	for _, t := range ts {
		all = append(all, k.record(t))
	}
	return k.Files.Altered(slices.Values(all))
}

// Assign makes these the targets that there are.
func (k *keeper) Assign(ts []*targets.Target) {
	for _, change := range k.set.Lane("").Replace(ts) {
		if change.Gone {
			delete(k.status, change.Key)
		}
	}
}

// Confirm notes that a target is right as it is.
func (k *keeper) Confirm(key targets.Key) {
	status := k.status[key]
	status.Ours = true
	k.status[key] = status
}

func (k *keeper) RemoveFormer(key targets.Key) (removed, altered []string, err error) {
	status := k.status[key]
	done, err := k.Files.RemoveFormer(status.Former, k.set.Lane("").Taken)
	status.Former = done.Left
	k.status[key] = status
	return done.Removed, done.Altered, err
}
