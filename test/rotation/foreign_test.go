package rotation

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

const otherSet = "shop/other"

// declared is the policy of a set: the host rotates changes the set, and Syncer delivers it.
func declared(set string) string {
	return fmt.Sprintf(`
- !variable %[1]s
- !permit { role: !host rotates, privileges: [read, execute, update], resource: !variable %[1]s }
- !permit { role: !host app, privileges: [read, execute], resource: !variable %[1]s }
`, set)
}

// stored is a shop whose Conjur keeps its data in a file, so that a backup can be
// restored.
type stored struct {
	*shop
	key []byte
}

func newStored(t *testing.T) stored {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	data := filepath.Join(t.TempDir(), "conjur.db")
	s := newShopOf(t, postgres, conjurdtest.With(func(o *conjurd.Options) { o.Data, o.DataKey, o.Create = data, key, true }))
	s.Policy(declared(otherSet) + declared(otherSet+"/control"))
	return stored{s, key}
}

// backup returns a function that restores the server's present data.
func (s stored) backup() (restore func()) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "backup.db")
	if err := s.Conjurd.Backup(path); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		restored, err := conjurd.Open(conjurd.Options{Account: s.Account, Data: path, DataKey: s.key, MaxFailedLogins: -1})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = restored.Close() })
		s.Intercept(func(http.Handler) http.Handler { return restored.Handler() })
	}
}

// process is "syncer rotate run" with one set of the shop's users.
func (s stored) process(id string) (*rotation.Rotator, *heard) {
	s.t.Helper()
	events := &heard{}
	return s.configured(events, fmt.Sprintf(`
rotation:
  interval: 1s
  sets:
  - set: %s
    postgresql: {address: %s/postgres, admin: shop/admin, users: [%s], plain: true}
    confirm: {wait: 1s}
    grace: 1s
`, id, s.db.Addr, strings.Join(s.users, ", "))), events
}

func (s stored) command(id, verb string) {
	s.t.Helper()
	set := rotation.Set{Conjur: s.reader, ID: id}
	if _, err := set.Withdraw(s.t.Context(), time.Now()); err != nil { // a rejected command stays pending
		s.t.Fatal(err)
	}
	if err := set.SendCommand(s.t.Context(), versions.Command{Verb: verb, At: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// primaryOf waits until a set is idle with a primary that can be used.
func (s stored) primaryOf(id string) {
	s.t.Helper()
	database := s.database(s.reader, s.db.Addr)
	proctest.Eventually(s.t, "a primary of "+id+" that can be used", func() bool {
		held, err := rotation.Set{Conjur: s.reader, ID: id}.Read(s.t.Context())
		if err != nil || held.Document == nil {
			return false
		}
		primary, ok := held.Primary()
		return ok && held.Stage() == "idle" && database.Verify(s.t.Context(), primary) == nil
	})
}

// TestNoSetChangesAUserOfAnother while programs log in: after each mistake of an operator,
// the second set is refused and named until a person claims it.
func TestNoSetChangesAUserOfAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id     string // the set that is rotated at the end
		beside bool   // the first process continues
		befall func(s stored)
		says   string
	}{
		"the set is renamed":               {otherSet, false, func(stored) {}, "of the set shop/db"},
		"a second set has the same users":  {otherSet, true, func(stored) {}, "of the set shop/db"},
		"the variable is declared anew":    {set, false, stored.declareAnew, "of an earlier set shop/db"},
		"a backup of Conjur is restored":   {set, false, nil, "of a later state of the set"},
		"the set is copied to another one": {otherSet, false, stored.copySet, "of the set shop/db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStored(t)
			engine, heard := s.process(set)
			stop := run(t, engine)
			s.Idle("")
			clients, _ := s.newClients(2, 100*time.Millisecond)
			ticker := time.NewTicker(time.Duration(pause()) * time.Millisecond)
			defer ticker.Stop()
			ended := all(t, clients, ticker.C)
			s.Rotate()
			restore := s.backup()
			last := s.Rotate()
			proctest.Eventually(t, "the programs use the last version", func() bool { return oldest(clients) == last.ID })
			if !c.beside {
				stop()
			}
			if c.befall != nil {
				c.befall(s)
			} else {
				restore()
			}

			s.command(c.id, "now")
			other, events := s.process(c.id)
			run(t, other)
			proctest.Eventually(t, "an Event that says whose the users are", func() bool {
				return events.count(rotation.EventFailed, last.ID+" "+c.says) > 0
			})
			looks, _ := s.process(c.id) // as a command does while the engine runs
			if problems := strings.Join(looks.Check(t.Context())[c.id], "\n"); !strings.Contains(problems, last.ID+" "+c.says) {
				t.Errorf("check says %s", problems)
			}
			for _, report := range looks.Look(t.Context()) {
				if said := report.Problem + report.WaitsFor; !strings.Contains(said, last.ID+" "+c.says) || !strings.Contains(said, "rotate claim "+c.id) {
					t.Errorf("status says %s", said)
				}
			}
			if c.befall == nil { // from here on the programs must follow the set
				if failed := ended(); len(failed) > 0 {
					t.Errorf("these log-ins failed: %s", some(failed))
				}
			}
			s.command(c.id, "claim")
			s.primaryOf(c.id)
			proctest.Eventually(t, "the programs can log in", func() bool {
				_, username, password, err := clients[0].read()
				return err == nil && logIn(username, password) == nil
			})
			if c.beside { // now the first set must not change the users
				s.command(set, "now")
				proctest.Eventually(t, "the first set is refused too", func() bool {
					return heard.count(rotation.EventFailed, "of the set "+otherSet) > 0
				})
			}
			if failed := ended(); len(failed) > 0 && c.befall != nil {
				t.Errorf("these log-ins failed: %s", some(failed))
			}
		})
	}
}

// declareAnew deletes the variable of the set, and declares it again.
func (s stored) declareAnew() {
	s.Policy("- !delete { record: !variable " + set + " }")
	s.Policy(declared(set))
}

// copySet gives the other variable the value of the set.
func (s stored) copySet() {
	values := s.reader.Variable(context.Background(), set, "")
	if values.Err != nil {
		s.t.Fatal(values.Err)
	}
	value := values.Found[set]
	s.Set(otherSet, string(value.Bytes()))
}
