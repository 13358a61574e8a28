package variables

import (
	"testing"
	"testing/synctest"
	"time"
)

// complete fills in the defaults.
func complete(r Rules) Rules {
	r, _ = r.withDefaults()
	return r
}

// byToken is an observation with a token that was requested then.
func byToken(m *memory, issued time.Time) observation {
	return observation{reason: Missing, identity: "host/app", issued: issued, call: m.step()}
}

// The memory itself does not take an old token for a new one, whatever the
// call that made the observation believed.
func TestOldTokenCompletesNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(complete(Rules{Confirmations: 2, Grace: time.Minute}))
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
		m := newMemory(complete(Rules{Confirmations: 2, Brake: Brake{Least: -1}}))
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

// A wait that was not announced does not pass: after a long silence nothing
// is known.
func TestQuietWaitDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(complete(Rules{Confirmations: 2}))
		for _, id := range []string{"a", "b", "c", "d", "x"} {
			m.seenUndelivered(id, m.step())
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
			m.seenUndelivered(id, m.step())
		}
		if a := m.suspect("x", byToken(m, time.Now())); a.Verdict != Gone {
			t.Errorf("when the others are known to be there: %v", a.Err)
		}
		if e := m.holdEvents(true); len(e) != 0 {
			t.Errorf("told: %+v", e)
		}
	})
}
