package conjur

import (
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
)

// rollCall asks how all other variables in use are doing when one of those
// that are set aside may be about to be called gone, and too little is known of
// the others for the brake to decide. Where polls go on they have told.
func (l *load) rollCall(ids, aside []string) {
	if !slices.ContainsFunc(aside, l.memory.wantsRollCall) {
		return
	}
	others := l.memory.others(ids)
	if len(others) == 0 {
		return
	}
	k := *l.call
	k.perVariable = nil // its answers are for those who asked
	q := k.memory.sort(others)
	chunks := q.chunks(k.room(), k.encodedLen)
	k.keepHalf(true, func() {
		for _, ch := range chunks {
			k.narrow(ch, attendance{&k})
		}
	})
	l.budget, l.stop = k.budget, k.stop
}

// attendance is the handler of a roll call's answers: it notes who is there.
type attendance struct{ *call }

func (a attendance) values(_ *chunk, found map[string]secret.Value, _ map[string]error) {
	for id, v := range found {
		v.Wipe()
		a.memory.present(id, a.step)
	}
}

func (a attendance) single(id string, r reading) {
	if r.Verdict == Found {
		r.Value.Wipe()
		a.memory.present(id, a.step)
	}
}

func (a attendance) unknown([]string, error) {}

// others gives the variables in use that are not among those, which are sorted.
func (m *memory) others(those []string) (ids []string) {
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

// present records that a variable was found, though its value was not
// delivered.
func (m *memory) present(id string, call uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found(m.get(id), call)
}

// wantsRollCall tells whether the next answer about a variable may complete
// its proof, and would be held back only because little is known of the others.
func (m *memory) wantsRollCall(id string) bool {
	if _, due := m.newerThan(id); !due {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, brake := m.vars[id], m.rules.brake
	if v == nil || v.suspicion == nil || v.settled() {
		return false
	}
	t := m.tally(v.suspicion.began)
	return brake.takes(t.gone+t.unknown, t.all) && !brake.takes(t.gone, t.all)
}
