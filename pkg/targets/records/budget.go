package records

import (
	"fmt"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// space is the memory that the Secrets of one namespace need.
type space struct {
	memory  int
	waiting map[targets.Key]bool // the budget had no room for these
	freed   bool                 // memory, or OmitOverBudget was called, since Waiting was called
}

// space finds the namespace of a Secret. The caller holds the lock.
func (s *Set) space(key targets.Key) *space {
	namespace := key.Namespace()
	n := s.spaces[namespace]
	if n == nil {
		n = &space{waiting: map[targets.Key]bool{}}
		if s.spaces == nil {
			s.spaces = map[string]*space{}
		}
		s.spaces[namespace] = n
	}
	return n
}

// admit reports whether there is room for one more Secret of any size. The caller holds
// the lock.
func (s *Set) admit(t *targets.Target) bool {
	if t.Secret == nil || s.Budget == 0 {
		return true
	}
	n := s.space(t.Key)
	if n.memory+t.Refused(s.exceeded()).Memory() <= s.Budget {
		return true
	}
	n.waiting[t.Key] = true
	return false
}

// reserve reserves the memory for a Secret, if there is room. Otherwise it reserves the
// memory for a refused Secret. The caller holds the lock.
func (s *Set) reserve(r *record, t *targets.Target) (fits bool) {
	n, size := s.space(t.Key), t.Memory()
	if fits = s.Budget == 0 || n.memory-r.memory+size <= s.Budget; fits {
		delete(n.waiting, t.Key)
	} else {
		n.waiting[t.Key] = true
		size = t.Refused(s.exceeded()).Memory()
	}
	n.freed = n.freed || size < r.memory
	n.memory, r.memory = n.memory+size-r.memory, size
	return fits
}

// release releases the memory of a deleted Secret. The caller holds the lock.
func (s *Set) release(key targets.Key, size int) {
	if key.Namespace() == "" {
		return
	}
	n := s.space(key)
	n.memory -= size
	n.freed = n.freed || size > 0
	if delete(n.waiting, key); n.memory == 0 && len(n.waiting) == 0 {
		maps.DeleteFunc(s.spaces, func(_ string, is *space) bool { return is == n })
	}
}

func (s *Set) exceeded() string {
	return fmt.Sprintf("left as it is: the Secrets of its namespace would need more than the %d MiB of memory that namespaceMemory allows; remove some, or have the operator raise it", s.Budget>>20)
}

// OmitOverBudget records a Secret whose definition was dropped because its namespace has many.
// Waiting returns the Secret, so that the caller reads it alone. Until then it stays
// unchanged or refused.
func (l *Lane) OmitOverBudget(t *targets.Target) (changes []Change) {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[t.Key]; r == nil || r.spec.Secret.UID != t.Secret.UID {
		changes = l.add(t.Refused(s.exceeded()))
	}
	n := s.space(t.Key)
	n.waiting[t.Key], n.freed = true, true
	return changes
}

// OverBudget returns why the Set omits a Secret: the budget has no room for it. Otherwise it
// returns "".
func (s *Set) OverBudget(key targets.Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records[key] != nil || s.Budget == 0 || !s.space(key).waiting[key] {
		return ""
	}
	return s.exceeded()
}

// OverBudgetNamespaces lists the namespaces with Secrets that the Set omits, in order.
func (s *Set) OverBudgetNamespaces() (namespaces []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for namespace, n := range s.spaces {
		for key := range n.waiting {
			if s.records[key] == nil {
				namespaces = append(namespaces, namespace)
				break
			}
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

// Waiting returns Secrets that the budget refused and that may fit now. It returns only
// those of namespaces in which memory was released, or OmitOverBudget was called, since
// the last call. It returns at most the given number for each namespace, and others at the next
// call. The caller must read each one and put it again.
func (s *Set) Waiting(most int) (keys []targets.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.spaces {
		if !n.freed {
			continue
		}
		var some []targets.Key
		for key := range n.waiting { // random order gives each a turn
			if some = append(some, key); len(some) == most {
				break
			}
		}
		n.freed = len(some) == most // the others come next
		keys = append(keys, some...)
	}
	slices.Sort(keys)
	return keys
}
