package sinks

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
)

// Assign notes that these are the targets from now on. What one of them had at
// another path is due to be removed, once the target is right at the new one;
// see RemoveFormer. What belongs to a target that is not among them stays, and
// so does what is at the path of another, above or below it.
func (f *Files) Assign(ts []*targets.Target) {
	now := make(map[targets.Key]*targets.Target, len(ts))
	for _, t := range ts {
		now[t.Key] = t
	}
	f.memory.assign(now)
}

func (m *memory) assign(now map[targets.Key]*targets.Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.former == nil {
		m.former = map[targets.Key][]sight{}
	}
	for key, s := range m.sight {
		t, ok := now[key]
		if ok && t.File.Path == s.target.File.Path {
			continue
		}
		delete(m.sight, key)
		if ok && s.ours && !s.failed && s.there() {
			m.former[key] = append(m.former[key], s)
		}
	}
	for key, due := range m.former {
		m.former[key] = slices.DeleteFunc(due, func(s sight) bool { return now[key] == nil || taken(now, s.target.File.Path) })
		if len(m.former[key]) == 0 {
			delete(m.former, key)
		}
	}
}

// Confirm notes that the target of a key is as it should be, so that what was
// last read of it counts as left by this Files also where it wrote nothing.
func (f *Files) Confirm(key targets.Key) { f.memory.confirm(key) }

func (m *memory) confirm(key targets.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sight[key]; ok {
		s.ours = true
		m.sight[key] = s
	}
}

// there reports whether something was there.
func (s sight) there() bool {
	for _, seen := range s.stamps {
		if seen != (stamp{}) {
			return true
		}
	}
	return false
}

// taken reports whether a path is that of a target, or one above or below it.
func taken(ts map[targets.Key]*targets.Target, path string) bool {
	for _, t := range ts {
		if strings.HasPrefix(path+"/", t.File.Path+"/") || strings.HasPrefix(t.File.Path+"/", path+"/") {
			return true
		}
	}
	return false
}

// RemoveFormer removes what the target of a key had at earlier paths, where it
// is as this Files left it, and returns these paths; altered are those where it
// is not, so that it stays. What could not be removed is tried by the next call.
func (f *Files) RemoveFormer(key targets.Key) (removed, altered []string, err error) {
	due := f.memory.takeFormer(key)
	if len(due) == 0 {
		return nil, nil, nil
	}
	root, err := f.root()
	if err != nil {
		f.memory.giveFormer(key, due)
		return nil, nil, fmt.Errorf("%s: %w", f.dir, err)
	}
	defer root.close()
	var errs []error
	for _, s := range due {
		path := filepath.Join(f.dir, s.target.File.Path)
		if !same(root, s.stamps) {
			altered = append(altered, path)
			continue
		}
		if err := f.removeAt(root, &s.target); err != nil {
			f.memory.giveFormer(key, []sight{s})
			errs = append(errs, f.failed(&s.target, err))
			continue
		}
		removed = append(removed, path)
	}
	return removed, altered, errors.Join(errs...)
}

func (f *Files) removeAt(root folder, t *targets.Target) error {
	l, err := f.layout(t)
	if err != nil {
		return err
	}
	dir, err := l.enter(root)
	if err != nil {
		return err
	}
	defer dir.close()
	return l.remove(dir)
}

func (m *memory) takeFormer(key targets.Key) []sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := m.former[key]
	delete(m.former, key)
	return due
}

func (m *memory) giveFormer(key targets.Key, due []sight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.former[key] = append(m.former[key], due...)
}

// hasFormer reports whether something of the key's target is due to be removed.
func (m *memory) hasFormer(key targets.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.former[key]) > 0
}
