// Package keyset reads a set of keys from a folder and follows its rotation.
//
// Each file of the folder is a part of a key and is named <id>.<part>, such as
// r1.key, or r2.private and r2.public. The parts of the primary key, the only
// one that signs and encrypts, end in .primary: r2.key.primary. A folder holds
// any number of keys and one primary.
//
// A rotation adds a key, makes it the primary when every reader of the folder
// has it, and takes the old one away when nothing is left that needs it. So a
// program signs with [Set.Primary], checks with [Set.ByID], and neither waits
// for a rotation nor is restarted by one.
//
// The folder is a mounted Kubernetes Secret, a folder written by Syncer's
// format "directory", or a plain one. Names that begin with a dot, names
// without a dot, and what is no regular file are ignored.
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

// interval is the least time between two looks at the folder.
const interval = time.Second

// A Key is one version of the secret.
type Key struct {
	// ID is the name's text before its first dot. It is never empty.
	ID string

	parts map[string][]byte
	aead  cipher.AEAD   // of the part "key", or nil if that is no AES-256 key
	used  *atomic.Int64 // when it was last used, since the Set's start; 0 is never
}

// Part returns the content of the file <id>.<name>, or nil if there is none.
// It must not be modified.
func (k Key) Part(name string) []byte { return k.parts[name] }

func (k Key) equal(other Key) bool {
	return k.ID == other.ID && maps.EqualFunc(k.parts, other.parts, bytes.Equal)
}

// A Set is the keys of a folder. Its methods look at the folder once a second
// at most, and only when they are called. When the folder cannot be read, or
// has not exactly one primary, they go on with the last good keys; [Set.Err]
// says why.
//
// A Set starts no goroutine and keeps no file open. Its methods may be called
// by several goroutines at once.
type Set struct {
	folder, prefix string
	start          time.Time
	turn           chan struct{} // has one element while nobody reads the folder
	looked, forced atomic.Int64  // when the folder was last looked at, and read for an unknown id
	state          atomic.Pointer[state]
}

// state is what is known of the folder. It is never changed in place.
type state struct {
	files   []fs.FileInfo // that the keys were read from
	keys    []Key         // by ID
	primary int           // in keys
	err     error         // of the last look
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

// Open reads the keys of a folder. A last element that ends in "*", as in
// /etc/keys/jwt-*, selects the files whose names begin with what is before it,
// and is left out of their ids; so one folder can hold several sets.
//
// It is an error if the folder cannot be read, if it has no primary or more
// than one, or if it has more than 1,000 files or one above 1 MiB.
func Open(folder string) (*Set, error) {
	s := &Set{folder: folder, start: time.Now(), turn: make(chan struct{}, 1)}
	if prefix, found := strings.CutSuffix(filepath.Base(folder), "*"); found {
		s.folder, s.prefix = filepath.Dir(folder), prefix
	}
	st, err := s.read(nil)
	if err != nil {
		return nil, fmt.Errorf("key set %s: %w", folder, err)
	}
	s.state.Store(st)
	s.looked.Store(s.now())
	s.turn <- struct{}{}
	return s, nil
}

// Primary returns the key to sign and encrypt with.
func (s *Set) Primary() Key {
	st := s.look()
	return s.use(st.keys[st.primary])
}

// ByID returns the key of that ID, and reports whether there is one. It reads
// the folder anew before it says no, once a second at most: another process
// may have got the key first.
func (s *Set) ByID(id string) (Key, bool) {
	if key, ok := s.look().byID(id); ok {
		return s.use(key), true
	}
	now := s.now()
	if last := s.forced.Load(); (last != 0 && now-last < int64(interval)) || !s.forced.CompareAndSwap(last, now) {
		return Key{}, false
	}
	<-s.turn
	s.refresh()
	if key, ok := s.state.Load().byID(id); ok {
		return s.use(key), true
	}
	return Key{}, false
}

// All returns the keys in the order of their IDs.
func (s *Set) All() []Key { return slices.Clone(s.look().keys) }

// Err returns why the folder's present content is not in use, or nil.
func (s *Set) Err() error { return s.look().err }

// Changes yields after each change of the keys, until ctx is done:
//
//	for range keys.Changes(ctx) {
//		server.SetSigner(keys.Primary())
//	}
//
// Several changes may be yielded as one.
func (s *Set) Changes(ctx context.Context) func(yield func() bool) {
	seen := s.look()
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := s.look()
			if now.equal(seen) {
				continue
			}
			if seen = now; !yield() {
				return
			}
		}
	}
}

// look returns the state of the folder as it was less than a second ago, or,
// while another goroutine looks, as it was before.
func (s *Set) look() *state {
	if s.now()-s.looked.Load() >= int64(interval) {
		select {
		case <-s.turn:
			s.refresh()
		default:
		}
	}
	return s.state.Load()
}

// refresh reads the folder if it is not as it was read last. It is called with
// the turn, and hands it back.
func (s *Set) refresh() {
	defer func() {
		s.looked.Store(s.now())
		s.turn <- struct{}{}
	}()
	old := s.state.Load()
	st, err := s.read(old)
	if err != nil {
		kept := *old
		kept.err = fmt.Errorf("key set %s: %w; the last good keys stay in use", s.folder, err)
		st = &kept
	}
	s.state.Store(st)
}

// now is a reading of the monotonic clock, never 0.
func (s *Set) now() int64 { return int64(time.Since(s.start)) + 1 }

func (s *Set) use(key Key) Key {
	key.used.Store(s.now())
	return key
}
