package workers

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// Deliveries remembers what each target was last delivered as, by fingerprint,
// for as long as the process lives: so that what somebody deleted is told from
// what is new. Several Syncers may use it, one after the other. The zero
// Deliveries is empty and ready; it is safe for use by several goroutines.
type Deliveries struct {
	mu    sync.Mutex
	key   []byte // of the fingerprints, made at first use
	byKey map[targets.Key]delivery
}

// delivery is the state of one target as it is remembered.
type delivery struct {
	sum    [sha256.Size]byte
	known  bool // sum is that of the last delivery
	wanted bool // somebody asked to have it back
	// failed, cut: a write or a removal after that failed, and may have had
	// its effect all the same.
	failed, cut bool
}

// remember notes what a target holds now, for Deliveries. It tells whether an
// earlier change that seemed to fail was made after all, and not told of.
func (s *Syncer) remember(t *targets.Target, want Want) (late bool) {
	switch {
	case want.Gone == nil:
		return s.Deliveries.delivered(t, want)
	case want.Gone.Kept:
		return false
	}
	return s.Deliveries.removed(t.Key)
}

// deleted tells whether somebody deleted a target, or a part of it, and whether
// it stays away for that. A folder of files counts as deleted when it is gone
// as a whole; what is left of one is mended.
func (s *Syncer) deleted(t *targets.Target, want Want, have sinks.State) (deleted, stays bool) {
	if want.Gone != nil {
		return false, false
	}
	deleted, asked := s.Deliveries.deleted(t, want, have)
	stays = deleted && !asked && s.Policy.KeepDeleted && t.Secret == nil && len(have.Parts) == 0
	if stays {
		s.Log.Info("Leaving away what was deleted and has not changed", zap.String("target", string(t.Key)))
	}
	return deleted, stays
}

// Request has the targets of the keys brought back by their next sync if they
// are missing, also where what was deleted stays away.
func (d *Deliveries) Request(keys ...targets.Key) {
	for _, key := range keys {
		d.change(key, func(v *delivery) { v.wanted = true })
	}
}

// delivered notes that a target holds what is wanted. It tells whether a
// change that seemed to fail is what brought it there.
func (d *Deliveries) delivered(t *targets.Target, want Want) (late bool) {
	sum := d.fingerprint(t, want)
	d.change(t.Key, func(v *delivery) {
		late = (v.failed || v.cut) && !(v.known && v.sum == sum)
		*v = delivery{sum: sum, known: true}
	})
	return late
}

// removed notes that a target holds nothing, on purpose. It tells whether a
// removal that seemed to fail is what took it away.
func (d *Deliveries) removed(key targets.Key) (late bool) {
	d.change(key, func(v *delivery) { late, *v = v.cut, delivery{} })
	return late
}

// failed notes that it is not known what a target holds.
func (d *Deliveries) failed(key targets.Key, removal bool) {
	d.change(key, func(v *delivery) { v.failed, v.cut = v.failed || !removal, v.cut || removal })
}

// deleted tells whether a target is as it was last delivered, but that
// something of it, or all, is missing; and whether somebody asked to have it
// back.
func (d *Deliveries) deleted(t *targets.Target, want Want, have sinks.State) (deleted, wanted bool) {
	sum := d.fingerprint(t, want)
	d.change(t.Key, func(v *delivery) {
		deleted, wanted = v.known && v.sum == sum && !v.failed && !v.cut, v.wanted
	})
	for name, part := range have.Parts {
		there, ok := want.Parts[name]
		deleted = deleted && ok && part.Equal(there) && have.Mode == want.Mode
	}
	return deleted, wanted
}

func (d *Deliveries) change(key targets.Key, f func(*delivery)) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byKey == nil {
		d.byKey = map[targets.Key]delivery{}
	}
	v := d.byKey[key]
	if f(&v); v == (delivery{}) {
		delete(d.byKey, key)
		return
	}
	d.byKey[key] = v
}

// fingerprint tells contents apart without keeping them. Nobody who sees it
// can try values against it: its key is random and never leaves the process.
func (d *Deliveries) fingerprint(t *targets.Target, want Want) (sum [sha256.Size]byte) {
	if d == nil {
		return sum
	}
	mac := hmac.New(sha256.New, d.secret())
	number(mac, uint64(want.Mode&fs.ModePerm))
	text(mac, []byte(t.File.Path))
	for _, name := range slices.Sorted(maps.Keys(want.Parts)) {
		text(mac, []byte(name))
		text(mac, want.Parts[name].Bytes())
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

func (d *Deliveries) secret() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == nil {
		d.key = make([]byte, sha256.Size)
		_, _ = rand.Read(d.key) // never fails
	}
	return d.key
}

// text adds a text and where it ends.
func text(h hash.Hash, b []byte) {
	number(h, uint64(len(b)))
	h.Write(b)
}

func number(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
