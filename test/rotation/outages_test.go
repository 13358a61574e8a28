package rotation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

// heard collects Events.
type heard struct {
	mu  sync.Mutex
	all []rotation.Event
}

func (h *heard) Rotated(e rotation.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) Failed(string, string) {}

// count returns how many Events of that reason have text in their message.
func (h *heard) count(reason, text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		if e.Reason == reason && strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

// outage is a shop whose database fails right before one call of a rotation.
type outage struct {
	*shop
	heard
	more   bool     // the outage outlasts the attempts with one version
	before *sleeper // the act
	old    versions.Version
	slept  bool // the rotation has this call
}

// giveUp is the minimum time of the attempts with a version.
const giveUp = 2 * time.Second

// newOutage returns an outage that waits before the call, or whose rotation ended without
// that call. With more, the version is given up. If a slow machine gives it up before the
// call, another version follows.
func newOutage(t *testing.T, db *pgtest.Server, only string, act int64, more bool) *outage {
	s := newShopOf(t, db)
	client, database, old := s.begun(t)
	o := &outage{shop: s, more: more, old: old}
	o.before = sleeperAt(database, only, act)
	run(t, s.rotator(client, o.before, nil, func(c *rotation.Config) {
		if more {
			c.Sets[0].Policy.GiveUp = giveUp
		}
		c.Listener = o
	}))
	if only == "" {
		proctest.Eventually(t, "the first act, a look at the primary", func() bool { return o.before.acts.Load() > 0 })
	}
	tried := o.old.ID // the newest version when a new one was asked for
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "it waits before the act, or is done", func() bool {
		select {
		case <-o.before.asleep:
			o.slept = true
			return true
		default:
		}
		doc := s.Doc()
		primary, _ := doc.Primary()
		if newest := doc.Versions[0].ID; more && newest != tried && triedForLong(doc) && doc.Stage() == "idle" {
			tried = newest
			if err := s.Begin(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return doc.Stage() == "idle" && primary.ID != o.old.ID
	})
	return o
}

// outlast makes the call fail until an Event reports it, or until the version is given up. A
// primary is never given up; then the outage lasts longer than the attempts with a new
// version would.
func (o *outage) outlast() (abandoned bool) {
	coming, isComing := o.Doc().Coming()
	begin := time.Now()
	close(o.before.wake)
	<-o.before.done
	defer func() {
		if o.t.Failed() {
			o.t.Logf("is one coming: %v (%s); %s; %+v", isComing, coming.ID, settest.Told(o.Doc()), o.all)
		}
	}()
	proctest.Eventually(o.t, "it has failed for long enough", func() bool {
		if o.more && isComing {
			now, _ := o.Doc().Coming() // a version that was given up may still wait for its revocation
			return now.ID != coming.ID && o.count(rotation.EventFailed, "gave up "+coming.ID) > 0
		}
		return o.count(rotation.EventFailed, "") > 0 && (!o.more || time.Since(begin) > giveUp)
	})
	if primary, _ := o.Doc().Primary(); isComing && primary.ID != o.old.ID {
		o.t.Errorf("the primary is %s, which cannot be used", primary.ID)
	}
	return o.more && isComing
}

// recovers checks the set after the outage. On a slow machine, a version that begins only
// then may be given up too.
func (o *outage) recovers(abandoned bool) {
	doc := o.Until("the end", func(d *versions.Document) bool {
		primary, _ := d.Primary()
		stays := primary.ID == o.old.ID
		return d.Stage() == "idle" && (abandoned == stays || stays && o.more && triedForLong(d))
	})
	if err := o.judge(o.t.Context()); err != nil {
		o.t.Errorf("before act %d: %v; %s", o.before.at, err, settest.Told(doc))
	}
}

// triedForLong reports whether the newest version was given up, and not before its
// time.
func triedForLong(d *versions.Document) bool {
	last := d.Versions[0]
	i := slices.IndexFunc(d.Log, func(e versions.Entry) bool { return e.What == "gave up "+last.ID })
	return i >= 0 && d.Log[i].At.Sub(last.Made) >= giveUp
}

// newDatabase returns a database for this test only.
func newDatabase(t *testing.T) *pgtest.Server {
	t.Helper()
	db, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// TestTheDatabaseStopsAtEachStep of a rotation, for less and for more time than the attempts
// with a version. A version that was not yet the primary is given up, and refused when the
// database is back. All others continue.
func TestTheDatabaseStopsAtEachStep(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]bool{"for less": false, "for more": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			var all []*outage
			for act := int64(2); ; act++ {
				o := newOutage(t, db, "", act, more)
				all = append(all, o)
				if !o.slept {
					break
				}
			}
			db.Crash()
			abandoned := make([]bool, len(all))
			var waiting sync.WaitGroup
			for i, o := range all {
				if o.slept {
					waiting.Go(func() { abandoned[i] = o.outlast() })
				}
			}
			waiting.Wait()
			db.Restart(t)
			for i, o := range all {
				o.recovers(abandoned[i])
			}
			if n := len(slices.DeleteFunc(abandoned, func(is bool) bool { return !is })); more != (n > 0) || len(all) < 8 {
				t.Errorf("%d of %d versions were given up", n, len(all))
			}
		})
	}
}

// TestTheDiskOfTheDatabaseIsFull while a login is accepted, and while one is refused.
func TestTheDiskOfTheDatabaseIsFull(t *testing.T) {
	dir, err := os.MkdirTemp("", "full") // one that the database's user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	switch err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); {
	case err == unix.EPERM:
		t.Skip("without the right to mount there is no disk that is small enough")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	db := newDatabase(t)
	for _, c := range []struct {
		what string
		act  string
		more bool
	}{{"a login is accepted, for less", "apply", false}, {"a login is accepted, for more", "apply", true}, {"a login is refused", "revoke", false}} {
		t.Run(c.what, func(t *testing.T) {
			o := newOutage(t, db, c.act, 1, c.more)
			// Each change of its long comment makes the stored role larger.
			for _, user := range o.users {
				db.Query(t, "postgres", fmt.Sprintf("DO $$ BEGIN EXECUTE format('COMMENT ON ROLE %s IS %%L', coalesce(shobj_description('%s'::regrole, 'pg_authid'), '') || (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 9999) n)); END $$", user, user))
			}
			ballast := fill(t, dir)
			abandoned := o.outlast()
			if !c.more && o.count(rotation.EventFailed, "No space left") == 0 {
				t.Errorf("no Event says why: %+v", o.all)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			o.recovers(abandoned)
		})
	}
}

// fill fills a disk, with the file that it returns.
func fill(t *testing.T, dir string) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(ballast) }) // if the test has not
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Fatal(err)
	}
	return ballast
}

// disliked is a database that refuses the first passwords, because they equal the user's
// name.
type disliked struct {
	*actuators.Turns
	left int // how many more passwords it refuses
}

func (d *disliked) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	parts, err := d.Turns.Prepare(ctx, doc)
	if err == nil && d.left > 0 {
		d.left--
		parts["password"] = parts["username"]
	}
	return parts, err
}

// TestAPasswordThatTheDatabaseRefuses three times: each attempt has other bytes and a longer
// pause, and the primary does not change.
func TestAPasswordThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client, database, old := s.begun(t)
	s.db.Query(t, "postgres", fmt.Sprintf("ALTER ROLE %s_admin SET session_preload_libraries = 'passwordcheck'", s.name))
	events := &heard{}
	stop := run(t, s.rotator(client, &disliked{database, 3}, nil, func(c *rotation.Config) {
		c.Sets[0].Schedule = rotation.Schedule{Every: time.Second, Retry: time.Second}
		c.Listener = events
	}))
	made := map[string]time.Time{}
	s.Until("a password that is good", func(d *versions.Document) bool {
		for _, v := range d.Versions {
			if v.State == versions.Retiring && v.ID != old.ID && database.Verify(t.Context(), old) != nil {
				t.Errorf("the primary is refused after %s", v.ID)
			}
			made[v.ID] = v.Made
		}
		primary, _ := d.Primary()
		return primary.ID != old.ID
	})
	stop()
	delete(made, old.ID)
	var times []time.Time
	for _, id := range slices.Sorted(maps.Keys(made)) {
		times = append(times, made[id])
	}
	for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if len(times) < 4 || times[i+1].Sub(times[i]) < least { // a fifth may be the next by schedule
			t.Fatalf("versions were made at %v", times)
		}
	}
	if n := events.count(rotation.EventFailed, "was refused"); n != 3 {
		t.Errorf("%d Events say that a password was refused", n)
	}
	run(t, s.rotator(client, database, nil)) // without a schedule
	s.Idle(old.ID)
	if err := s.judge(t.Context()); err != nil {
		t.Error(err)
	}
}
