package removal

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// follow makes a follower begin to lag, or catch up.
func (h *history) follow() {
	if h.fate == nil || h.fate.IntN(3) > 0 {
		return
	}
	h.judge.lags = !h.judge.lags
	h.server.lag(h.judge.lags)
	h.tell("a follower lags behind: %v", h.judge.lags)
	h.judge.mends()
}

// shown is the state of a variable in an answer.
type shown struct {
	state   state
	value   string
	version int
}

// show returns the state of a variable on the server, or follower, that answers the request.
func (m *model) show(id string) shown {
	if m.stale {
		return m.lagging[id]
	}
	v := m.vars[id]
	return shown{v.state, v.value, v.version}
}

// lag freezes the state that the follower shows, or ends the lag.
func (m *model) lag(begin bool) {
	m.with(func() {
		m.lagging, m.stale = nil, false
		if begin {
			lagging := map[string]shown{}
			for id := range m.vars {
				lagging[id] = m.show(id)
			}
			m.lagging = lagging
		}
	})
}

// flaps reports an error if a content returns that was replaced a moment ago. If a variable
// was gone in between, its value counts as new.
func (j *judge) flaps(t *targets.Target, whole string) {
	now, last := time.Now(), j.last[t.Key]
	wasGone := slices.ContainsFunc(ids(j.history.givenAs(t.Key)), func(id string) bool {
		v := j.history.server.vars[id]
		return v.since.After(j.began) && now.Sub(v.since) < time.Minute
	})
	if at, ok := j.replaced[t.Key][whole]; ok && !wasGone && last != whole && now.Sub(at) < steady-interval { // a value is written some time after it was accepted
		j.history.tell("%s is written", t.Key)
		j.history.Errorf("%s has an earlier content again, %v after it was replaced", t.Key, now.Sub(at))
	}
	if j.replaced[t.Key] == nil {
		j.replaced[t.Key] = map[string]time.Time{}
	}
	if last != "" && last != whole {
		j.replaced[t.Key][last] = now
	}
	j.last[t.Key] = whole
}
