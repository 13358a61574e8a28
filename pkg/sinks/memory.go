package sinks

import (
	"sync"

	"github.com/secretsync/syncer/pkg/targets"
)

// memory keeps, for each target, what was last seen or left there. Its lock
// is never held over I/O. The zero memory is empty and ready.
type memory struct {
	mu    sync.Mutex
	sight map[targets.Key]sight
}

// sight is one target as it was last seen.
type sight struct {
	path   string // of the target then
	stamps stamps
	failed bool // the last Apply failed
}

// stamps is, by path below the secrets folder, all that a target consists of.
// The zero stamp stands for a name where nothing was.
type stamps map[string]stamp

func (m *memory) keep(t *targets.Target, s sight) {
	s.path = t.File.Path
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sight == nil {
		m.sight = map[targets.Key]sight{}
	}
	m.sight[t.Key] = s
}

// last finds how a target was last seen; false when it never was, or had
// another path then.
func (m *memory) last(t *targets.Target) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sight[t.Key]
	return s, ok && s.path == t.File.Path
}
