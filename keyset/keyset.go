// Package keyset reads a set of keys from a folder and follows its rotation.
//
// Each file of the folder is a part of a key and is named <id>.<part>, such as
// r1.key, or r2.private and r2.public. Only the primary key signs and encrypts. The
// names of its parts end in .primary: r2.key.primary. A folder holds any number of
// keys and one primary.
//
// A rotation adds a key and makes it the primary when every reader of the folder
// has it. It removes the old key when nothing needs it any more. A program signs
// with [Set.Primary] and verifies with [Set.ByID]. It never waits for a rotation
// and needs no restart.
//
// The folder is a mounted Kubernetes Secret, a folder written by Syncer's format
// "directory", or a plain one. Names that begin with a dot, names without a dot,
// and anything but regular files are ignored.
package keyset

import (
	"bytes"
	"context"
	"crypto/cipher"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// interval is the minimum time between two checks of the folder.
const interval = time.Second

// A Key is one version of the secret.
type Key struct {
	// ID is the file name up to its first dot. It is never empty.
	ID string

	parts map[string][]byte
	aead  cipher.AEAD   // from the part "key"; nil unless that is an AES-256 key
	used  *atomic.Int64 // last use, since the Set's start; 0 means never
}

// Part returns the content of the file <id>.<name>, or nil if there is none. The
// caller must not modify it.
func (k Key) Part(name string) []byte { return k.parts[name] }

func (k Key) equal(other Key) bool {
	return k.ID == other.ID && maps.EqualFunc(k.parts, other.parts, bytes.Equal)
}

// A Set is the keys of a folder. Its methods check the folder when they are called,
// at most once a second. If the folder is unreadable, or does not have exactly one
// primary, they continue with the last valid keys. [Set.Err] returns the reason.
//
// A Set starts no goroutine and keeps no file open. Its methods are safe for
// concurrent use.
type Set struct {
	folder, prefix string
	start          time.Time
	idle           chan struct{} // has one element while no goroutine reads the folder
	looked, forced atomic.Int64  // times of the last check, and of the last read for an unknown id
	state          atomic.Pointer[state]
}

// state is an immutable snapshot of the folder.
type state struct {
	files   []fs.FileInfo // source of the keys
	keys    []Key         // sorted by ID
	primary int           // index in keys
	err     error         // of the last check
}

func (st *state) byID(id string) (Key, bool) {
	if st == nil {
		return Key{}, false
	}
	i, ok := slices.BinarySearchFunc(st.keys, id, func(k Key, id string) int { return strings.Compare(k.ID, id) })
	if !ok {
		return Key{}, false
	}
	return st.keys[i], true
}

func (st *state) equal(other *state) bool {
	return st.primary == other.primary && slices.EqualFunc(st.keys, other.keys, Key.equal)
}

// Open reads the keys of a folder. If the last element of the path ends in "*", as
// in /etc/keys/jwt-*, only files with that prefix are selected. Ids do not include
// the prefix. Therefore one folder can hold several sets.
//
// Open returns an error if the folder is unreadable, or does not have exactly one
// primary. It also does so for more than 1,000 files or a file above 1 MiB.
func Open(folder string) (*Set, error) {
	s := &Set{folder: folder, start: time.Now(), idle: make(chan struct{}, 1)}
	if prefix, found := strings.CutSuffix(filepath.Base(folder), "*"); found {
		s.folder, s.prefix = filepath.Dir(folder), prefix
	}
	st, err := s.readFolder(nil)
	if err != nil {
		return nil, fmt.Errorf("key set %s: %w", folder, err)
	}
	s.state.Store(st)
	s.looked.Store(s.now())
	s.idle <- struct{}{}
	return s, nil
}

// Primary returns the key for signing and encryption.
func (s *Set) Primary() Key {
	st := s.recentState()
	return s.use(st.keys[st.primary])
}

// ByID returns the key with the ID, and reports whether it exists. Before it
// reports false, it reads the folder again, at most once a second, because another
// process may have received the key first.
func (s *Set) ByID(id string) (Key, bool) {
	if key, ok := s.recentState().byID(id); ok {
		return s.use(key), true
	}
	now := s.now()
	if last := s.forced.Load(); (last != 0 && now-last < int64(interval)) || !s.forced.CompareAndSwap(last, now) {
		return Key{}, false
	}
	<-s.idle
	s.refresh()
	if key, ok := s.state.Load().byID(id); ok {
		return s.use(key), true
	}
	return Key{}, false
}

// All returns the keys, sorted by ID.
func (s *Set) All() []Key { return slices.Clone(s.recentState().keys) }

// Err returns the reason why the folder's current content is not in use, or nil.
func (s *Set) Err() error { return s.recentState().err }

// Changes yields after each change of the keys, until ctx is done:
//
//	for range keys.Changes(ctx) {
//		server.SetSigner(keys.Primary())
//	}
//
// It may combine several changes.
func (s *Set) Changes(ctx context.Context) func(yield func() bool) {
	seen := s.recentState()
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := s.recentState()
			if now.equal(seen) {
				continue
			}
			if seen = now; !yield() {
				return
			}
		}
	}
}

// recentState returns the state of the folder from less than a second ago. While another
// goroutine reads the folder, it returns the previous state.
func (s *Set) recentState() *state {
	if s.now()-s.looked.Load() >= int64(interval) {
		select {
		case <-s.idle:
			s.refresh()
		default:
		}
	}
	return s.state.Load()
}

// refresh reads the folder if it changed. The caller has taken the element of idle.
// refresh puts it back.
func (s *Set) refresh() {
	defer func() {
		s.looked.Store(s.now())
		s.idle <- struct{}{}
	}()
	old := s.state.Load()
	st, err := s.readFolder(old)
	if err != nil {
		kept := *old
		kept.err = fmt.Errorf("key set %s: %w; the last good keys stay in use", s.folder, err)
		st = &kept
	}
	s.state.Store(st)
}

// now returns the monotonic clock, never 0.
func (s *Set) now() int64 { return int64(time.Since(s.start)) + 1 }

func (s *Set) use(key Key) Key {
	key.used.Store(s.now())
	return key
}
