package rotation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

// sleeper is an actuator of a database that pauses before one of its calls, until it is
// woken.
type sleeper struct {
	*actuators.Turns
	only               string // only calls with this name count; "": all do
	at                 int64
	acts               atomic.Int64
	asleep, wake, done chan struct{}
}

// act runs do, after a pause if this is the call.
func (s *sleeper) act(name string, do func() error) error {
	if s.only != "" && s.only != name || s.acts.Add(1) != s.at {
		return do()
	}
	close(s.asleep)
	<-s.wake
	defer close(s.done)
	return do()
}

func (s *sleeper) Prepare(ctx context.Context, doc *versions.Document) (parts map[string]secret.Value, err error) {
	err = s.act("prepare", func() error { parts, err = s.Turns.Prepare(ctx, doc); return err })
	return parts, err
}

func (s *sleeper) InUse(ctx context.Context, v versions.Version) (who []string, err error) {
	err = s.act("inuse", func() error { who, err = s.Turns.InUse(ctx, v); return err })
	return who, err
}

func (s *sleeper) Apply(ctx context.Context, v versions.Version) (minted map[string]secret.Value, err error) {
	return nil, s.act("apply", func() error { _, err := s.Turns.Apply(context.WithoutCancel(ctx), v); return err })
}

func (s *sleeper) Verify(ctx context.Context, v versions.Version) error {
	return s.act("verify", func() error { return s.Turns.Verify(ctx, v) })
}

func (s *sleeper) Revoke(ctx context.Context, v versions.Version) error {
	return s.act("revoke", func() error { return s.Turns.Revoke(context.WithoutCancel(ctx), v) })
}

// sleeperAt returns a sleeper that pauses before the call with this number.
func sleeperAt(database *actuators.Turns, only string, at int64) *sleeper {
	return &sleeper{Turns: database, only: only, at: at, asleep: make(chan struct{}), wake: make(chan struct{}), done: make(chan struct{})}
}

// TestALeaderSleepsWhileAnotherRotatesTwice: a leader is suspended before a call to the
// database. When it continues, its late call changes nothing that the other leader did.
func TestALeaderSleepsWhileAnotherRotatesTwice(t *testing.T) {
	t.Parallel()
	const acts = 14 // more than a rotation has
	var slept atomic.Int64
	t.Run("before act", func(t *testing.T) {
		for act := range int64(acts) {
			t.Run(strconv.FormatInt(act+1, 10), func(t *testing.T) {
				t.Parallel()
				if newShop(t).sleepsThroughOthers(act + 1) {
					slept.Add(1)
				}
			})
		}
	})
	if n := slept.Load(); n < 6 || n == acts {
		t.Errorf("a rotation has %d acts in the database", n)
	}
}

// sleepsThroughOthers suspends a leader before a call, and checks the effect of the late
// call. It reports whether the rotation has such a call.
func (s *shop) sleepsThroughOthers(act int64) bool {
	t := s.t
	client := s.as("rotates", "engine")
	stop := run(t, s.rotator(client, s.database(client, s.db.Addr), nil))
	s.Idle("")
	stop()

	slow := sleeperAt(s.database(client, s.db.Addr), "", act)
	stopSlow := run(t, s.rotator(client, slow, nil))
	first, _ := s.Doc().Primary()
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	slept := false
	proctest.Eventually(t, "it sleeps, or is done", func() bool {
		select {
		case <-slow.asleep:
			slept = true
			return true
		default:
		}
		doc, err := s.Look(t.Context())
		return err == nil && settest.Idle(doc, first.ID)
	})
	if !slept {
		return false
	}
	other := s.as("rotates", "engine")
	stop = run(t, s.rotator(other, s.database(other, s.db.Addr), nil))
	s.Idle(first.ID)
	for range 1 + act%2 {
		s.Rotate()
	}
	stop()
	close(slow.wake)
	<-slow.done
	stopSlow()
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

// gate is a Consumers. While it is open, all consumers have left the old version.
type gate struct{ open atomic.Bool }

func (g *gate) Introduced(context.Context, *versions.Document, versions.Version, []rotation.Shown) rotation.Answer {
	return rotation.Answer{Open: true}
}

func (g *gate) Left(context.Context, *versions.Document, versions.Version, []rotation.Shown) rotation.Answer {
	return rotation.Answer{Open: g.open.Load(), Waits: "the gate"}
}

// TestAPrimaryThatIsBrokenByHandKeepsTheOldOne: somebody drops the primary's user while the
// old login waits for its revocation. The old login is revoked only when the primary works
// again.
func TestAPrimaryThatIsBrokenByHandKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client := s.as("rotates", "engine")
	database := s.database(client, s.db.Addr)
	shut := &gate{}
	shut.open.Store(true)
	tried := &sleeper{Turns: database}
	run(t, s.rotator(client, tried, shut))
	old := s.Idle("")
	shut.open.Store(false)
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	primary, _ := s.Until("a new primary, and the old one held", func(d *versions.Document) bool {
		primary, _ := d.Primary()
		return primary.ID != old.ID && d.Stage() == "switch"
	}).Primary()
	user := string(primary.Parts["username"].Bytes())
	s.db.Query(t, "postgres", "DROP ROLE "+user)
	shut.open.Store(true)
	s.Until("the old one is about to be revoked", func(d *versions.Document) bool { return d.Stage() == "revoke" })
	before := tried.acts.Load()
	proctest.Eventually(t, "some more looks at the primary", func() bool { return tried.acts.Load() > before+4 })
	if err := database.Verify(t.Context(), old); err != nil {
		t.Fatalf("the old one was refused though the primary does not work: %v", err)
	}
	// A dumped role is restored without its comment, here with another password.
	s.db.Query(t, "postgres", fmt.Sprintf("CREATE ROLE %[1]s LOGIN PASSWORD 'another'", user))
	s.Idle(old.ID)
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestARestoredDatabase: the database has the users from two rotations ago. The primary is
// applied again with the same password, and the next rotation succeeds.
func TestARestoredDatabase(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client := s.as("rotates", "engine")
	stop := run(t, s.rotator(client, s.database(client, s.db.Addr), nil))
	s.Idle("")
	backup := s.db.Query(t, "postgres", fmt.Sprintf(`SELECT format('ALTER ROLE %%I %%s PASSWORD %%L; COMMENT ON ROLE %%I IS %%L', rolname,
		CASE WHEN rolcanlogin THEN 'LOGIN' ELSE 'NOLOGIN' END, rolpassword, rolname, shobj_description(oid, 'pg_authid')) FROM pg_authid WHERE rolname IN ('%s')`,
		strings.Join(s.users, "', '")))
	s.Rotate()
	primary := s.Rotate()
	stop()
	s.db.Query(t, "postgres", strings.Join(backup, "; "))
	database := s.database(client, s.db.Addr)
	if err := database.Verify(t.Context(), primary); err == nil {
		t.Fatal("the restored database has the primary")
	}
	run(t, s.rotator(client, database, nil))
	proctest.Eventually(t, "the primary works again", func() bool { return database.Verify(t.Context(), primary) == nil })
	if now, _ := s.Doc().Primary(); now.ID != primary.ID {
		t.Errorf("the primary is %s instead of %s", now.ID, primary.ID)
	}
	s.Rotate()
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBothUsersAreDeleted: recreated users get the login of the set.
func TestBothUsersAreDeleted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client, database, primary := s.begun(t)
	s.dropRoles()
	s.createRoles()
	run(t, s.rotator(client, database, nil))
	proctest.Eventually(t, "the primary works again", func() bool { return database.Verify(t.Context(), primary) == nil })
	s.Rotate()
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBackToTheOldOne rolls back while the old login is kept, and then rotates again.
func TestBackToTheOldOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client := s.as("rotates", "engine")
	database := s.database(client, s.db.Addr)
	shut := &gate{}
	run(t, s.rotator(client, database, shut))
	old := s.Idle("")
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Until("a new primary, and the old one held", func(d *versions.Document) bool {
		primary, _ := d.Primary()
		return primary.ID != old.ID && d.Stage() == "switch"
	})
	err := s.Steered.SendCommand(t.Context(), versions.Command{Verb: "rollback", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.Until("the old one is the primary again", func(d *versions.Document) bool {
		primary, _ := d.Primary()
		return primary.ID == old.ID
	})
	if err := database.Verify(t.Context(), old); err != nil {
		t.Error(err)
	}
	shut.open.Store(true)
	s.Until("the one that was given back is gone", func(d *versions.Document) bool { return d.Stage() == "idle" })
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
	s.Rotate()
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTheClockMoves while an old login is kept for an hour. If the clock moves ahead, a new
// leader first observes the login without consumers for a while. If the clock moves back,
// the hour begins again.
func TestTheClockMoves(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := newShopOf(t, postgres, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	const watch = 2 * time.Second
	var counted *sleeper
	lead := func() (stop func()) { // with a separate token
		client := s.as("rotates", "engine")
		counted = &sleeper{Turns: s.database(client, s.db.Addr)}
		return run(t, s.rotator(client, counted, nil, func(c *rotation.Config) {
			c.Sets[0].Policy.Keep, c.Watch = time.Hour, watch
		}))
	}
	stop := lead()
	old := s.Idle("")
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	isKept := func(d *versions.Document) bool {
		v, _ := d.Version(old.ID)
		return v.State == versions.Retiring && !v.Left.IsZero()
	}
	s.Until("the old one is kept", isKept)
	stop()

	ahead.Store(int64(-24 * time.Hour))
	stop = lead()
	step := s.Doc().Step
	proctest.Eventually(t, "it waits, and uses the primary meanwhile", func() bool { return counted.acts.Load() > 0 })
	if now := s.Doc(); now.Step != step || !isKept(now) {
		t.Errorf("with a clock that was put back the set is %s", settest.Told(now))
	}
	stop()

	ahead.Store(int64(2 * time.Hour))
	begin := time.Now()
	lead()
	s.Idle(old.ID)
	if took := time.Since(begin); took < watch {
		t.Errorf("a leader that had seen the old one for %v revoked it", took)
	}
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}
