package sinks

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

// sightings remembers which Secret was read or written last under each name,
// and in which state. The zero sightings is empty and ready.
type sightings struct {
	mu    sync.Mutex // never held over I/O
	last  map[targets.Key]identity
	heard map[targets.Key]string // :: what is being changed → the version that was heard of meanwhile
}

type identity struct {
	uid     types.UID
	version string
}

// see notes a Secret as it is.
func (s *sightings) see(key targets.Key, live *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[targets.Key]identity{}
	}
	s.last[key] = identity{live.UID, live.ResourceVersion}
}

func (s *sightings) get(key targets.Key) identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key]
}

func (s *sightings) drop(key targets.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
}

// hear tells whether a version is another one than was seen last. While the
// Secret is being changed that is not known; end tells then.
func (s *sightings) hear(key targets.Key, version string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, changing := s.heard[key]; changing {
		s.heard[key] = version
		return false
	}
	return version != s.last[key].version
}

// begin notes that a Secret is being changed.
func (s *sightings) begin(key targets.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard == nil {
		s.heard = map[targets.Key]string{}
	}
	s.heard[key] = ""
}

// end tells whether what was heard of meanwhile is another version than was seen
// last: others have changed the Secret after us, or it is not known that it was
// us.
func (s *sightings) end(key targets.Key) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.heard[key]
	delete(s.heard, key)
	return version != "" && version != s.last[key].version
}
