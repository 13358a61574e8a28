package rotation

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// sluggish is an outside whose Apply takes its time, and says how long it may.
type sluggish struct {
	outside
	takes time.Duration
	may   atomic.Int64
}

func (o *sluggish) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	if end, ok := ctx.Deadline(); ok {
		o.may.Store(int64(time.Until(end)))
	}
	time.Sleep(o.takes) // as long as the outside is busy
	return o.outside.Apply(ctx, v)
}

// TestASlowActIsDoneOnce although it takes longer than its outcome is a fact: that
// counts from the outcome on. The step has time for all acts of a set with a Timeout.
func TestASlowActIsDoneOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &sluggish{outside: outside{accepts: map[string]string{}}, takes: time.Second}
	set := s.logins(&o.outside)
	set.Actuator, set.Timeout = o, time.Hour
	r, _ := s.rotator(s.client, "me", set)
	r.tried = o.takes
	run(t, r)
	s.until("a first login", idleWith(""))
	if may := time.Duration(o.may.Load()); may < mostActs*time.Hour-time.Minute {
		t.Errorf("an act of an hour has %v", may)
	}
}

// hanging is an outside whose Apply waits for the test.
type hanging struct {
	outside
	waits chan struct{}
}

func (o *hanging) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	<-o.waits
	return o.outside.Apply(ctx, v)
}

// TestAnOutsideThatHangsDelaysNoOtherSet, however few there are.
func TestAnOutsideThatHangsDelaysNoOtherSet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Policy("- !variable other\n- !variable other/control\n- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable other, !variable other/control] }\n")
	o := &hanging{outside: outside{accepts: map[string]string{}}, waits: make(chan struct{})}
	hangs := s.logins(&o.outside)
	hangs.ID, hangs.Actuator = "other", o
	r, _ := s.rotator(s.client, "me", hangs, s.keys(nil))
	stop := run(t, r)
	defer stop()
	defer close(o.waits)
	first := s.until("a first key", idleWith(""))
	s.command("now", versions.Command{})
	primary, _ := first.Primary()
	s.until("a second key", idleWith(primary.ID))
}
