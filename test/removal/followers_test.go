package removal

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// follow has a follower begin to lag behind, or catch up.
func (h *history) follow() {
	if h.fate == nil || h.fate.IntN(3) > 0 {
		return
	}
	h.judge.lags = !h.judge.lags
	h.server.lag(h.judge.lags)
	h.tell("a follower lags behind: %v", h.judge.lags)
	h.judge.mends()
}

// shown is what an answer shows of a variable.
type shown struct {
	state   state
	value   string
	version int
}

// show is what the one that answers knows of a variable.
func (m *model) show(id string) shown {
	if m.stale {
		return m.lagging[id]
	}
	v := m.vars[id]
	return shown{v.state, v.value, v.version}
}

// lag has a follower show from now on what there is now; or ends it.
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

// flaps judges whether a content is back that was replaced a moment ago. It does
// not while a variable has lately been gone: whatever it has then is news.
func (j *judge) flaps(t *targets.Target, whole string) {
	now, last := time.Now(), j.last[t.Key]
	wasGone := slices.ContainsFunc(ids(j.history.givenAs(t.Key)), func(id string) bool {
		v := j.history.server.vars[id]
		return v.since.After(j.began) && now.Sub(v.since) < time.Minute
	})
	if at, ok := j.replaced[t.Key][whole]; ok && !wasGone && last != whole && now.Sub(at) < steady-interval { // it is written a while after it was believed
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
