package rotation

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// late is an outside that revokes in two steps.
type late struct {
	*outside
	ends atomic.Bool
}

func (l *late) Revoke(ctx context.Context, v versions.Version) error {
	if !l.ends.Load() {
		return &actuators.LaterError{Why: "the old one is deleted later", Until: time.Now().Add(10 * time.Millisecond)}
	}
	return l.outside.Revoke(ctx, v)
}

// TestAnActThatGoesOnLater is no failure: the set waits and says why.
func TestAnActThatGoesOnLater(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := &late{outside: &outside{accepts: map[string]string{}}}
	set := s.logins(l.outside)
	set.Actuator = l
	r, heard := s.rotator(s.client, "me", set)
	run(t, r)
	first := idleWith("")
	old, _ := s.until("a first login", first).Primary()
	s.command("now", versions.Command{})
	proctest.Eventually(t, "why it waits", func() bool { return strings.Contains(heard.reasons(), "revoke: the old one is deleted later") })
	if strings.Contains(heard.reasons(), EventFailed) {
		t.Errorf("a wait counts as a failure:\n%s", heard.reasons())
	}
	l.ends.Store(true)
	s.until("the old one is gone", idleWith(old.ID))
}
