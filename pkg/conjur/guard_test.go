package conjur

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// byToken is an observation with a token that was requested then.
func byToken(m *memory, issued time.Time) observation {
	return observation{reason: Missing, identity: "host/app", issued: issued, call: m.step()}
}

// The memory itself does not take an old token for a new one, whatever the
// call that made the observation believed.
func TestOldTokenCompletesNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(rules{confirmations: 2, grace: time.Minute, brake: Brake{}.withDefaults()})
		old := time.Now()
		time.Sleep(time.Second)
		m.suspect("x", byToken(m, old))
		time.Sleep(time.Second)
		newer := time.Now()
		if a := m.suspect("x", byToken(m, newer)); a.Verdict != Unknown {
			t.Errorf("before the grace is over: %v", a.Err)
		}
		time.Sleep(time.Minute)
		if a := m.suspect("x", byToken(m, old)); a.Verdict != Unknown {
			t.Errorf("by an old token: %v", a.Err)
		}
		if a := m.suspect("x", byToken(m, newer)); a.Verdict != Gone {
			t.Errorf("by a newer one: %v", a.Err)
		}
	})
}

func TestOldTokenDoesNotEndAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(rules{confirmations: 2, brake: Brake{Least: -1}.withDefaults()})
		m.suspect("x", byToken(m, time.Now()))
		time.Sleep(time.Second)
		before := time.Now()
		m.suspect("x", byToken(m, before))
		m.holdEvents(true)
		time.Sleep(time.Hour)
		if a := m.suspect("x", byToken(m, before)); a.Verdict != Unknown {
			t.Errorf("by an old token: %v", a.Err)
		}
		time.Sleep(time.Second)
		if a := m.suspect("x", byToken(m, time.Now())); a.Verdict != Gone {
			t.Errorf("by a newer one: %v", a.Err)
		}
	})
}

// A login that was under way at the moment may have been granted before it.
func TestTokenIsAsOldAsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := 0
		s := &tokens{log: zap.NewNop(), authenticate: func(context.Context) (*token, error) {
			logins++
			requested := time.Now()
			time.Sleep(time.Minute)
			return &token{issued: requested, renew: time.Now().Add(time.Hour), expire: time.Now().Add(time.Hour)}, nil
		}}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = s.get(t.Context(), nil) })
		time.Sleep(time.Second)
		moment := time.Now()
		time.Sleep(time.Second)
		for range 3 {
			wg.Go(func() {
				if err := s.newer(t.Context(), moment); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if logins != 2 || !s.current.issued.After(moment) {
			t.Errorf("%d logins, want the one under way and another", logins)
		}
	})
}

// A wait that nobody was told of does not pass: after a long silence nothing
// is known.
func TestQuietWaitDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(rules{confirmations: 2, brake: Brake{}.withDefaults()})
		for _, id := range []string{"a", "b", "c", "d", "x"} {
			m.present(id, m.step())
		}
		for range 2 {
			time.Sleep(time.Second)
			m.suspect("x", byToken(m, time.Now()))
		}
		time.Sleep(time.Hour)
		if a := m.suspect("x", byToken(m, time.Now())); a.Verdict != Unknown {
			t.Errorf("after an hour of silence: %v", a.Err)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			m.present(id, m.step())
		}
		if a := m.suspect("x", byToken(m, time.Now())); a.Verdict != Gone {
			t.Errorf("when the others are known to be there: %v", a.Err)
		}
		if e := m.holdEvents(true); len(e) != 0 {
			t.Errorf("told: %+v", e)
		}
	})
}
