package rotation

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// impatient checks the consumers at shorter intervals than an engine.
type impatient struct{ rotation.Consumers }

func (i impatient) Introduced(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown) rotation.Answer {
	return soon(i.Consumers.Introduced(ctx, doc, v, shown))
}

func (i impatient) Left(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown) rotation.Answer {
	return soon(i.Consumers.Left(ctx, doc, v, shown))
}

func soon(a rotation.Answer) rotation.Answer {
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

// credentials are rotated at the same time, and clients is the number of programs for each:
// twenty in all.
const (
	credentials = 4
	clients     = 5
)

// TestNoLoginFailsWhileUsersTakeTurns: programs log in without pause while their logins
// rotate. Each credential has a share of the programs and of the rotations.
func TestNoLoginFailsWhileUsersTakeTurns(t *testing.T) {
	t.Parallel()
	for i := range credentials {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			newShop(t).lives(rotations() / credentials)
		})
	}
}

// lives rotates, and checks that no login failed, and that one works in the end.
func (s *shop) lives(rotations int) {
	s.t.Helper()
	logins, failed := s.live(rotations, false)
	if len(failed) > 0 || logins < int64(rotations*clients) {
		s.t.Errorf("of %d logins these failed: %s", logins, some(failed))
	}
	if left := s.logins.left(); len(left) != 1 {
		s.t.Errorf("in the end %q work", left)
	}
	s.t.Logf("%d rotations, %d logins, %d failed", rotations, logins, len(failed))
}

// TestWithTheGateForcedOpenLoginsFail shows that the test above can fail.
func TestWithTheGateForcedOpenLoginsFail(t *testing.T) {
	t.Parallel()
	newShop(t).failsWithoutTheGate()
}

func (s *shop) failsWithoutTheGate() {
	s.t.Helper()
	logins, failed := s.live(3, true)
	if len(failed) == 0 {
		s.t.Errorf("none of %d logins failed", logins)
	}
}

// live rotates while clients log in.
func (s *shop) live(rotations int, forced bool) (logins int64, failed []string) {
	client := s.as("rotates", "engine")
	database := s.logins.actuator(client, s.logins.address())
	stop := run(s.t, s.rotator(client, database, nil))
	s.Idle("")
	stop()

	interval, between := 100*time.Millisecond, 400*time.Millisecond
	if forced { // the files are late, and the gate does not wait for them
		interval, between = time.Minute, 20*time.Millisecond
	}
	clients, ask := s.newClients(clients, interval)
	who, err := consumers.New(consumers.Config{Set: set, Ask: []string{ask}, Again: time.Millisecond, Now: time.Now})
	if err != nil {
		s.t.Fatal(err)
	}
	engine := s.rotator(client, database, impatient{who}, func(c *rotation.Config) { c.Interval = interval })
	if forced {
		engine = s.rotator(client, blind{database, database}, nil)
	}
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	turns := ticker.C
	if *busy {
		turns = nil
	}
	ended := all(s.t, clients, turns)
	run(s.t, engine)
	for range rotations {
		s.Rotate()
	}
	failed = ended()
	for _, c := range clients {
		logins += c.logins.Load()
	}
	return logins, failed
}
