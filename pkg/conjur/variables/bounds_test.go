package variables

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// TestBoundsOfProofs: a proof is complete with enough observations, after the grace, and
// with a newer token.
func TestBoundsOfProofs(t *testing.T) {
	for _, c := range []struct {
		rules  Rules
		second time.Duration // after the first observation
		gone   bool
	}{
		{Rules{Confirmations: 1}, 0, true}, {Rules{Confirmations: 2}, 1, true}, {Rules{Confirmations: 2}, 0, false}, {Rules{Confirmations: 3}, 1, false},
		{Rules{Confirmations: 2, Grace: time.Hour}, time.Hour - 1, false}, {Rules{Confirmations: 2, Grace: time.Hour}, time.Hour, true}, {Rules{Confirmations: 2, Grace: time.Hour}, time.Hour + 1, true},
		{Rules{Confirmations: 2, ConfirmAfter: time.Hour}, time.Hour - 1, false}, {Rules{Confirmations: 2, ConfirmAfter: time.Hour}, time.Hour, true}, {Rules{Confirmations: 2, ConfirmAfter: time.Hour}, time.Hour + 1, true},
		{Rules{Confirmations: 1, Grace: time.Hour}, time.Hour - 1, false}, {Rules{Confirmations: 1, Grace: time.Hour}, time.Hour, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.rules.Brake.Disabled = true
			m := newMemory(complete(c.rules))
			m.suspect("x", seenGone(m.step()))
			time.Sleep(c.second)
			_, due := m.newerThan("x")
			a := m.suspect("x", seenGone(m.step()))
			if (a.Verdict == Gone) != c.gone {
				t.Errorf("%+v, the second after %v: %v", c.rules, c.second, a.Err)
			}
			// What completes a proof needs a new token, unless one observation does.
			if want := c.gone && (c.rules.Confirmations > 1 || c.rules.Grace > 0) || c.rules.ConfirmAfter > 0 || c.second == 0 && c.rules.Confirmations == 2; due != want {
				t.Errorf("%+v, the second after %v: a newer token is due: %t", c.rules, c.second, due)
			}
		})
	}
}

func TestBoundsOfRecalls(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(complete(Rules{Confirmations: 1, Brake: Brake{Disabled: true}}))
			m.suspect("x", seenGone(m.step()))
			m.all = true
			m.unreadable["readers"] = time.Now()
			alike := &variable{readers: "readers"}
			time.Sleep(recallTime + less)
			if a := m.recall("x"); (a.Verdict == Gone) != (less <= 0) {
				t.Errorf("a proof of the bound%+d: %v", less, a.Err)
			}
			if is := m.isAlike(alike); is != (less <= 0) {
				t.Errorf("a refusal of the bound%+d counts for others: %t", less, is)
			}
		})
	}
}

// TestBoundsOfReturns: an earlier value is recent for as long as it then must be answered.
func TestBoundsOfReturns(t *testing.T) {
	const steady = time.Minute
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(complete(Rules{Steady: steady}))
			believe := func(id string, p byte) bool {
				return m.believe(id, m.get(id), fingerprint.Fingerprint{p}, time.Now()) == nil
			}
			for _, id := range []string{"recent", "steady"} {
				if !believe(id, 1) || !believe(id, 2) {
					t.Error("new values are held back")
				}
			}
			if believe("steady", 1) {
				t.Error("an earlier value is accepted at once")
			}
			time.Sleep(steady + less)
			if got := believe("recent", 1); got != (less > 0) {
				t.Errorf("after the bound%+d, an earlier value is accepted: %t", less, got)
			}
			if got := believe("steady", 1); got != (less >= 0) {
				t.Errorf("after the bound%+d of the same answers, the value is accepted: %t", less, got)
			}
		})
	}
	// Each return in vain doubles the time, up to four times.
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(complete(Rules{Steady: steady}))
		v := m.get("x")
		_, _ = m.believe("x", v, fingerprint.Fingerprint{1}, time.Now()), m.believe("x", v, fingerprint.Fingerprint{2}, time.Now())
		for _, want := range []time.Duration{steady, 2 * steady, 4 * steady, 4 * steady} {
			var back *ReturnedError
			if err := m.believe("x", v, fingerprint.Fingerprint{1}, time.Now()); !errors.As(err, &back) || time.Until(back.Until) != want {
				t.Errorf("%v, want to wait for %v", err, want)
			}
			if m.believe("x", v, fingerprint.Fingerprint{2}, time.Now()) != nil {
				t.Error("the accepted value is held back")
			}
		}
	})
	for less := -1; less <= 1; less++ {
		m := newMemory(complete(Rules{Steady: steady}))
		v := m.get("x")
		for i := range mostEarlier + less + 1 {
			_ = m.believe("x", v, fingerprint.Fingerprint{byte(i + 1)}, time.Now())
		}
		if held := m.believe("x", v, fingerprint.Fingerprint{1}, time.Now()) != nil; held != (less <= 0) {
			t.Errorf("of the bound%+d of earlier values, the first is held back: %t", less, held)
		}
	}
}

func TestBoundsOfTheBrake(t *testing.T) {
	for share, disabled := range map[float64]bool{0: false, 0.99: false, 1: true, 1.01: true} {
		if got := (Brake{Share: share}).withDefaults().Disabled; got != disabled {
			t.Errorf("a share of %v disables the brake: %t", share, got)
		}
	}
	for least, want := range map[int]int{-2: 0, -1: 0, 0: 3, 1: 1} {
		if got := (Brake{Least: least}).withDefaults().Least; got != want {
			t.Errorf("%d may always go, want %d", got, want)
		}
	}
	for share, valid := range map[float64]bool{-0.1: false, 0: true} {
		if _, err := (Rules{Brake: Brake{Share: share}}).withDefaults(); (err == nil) != valid {
			t.Errorf("share %v: %v", share, err)
		}
	}
	for grace, valid := range map[time.Duration]bool{-1: false, 0: true} {
		if _, err := (Rules{Grace: grace}).withDefaults(); (err == nil) != valid {
			t.Errorf("grace %v: %v", grace, err)
		}
	}
	b := Brake{Share: 0.5, Least: 3}
	for _, c := range []struct {
		n, all int
		held   bool
	}{{3, 3, false}, {4, 7, true}, {4, 8, false}, {4, 9, false}, {5, 9, true}} {
		if got := b.exceeded(c.n, c.all); got != c.held {
			t.Errorf("%d of %d are held: %t", c.n, c.all, got)
		}
	}
	for _, c := range []struct {
		lost string // of ten variables of each tenant
		mass bool
	}{{"6 6 0 0", false}, {"6 6 6 0", true}, {"5 5 5 0", false}, {"6 6 5 0", false}, {"9 2 1", false}, {"9 3 1", false}, {"6 6 0", true}} {
		tallies := tallies{tenants: map[string]*tally{}}
		for i, n := range strings.Fields(c.lost) {
			tallies.tenants[fmt.Sprint(i)] = &tally{gone: int(n[0] - '0'), all: 10}
		}
		if got := b.isMass(tallies, gone); got != c.mass {
			t.Errorf("tenants with losses of %s are a mass: %t", c.lost, got)
		}
	}
	for least, mass := range map[int]bool{6: true, 7: true, 8: true, 9: false, 10: false} { // 9 more than the most
		t2 := tallies{tenants: map[string]*tally{"a": {gone: 3, all: 4}, "b": {gone: 3, all: 4}, "c": {gone: 3, all: 4}, "d": {gone: 3, all: 4}}}
		if got := (Brake{Share: 0.5, Least: least}).isMass(t2, gone); got != mass {
			t.Errorf("with %d that may always go, 9 are a mass: %t", least, got)
		}
	}
}

// TestBoundsOfHolds: a hold is announced after half of its time. What it took in its second
// half is judged anew at the end.
func TestBoundsOfHolds(t *testing.T) {
	const long = 10 * time.Minute
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(complete(Rules{Brake: Brake{Hold: long}}))
			began := time.Now()
			m.hold = &hold{since: began, until: began.Add(long)}
			time.Sleep(long/2 + less)
			m.confirmHold(nil, time.Now())
			if got := m.hold.announced; got != (less >= 0) {
				t.Errorf("at half of its time%+d, the hold is announced: %t", less, got)
			}
			m.hold.announced = true
			m.vars["late"] = &variable{heldAt: time.Now(), aside: true, used: 0}
			time.Sleep(long/2 - less)
			time.Sleep(less + 1)
			if m.review(time.Now().Add(-1)); (m.hold == nil) != (less >= 0) {
				t.Errorf("at its end%+d, the hold is over: %t", less, m.hold == nil)
			}
			if m.hold != nil {
				m.endHold(Passed, time.Now())
			}
			if got := !m.vars["late"].cleared.IsZero(); got != (less < 0) {
				t.Errorf("what was held from half of the time%+d is free: %t", less, got)
			}
		})
	}
}

func TestBoundsOfChunks(t *testing.T) {
	size := func(id string) int { return len(id) }
	ids := []string{"aaaa", "bbbb"}
	for less := -1; less <= 1; less++ {
		if n := len(pack(ids, proven, 8-less, size)); n != 1+max(less, 0) {
			t.Errorf("ids of the room%+d are in %d chunks", less, n)
		}
		if n := len(fill([]*chunk{newChunk(ids[:1], size)}, ids[1:], proven, 8-less, size)); n != 1+max(less, 0) {
			t.Errorf("an id more, of the room%+d, makes %d chunks", less, n)
		}
		if n := len(merge([]*chunk{newChunk(ids[:1], size), newChunk([]string{strings.Repeat("b", 11+less)}, size)}, 20, size)); n != 1+max(less, 0) {
			t.Errorf("chunks of three quarters%+d stay %d", less, n)
		}
		l := newLineLimit(8000)
		if refused := l.refused(minRequestLine + less); refused != (less > 0) || refused && l.get() != minRequestLine {
			t.Errorf("a line of the least%+d is said to be too long: %t; then %d", less, refused, l.get())
		}
		var permissions []conjur.Permission
		for i := range 3 + less { // besides read
			permissions = append(permissions, conjur.Permission{Privilege: fmt.Sprint("p", i)}, conjur.Permission{Privilege: "read"}, conjur.Permission{Privilege: conjur.Execute})
		}
		if got := len(otherPrivileges(permissions)); got != min(4+less, 4) {
			t.Errorf("%d privileges are asked about, of the bound%+d", got, less)
		}
	}
	c := &Catalog{length: 200}
	for _, want := range []int{100, 50, conjur.LongestPage} {
		if shorter := c.shorten(); c.length != want || shorter != (want < conjur.LongestPage) {
			t.Errorf("a page of %d, want %d", c.length, want)
		}
	}
}

// TestBoundsOfMemory: a variable is kept for two polls, and is new if it comes ten polls
// after the first find.
func TestBoundsOfMemory(t *testing.T) {
	m := newMemory(complete(Rules{}))
	m.poll([]string{"a", "b"})
	m.poll([]string{"a"})
	if m.vars["b"] == nil {
		t.Error("forgotten after one poll")
	}
	if m.poll([]string{"a"}); m.vars["b"] != nil {
		t.Error("kept after two polls")
	}
	for less := -1; less <= 1; less++ {
		m := newMemory(complete(Rules{}))
		if m.get("before").newcomer {
			t.Error("new before anything was found")
		}
		m.found(m.get("first"), 1)
		for range startPolls + less {
			m.poll(nil)
		}
		if got := m.get("x").newcomer; got != (less > 0) {
			t.Errorf("after the bound%+d of polls, it is new: %t", less, got)
		}
	}
}

func TestBoundsOfSetting(t *testing.T) {
	d := conjurtest.New()
	d.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool {
		set := r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/secrets/")
		if set {
			w.WriteHeader(http.StatusCreated)
		}
		return set
	})
	client, err := conjur.New(d.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for n, ok := range map[int]bool{0: false, 1: true, 1<<20 - 1: true, 1 << 20: true, 1<<20 + 1: false} {
		if err := SetOne(t.Context(), client, "a", bytes.NewReader(bytes.Repeat([]byte("x"), n)), t.Output()); (err == nil) != ok {
			t.Errorf("a value of %d bytes: %v", n, err)
		}
	}
}

// TestBoundsOfBudgets: the whole budget may be spent. What was never found is also limited
// by recent searches, unless the process delivers once.
func TestBoundsOfBudgets(t *testing.T) {
	for _, c := range []struct {
		budget, searches int
		once             bool
		proven, untried  int // how many requests are paid
	}{{0, 9, false, 0, 0}, {1, 9, false, 1, 1}, {3, 9, false, 3, 3}, {3, 0, false, 3, 0}, {3, 1, false, 3, 1}, {3, 2, false, 3, 2}, {3, 0, true, 3, 3}} {
		for trust, want := range map[trust]int{proven: c.proven, untried: c.untried} {
			k := &call{Client: &Client{memory: newMemory(complete(Rules{Once: c.once})), search: rate.NewLimiter(0, c.searches)}, budget: c.budget}
			paid := 0
			for may := k.canPay(); k.pay(trust); may = k.canPay() {
				if paid++; !may && trust != proven {
					t.Errorf("%+v: request %d is paid, but could not be", c, paid)
				}
			}
			if paid != want || trust != proven && k.canPay() {
				t.Errorf("%+v: %d requests of trust %d are paid, want %d", c, paid, trust, want)
			}
		}
	}
	m := newMemory(complete(Rules{RequestBudget: 32}))
	if budget, more := m.budget(10); budget != 32 || more != 0 {
		t.Errorf("a budget of %d, and %d", budget, more)
	}
	m.holdsAll()
	if budget, more := m.budget(10); budget != 512 || more != 0 {
		t.Errorf("with all variables, a budget of %d, and %d", budget, more)
	}
	m.rules.Once, m.rules.RequestBudget = true, 513
	if budget, more := m.budget(10); budget != 513 || more != 60 {
		t.Errorf("once with all variables, a budget of %d, and %d", budget, more)
	}
	for budget, want := range map[int]int{0: 0, 12: 0, 13: 1, 23: 11, 24: 12, 25: 12, 32: 16} {
		k := &call{budget: budget}
		k.keepHalf(true, func() {
			if kept := budget - k.budget; kept != want {
				t.Errorf("of %d, %d are kept for afterwards, want %d", budget, kept, want)
			}
			k.budget = -1 // more was spent
		})
		if k.budget != want {
			t.Errorf("of %d, %d are left, want %d", budget, k.budget, want)
		}
		k.budget = budget
		if k.keepHalf(false, func() { k.budget-- }); k.budget != max(budget-1, 0) {
			t.Errorf("of %d without use, %d are left", budget, k.budget)
		}
	}
}

// TestMissingVariablesArePaidFor: finding one is free, and so is a part that was paid for.
func TestMissingVariablesArePaidFor(t *testing.T) {
	for _, c := range []struct {
		trust          trust
		sick, presumed bool
		left           int
	}{{untried, false, false, 4}, {unlisted, false, false, 4}, {proven, false, false, 5}, {untried, true, false, 5}, {untried, false, true, 5}} {
		n := bisection{call: &call{Client: &Client{memory: newMemory(complete(Rules{})), search: rate.NewLimiter(0, 9)}, budget: 5}}
		n.payForMissing(&part{chunk: &chunk{trust: c.trust, sick: c.sick}, presumed: c.presumed})
		if n.budget != c.left {
			t.Errorf("%+v: %d requests are left", c, n.budget)
		}
	}
}
