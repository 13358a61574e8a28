package variables

import (
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
)

// askOthers requests all other variables in use. It does so if a variable that is
// set aside may get the verdict Gone, while the brake knows too little about the
// others. If polls run, they have determined that already.
func (l *load) askOthers(ids, aside []string) {
	if !slices.ContainsFunc(aside, l.memory.proofNeedsRest) {
		return
	}
	others := l.memory.usedExcept(ids)
	if len(others) == 0 {
		return
	}
	q := l.memory.sort(others)
	chunks := q.chunks(l.room(), l.encodedLen)
	l.keepHalf(true, func() {
		for _, ch := range chunks {
			l.bisect(ch, presence{l.call})
		}
	})
}

// presence is the handler of these answers. It records which variables exist.
type presence struct{ *call }

func (p presence) values(_ *chunk, r conjur.Values) {
	for id, v := range r.Found {
		v.Wipe()
		p.memory.seenUndelivered(id, p.step)
	}
}

func (p presence) single(id string, r reading) {
	if r.Verdict == Found {
		r.Value.Wipe()
		p.memory.seenUndelivered(id, p.step)
	}
}

func (presence) unknown([]string, error) {}

// usedExcept returns the variables in use that are not in those, which is sorted.
func (m *memory) usedExcept(those []string) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, v := range m.vars {
		if _, found := slices.BinarySearch(those, id); !found && v.used == m.polls {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// seenUndelivered records that a variable was found without being delivered.
func (m *memory) seenUndelivered(id string, call uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found(m.get(id), call)
}

// proofNeedsRest reports whether the next answer about a variable may complete its
// proof, and only missing knowledge about the others would hold it back.
func (m *memory) proofNeedsRest(id string) bool {
	if _, due := m.newerThan(id); !due {
		return false
	}
	uses := m.usersWhenDue(func() bool { return true })
	m.mu.Lock()
	defer m.mu.Unlock()
	v, brake := m.vars[id], m.rules.Brake
	if v == nil || v.suspicion == nil || v.decided() {
		return false
	}
	t := m.tally(v.suspicion.began, uses)
	held, _ := brake.takesAny(t, id, doubted)
	sure, _ := brake.takesAny(t, id, gone)
	return held != nil && sure == nil
}
