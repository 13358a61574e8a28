package variables

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

// seenGone is an observation with a new token.
func seenGone(call uint64) observation {
	return observation{reason: Missing, identity: "host/app", issued: time.Now(), call: call}
}

// An observation counts only if its call began after the one before was made.
func TestObservationsOfOverlappingCallsCountOnce(t *testing.T) {
	m := newMemory(complete(Rules{Confirmations: 2, Brake: Brake{Disabled: true}}))
	first, overlapping := m.step(), m.step()
	for _, call := range []uint64{first, first, overlapping} {
		if a := m.suspect("x", seenGone(call)); a.Verdict != Unknown {
			t.Errorf("call %d: %v", call, a.Err)
		}
	}
	if a := m.suspect("x", seenGone(m.step())); a.Verdict != Gone {
		t.Errorf("a later call: %v", a.Err)
	}
}

// TestAnAnswerFromBeforeTheLastFindProvesNothing: a call that began before another one
// found the variable may have had its answer before that, too.
func TestAnAnswerFromBeforeTheLastFindProvesNothing(t *testing.T) {
	m := newMemory(complete(Rules{Confirmations: 2, Brake: Brake{Disabled: true}}))
	late, other := m.step(), m.step()
	if err := m.fetched("x", m.fingerprint(secret.New([]byte("a value"))), other); err != nil {
		t.Fatal(err)
	}
	m.suspect("x", seenGone(late))
	if a := m.suspect("x", seenGone(m.step())); a.Verdict != Unknown {
		t.Errorf("the first call after the find: %v", a.Err)
	}
	if a := m.suspect("x", seenGone(m.step())); a.Verdict != Gone {
		t.Errorf("a later call: %v", a.Err)
	}
}

func TestRecallIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(complete(Rules{Confirmations: 1, Brake: Brake{Disabled: true}}))
		if a := m.recall("x"); !errors.Is(a.Err, ErrBudget) {
			t.Errorf("of nothing: %v", a.Err)
		}
		m.suspect("x", seenGone(m.step()))
		if a := m.recall("x"); a.Verdict != Gone {
			t.Errorf("of a fresh proof: %v", a.Err)
		}
		time.Sleep(recallTime + 1)
		if a := m.recall("x"); a.Verdict != Unknown || !errors.Is(a.Err, ErrBudget) {
			t.Errorf("of an old proof: %v", a.Err)
		}
	})
}

func TestPollWipesWhatItCompared(t *testing.T) {
	m := newMemory(complete(Rules{Confirmations: 2, Brake: Brake{Disabled: true}}))
	p := &poll{call: &call{Client: &Client{memory: m}}}
	v, w := secret.New([]byte("one")), secret.New([]byte("two"))
	p.values(&chunk{source: source{Batch: conjur.Batch{IDs: []string{"a"}}}}, conjur.Values{Found: map[string]secret.Value{"a": v}})
	p.single("b", reading{Answer: Answer{Verdict: Found, Value: w}})
	if v.Len() != 0 || w.Len() != 0 {
		t.Error("a value was kept")
	}
}

func TestAskingOthersWipesWhatItGets(t *testing.T) {
	a := presence{&call{Client: &Client{memory: newMemory(Rules{})}}}
	v, w := secret.New([]byte("one")), secret.New([]byte("two"))
	a.values(nil, conjur.Values{Found: map[string]secret.Value{"a": v}})
	a.single("b", reading{Answer: Answer{Verdict: Found, Value: w}})
	if v.Len() != 0 || w.Len() != 0 {
		t.Error("a value was kept")
	}
}

func TestFingerprintsDifferBetweenProcesses(t *testing.T) {
	v := secret.New([]byte("one"))
	a, b := newMemory(Rules{}), newMemory(Rules{})
	if p := a.fingerprint(v); p != a.fingerprint(secret.New([]byte("one"))) || p == b.fingerprint(v) {
		t.Error("the fingerprint does not depend on the key, or on more than it")
	}
}

func TestSetAsideTakesTurns(t *testing.T) {
	m := newMemory(complete(Rules{Confirmations: 2, Brake: Brake{Disabled: true}}))
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		m.setAside(id, m.step())
	}
	for _, want := range []string{"a", "b", "c", "a"} {
		aside := m.sort(ids).aside
		if aside[0] != want {
			t.Errorf("%s is next, want %s", aside[0], want)
		}
		m.askedSingly(aside[0])
	}
}
