package sinks

import (
	"maps"
	"sync"

	"github.com/secretsync/syncer/pkg/targets"
)

// memory keeps, for each target, what was last seen or left there. Its lock
// is never held over I/O. The zero memory is empty and ready.
type memory struct {
	mu    sync.Mutex
	sight map[targets.Key]sight
	// former is what targets had at paths that are no longer theirs.
	former map[targets.Key][]sight
}

// sight is one target as it was last seen.
type sight struct {
	target targets.Target // then: where it was and how it lay
	stamps stamps
	failed bool // the last Apply failed
	ours   bool // it is what this Files wrote, or what it would have written
}

// stamps is, by path below the secrets folder, all that a target consists of.
// The zero stamp stands for a name where nothing was.
type stamps map[string]stamp

func (m *memory) keep(t *targets.Target, s sight) {
	s.target = targets.Target{Key: t.Key, Format: t.Format, File: t.File}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sight == nil {
		m.sight = map[targets.Key]sight{}
	}
	last := m.sight[t.Key]
	s.ours = s.ours || last.ours && last.target.File.Path == t.File.Path && maps.Equal(last.stamps, s.stamps)
	m.sight[t.Key] = s
}

// last finds how a target was last seen; false when it never was, or had
// another path then.
func (m *memory) last(t *targets.Target) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sight[t.Key]
	return s, ok && s.target.File.Path == t.File.Path
}
