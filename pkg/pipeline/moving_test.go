package pipeline

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/test/proctest"
)

// doorkeeper is a sink that counts who is at work on a Secret. Whoever reads
// waits for its turn.
type doorkeeper struct {
	leftover
	turns               chan struct{}
	inside, most, reads atomic.Int64
}

func (d *doorkeeper) Read(context.Context, records.Record) (sinks.State, error) {
	d.most.Store(max(d.most.Load(), d.inside.Add(1)))
	d.reads.Add(1)
	<-d.turns
	return sinks.State{Parts: map[string]secret.Value{"old": secret.New([]byte("value"))}}, nil
}

func (d *doorkeeper) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	defer d.inside.Add(-1)
	return d.leftover.Apply(ctx, r, c)
}

// TestASecretThatMovesIsHandedOn: the lane that it has come to waits until the
// worker of the other one has settled it.
func TestASecretThatMovesIsHandedOn(t *testing.T) {
	door := &doorkeeper{turns: make(chan struct{})}
	c := newCluster(t, config.ModeStandalone, door, "", "two")
	c.has("db", "{}")
	proctest.Eventually(t, "the worker of the first identity", func() bool { return door.reads.Load() == 1 })

	moved := *c.settings.config()
	moved.Identities = slices.Clone(moved.Identities)
	moved.Identities[1].Secrets = []string{"ns/db"}
	c.settings.now.Store(&moved)
	c.define("ns", "db", func(def *definitions.SecretDefinition) { def.UID, def.HasMap, def.Map = "db", true, "{}" })
	two := c.lanes.all()[1]
	if _, ok := two.targets.Get("secret/ns/db"); !ok {
		t.Fatal("the Secret has not moved")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := two.queue.WaitSettled(ctx); err != nil {
		close(door.turns)
		t.Fatalf("the second worker has not been refused: %v", err)
	}
	if n := door.reads.Load(); n != 1 {
		t.Fatalf("%d workers have begun", n)
	}
	door.turns <- struct{}{} // the first one ends
	door.turns <- struct{}{} // and the second one gets its own turn
	c.settled()
	if most, inside := door.most.Load(), door.inside.Load(); most != 1 || inside != 0 {
		t.Errorf("%d workers were at work on one Secret at once, and %d are still", most, inside)
	}
}
