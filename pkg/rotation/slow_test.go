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
