package rotation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// TestBoundsOfTheLedger: three failed sets bar an outside system, and a version counts for
// an hour.
func TestBoundsOfTheLedger(t *testing.T) {
	t.Parallel()
	now := time.Now()
	used := versions.New("me").Make("r1", parts("x"), false, versions.Entry{At: now}).Promote("r1", versions.Entry{At: now})
	for less := -1; less <= 1; less++ {
		l := &New(Config{PerHour: 3}).startLimiter
		for i := range 3 + less {
			l.recordOutcome(&Plan{ID: fmt.Sprint("failed", i), Outside: "db"}, false)
			l.begun[fmt.Sprint("begun", i)] = []time.Time{now.Add(-time.Minute)}
		}
		if why := l.barred(&Plan{ID: "x", Outside: "db", Actuator: &outside{}}, versions.New("me"), now, false); (why != "") != (less >= 0) {
			t.Errorf("the failed sets%+d: %q", less, why)
		}
		if why := l.barred(&Plan{ID: "x"}, used, now, false); (why != "") != (less >= 0) {
			t.Errorf("the versions of an hour%+d: %q", less, why)
		}

		l = &New(Config{PerHour: 1}).startLimiter
		moment := time.Duration(less)
		l.begun["other"] = []time.Time{now.Add(-time.Hour - moment)}
		if why := l.barred(&Plan{ID: "x"}, used, now, false); (why != "") != (less < 0) {
			t.Errorf("a version of an hour%+d ago: %q", less, why)
		}
		doc := used.Make("r2", parts("y"), false, versions.Entry{At: now.Add(-time.Hour - moment)})
		l.recordBegun("x", doc, now, false)
		if counts := len(l.begun["x"]) == 1; counts != (less < 0) {
			t.Errorf("a version that was made an hour%+d ago counts: %t", less, counts)
		}
	}
}

// TestBoundsOfSteps: a step that was delivered later makes a set foreign, and only a later
// one is kept.
func TestBoundsOfSteps(t *testing.T) {
	t.Parallel()
	for less := -1; less <= 1; less++ {
		r := New(Config{Owner: "me", Sets: []Plan{{ID: "jwt"}}})
		s := r.beginStep(r.sets["jwt"])
		s.doc = versions.New("me")
		s.doc.Step = 5
		s.set.seen = uint64(5 + less)
		if s.mayChange() != (less <= 0) {
			t.Errorf("the step%+d: mine %t", less, s.mayChange())
		}
		seen, err := OpenSeen(t.TempDir() + "/seen")
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []uint64{5, uint64(5 + less)} {
			if err := seen.recordStep("jwt", step); err != nil {
				t.Fatal(err)
			}
		}
		if step := seen.step("jwt"); step != uint64(5+max(less, 0)) {
			t.Errorf("the step%+d: %d is kept", less, step)
		}
	}
}

// TestBoundsOfHand: the time that an old version stays, and the length of a reason.
func TestBoundsOfHand(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for less := -1; less <= 1; less++ {
		v := versions.Version{Since: now.Add(-time.Hour - time.Duration(less)), Promoted: now.Add(-2 * time.Hour)}
		if against := (Gate{Keep: time.Hour}).checkRetire(t.Context(), nil, v, now); (len(against) == 0) != (less >= 0) {
			t.Errorf("after the bound%+d: %q", less, against)
		}
		g := Gate{Force: true, Reason: strings.Repeat("x", versions.MaxReason+less)}
		if err := g.pass([]string{"in use"}); (err == nil) != (less <= 0) {
			t.Errorf("a reason of the bound%+d: %v", less, err)
		}
		command := fmt.Sprintf(`{"id":"a","verb":"now","at":%q}`, now.Format(time.RFC3339))
		if _, err := parseControl([]byte(command + strings.Repeat(" ", 4<<10+less-len(command)))); (err == nil) != (less <= 0) {
			t.Errorf("a command of the bound%+d: %v", less, err)
		}
	}
	for status, written := range map[int]bool{499: false, 500: true, 501: true} {
		err := &conjur.StatusError{Status: status}
		if nothingWritten(err) == written || errors.Is((Set{}).explainFailure(err), ErrUncertain) != written {
			t.Errorf("after the status %d it may be written: %t", status, written)
		}
	}
}

// pages is a server with many variables.
type pages struct {
	Client
	all, lists int
}

func (p *pages) List(_ context.Context, length, offset int, _ string) (conjur.Page, conjur.Reading) {
	p.lists++
	return conjur.Page{IDs: make([]string, max(0, min(length, p.all-offset)))}, conjur.Reading{Form: conjur.Given}
}

// TestBoundsOfPages: after a full page there may be another one.
func TestBoundsOfPages(t *testing.T) {
	t.Parallel()
	for less := -1; less <= 1; less++ {
		p := &pages{all: conjur.LongestPage + less}
		New(Config{Conjur: p, FromPolicy: true}).listUnpublished(t.Context())
		if want := 1 + min(less+1, 1); p.lists != want {
			t.Errorf("a page%+d: %d lists, want %d", less, p.lists, want)
		}
	}
}

// TestBoundsOfFreshness: a set that was read five seconds ago is written without another
// look, on a server without compare-and-swap.
func TestBoundsOfFreshness(t *testing.T) {
	t.Parallel()
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			client := &lagging{}
			set := Set{Conjur: client, ID: "jwt", server: &server{begin: time.Now()}}
			held := Held{read: time.Now()}
			if err := client.Set(t.Context(), "jwt", secret.New([]byte("theirs"))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5*time.Second + less)
			err := set.Write(t.Context(), held, versions.New("me").Make("r1", parts("x"), false, versions.Entry{At: time.Now()}))
			if checked := len(client.values) == 1; checked != (less > 0) || checked != errors.Is(err, ErrConflict) {
				t.Errorf("after the bound%+d it is checked: %t, %v", less, checked, err)
			}
		})
	}
}

// TestBoundsOfAnIdleSet: its login is tried again after an hour.
func TestBoundsOfAnIdleSet(t *testing.T) {
	t.Parallel()
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			tried := 0
			r := New(Config{Owner: "me", Sets: []Plan{{ID: "jwt", Actuator: &verified{tried: &tried}}}})
			s := r.beginStep(r.sets["jwt"])
			s.now = time.Now()
			s.doc = versions.New("me").Make("r1", parts("x"), false, versions.Entry{At: s.now}).Promote("r1", versions.Entry{At: s.now})
			for _, wait := range []time.Duration{0, time.Hour + less} {
				time.Sleep(wait)
				if err := s.confirmIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if tried != 1+int(min(less+1, 1)) {
				t.Errorf("after the bound%+d it is tried %d times", less, tried)
			}
		})
	}
}

// verified counts how often a login is tried.
type verified struct {
	outside
	tried *int
}

func (v *verified) Verify(context.Context, versions.Version) error { *v.tried++; return nil }

// TestBoundsOfAPoll: a poll asks if there is at least one variable.
func TestBoundsOfAPoll(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		changes := &askedChanges{}
		r := New(Config{Sets: []Plan{{ID: "jwt"}}, Changes: changes})
		ids := []string{"jwt", "jwt/control"}[:n]
		r.sets["jwt"].polled.Store(&ids)
		r.pollSets(t.Context())
		if len(changes.ids) != n || changes.calls != min(n, 1) {
			t.Errorf("of %d variables, %d calls ask for %v", n, changes.calls, changes.ids)
		}
	}
}

// askedChanges notes what a poll asks for, and cannot answer.
type askedChanges struct {
	calls int
	ids   []string
}

func (a *askedChanges) Changed(_ context.Context, ids []string) ([]string, error) {
	a.calls, a.ids = a.calls+1, ids
	return nil, errors.New("no answer")
}
