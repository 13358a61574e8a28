package sinks

import (
	"fmt"
	"sync"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// budget limits the total content of the targets in one folder. A folder in memory
// uses the node's memory, which it shares with other Pods. The zero budget has no
// limit.
type budget struct {
	limit int64 // bytes; 0 means no limit

	mu   sync.Mutex
	used map[targets.Key]int64
}

// is records the content of a target.
func (b *budget) is(key targets.Key, parts map[string]secret.Value) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setLocked(key, size(parts))
}

// reserve reserves room for a target's new content, or refuses it. undo restores the
// previous reservation.
func (b *budget) reserve(key targets.Key, parts map[string]secret.Value) (undo func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, wanted, others := b.used[key], size(parts), int64(0)
	for other, n := range b.used {
		if other != key {
			others += n
		}
	}
	if b.limit > 0 && wanted > before && others+wanted > b.limit {
		return nil, fmt.Errorf("its %d bytes, with the %d of the other targets, would be more than the %d that secretsSizeLimit allows; raise that, or deliver less", wanted, others, b.limit)
	}
	b.setLocked(key, wanted)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.setLocked(key, before)
	}, nil
}

// total returns the bytes of all targets together.
func (b *budget) total() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, used := range b.used {
		n += used
	}
	return n
}

func (b *budget) setLocked(key targets.Key, n int64) {
	if b.used == nil {
		b.used = map[targets.Key]int64{}
	}
	b.used[key] = n
}

func size(parts map[string]secret.Value) (n int64) {
	for _, v := range parts {
		n += int64(v.Len())
	}
	return n
}
