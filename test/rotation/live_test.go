package rotation

import (
	"context"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/actuators"
	"github.com/secretsync/syncer/pkg/consumers"
	"github.com/secretsync/syncer/pkg/rotate"
	"github.com/secretsync/syncer/pkg/versions"
)

// impatient asks again soon, where an engine would take its time.
type impatient struct{ rotate.Consumers }

func (i impatient) Introduced(ctx context.Context, doc *versions.Document, v versions.Version) rotate.Answer {
	return soon(i.Consumers.Introduced(ctx, doc, v))
}

func (i impatient) Left(ctx context.Context, doc *versions.Document, v versions.Version) rotate.Answer {
	return soon(i.Consumers.Left(ctx, doc, v))
}

func soon(a rotate.Answer) rotate.Answer {
	if !a.Open {
		a.Until = time.Now().Add(100 * time.Millisecond)
	}
	return a
}

// blind is an actuator that sees no session.
type blind struct {
	actuators.Actuator
	actuators.Preparer
}

// TestNoLoginFailsWhileUsersTakeTurns: programs log in without pause while their
// logins are exchanged again and again.
func TestNoLoginFailsWhileUsersTakeTurns(t *testing.T) {
	s := newShop(t)
	logins, failed := s.live(t, *rotations, false)
	if len(failed) > 0 || logins < int64(*rotations) {
		t.Errorf("of %d logins these failed: %s", logins, some(failed))
	}
	if users := s.logins(); len(users) != 1 {
		t.Errorf("in the end %q may log in", users)
	}
	t.Logf("%d rotations, %d logins, %d failed", *rotations, logins, len(failed))
}

// TestWithTheGateForcedOpenLoginsFail shows that the test above can fail.
func TestWithTheGateForcedOpenLoginsFail(t *testing.T) {
	logins, failed := newShop(t).live(t, 3, true)
	if len(failed) == 0 {
		t.Errorf("none of %d logins failed", logins)
	}
}

// live rotates while 20 clients log in.
func (s *shop) live(t *testing.T, rotations int, forced bool) (logins int64, failed []string) {
	client := s.as("rotates", "engine")
	database := s.database(client, s.db.Addr)
	stop := run(t, s.rotator(client, database, nil))
	s.idle("")
	stop()

	interval := 100 * time.Millisecond
	if forced {
		interval = time.Second
	}
	clients, ask := s.newClients(20, interval)
	who, err := consumers.New(consumers.Config{Set: set, Ask: []string{ask}, Again: time.Millisecond, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	engine := s.rotator(client, database, impatient{who})
	if forced {
		engine = s.rotator(client, blind{database, database}, nil)
	}
	var turns <-chan time.Time
	if !*busy && !forced {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		turns = ticker.C
	}
	ended := all(t, clients, turns)
	run(t, engine)
	for range rotations {
		s.rotate()
	}
	failed = ended()
	for _, c := range clients {
		logins += c.logins.Load()
	}
	return logins, failed
}
