package sinks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// revision is what a Secret held of ours, by fingerprint, and the annotations
// that tell of it.
type revision struct {
	sum         [sha256.Size]byte
	annotations map[string]string
	gone        bool
}

// revisions remembers the last revision of each Secret, also of those that are
// gone: who used the Secret need not be told when it is made anew with the same
// content, and must be told when it is made anew with another, though nobody
// has used the new one. The zero revisions is empty and ready.
type revisions struct {
	mu   sync.Mutex
	key  []byte // of the fingerprints, made at first use: none can be guessed from outside
	last map[targets.Key]revision
	gone []targets.Key // in the order in which they went; some may have come back
}

// mostGone bounds how many Secrets that are gone are remembered.
const mostGone = 1000

// note takes in what a Secret holds of ours, if its annotations tell of a
// revision.
func (r *revisions) note(key targets.Key, annotations map[string]string, ours map[string][]byte) {
	if annotations[targets.RevisionAnnotation] == "" {
		return
	}
	told := map[string]bool{targets.RevisionAnnotation: true, targets.RevisedAnnotation: true, targets.FilledAnnotation: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[targets.Key]revision{}
	}
	r.last[key] = revision{sum: r.sumLocked(ours), annotations: among(annotations, told, false)}
}

// leave notes that a Secret is gone.
func (r *revisions) leave(key targets.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[key]
	if !ok || last.gone {
		return
	}
	last.gone = true
	r.last[key] = last
	if r.gone = append(r.gone, key); len(r.gone) > mostGone {
		if oldest := r.gone[0]; r.last[oldest].gone {
			delete(r.last, oldest)
		}
		r.gone = r.gone[1:]
	}
}

// next gives the annotations of a write that changes the data of a Secret, that
// has some already, to what is ours then. first: nothing of ours is in it, or
// ever was since it was made.
func (r *revisions) next(key targets.Key, annotations map[string]string, ours map[string][]byte, first bool, now time.Time) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.last[key]
	if first && known && last.sum == r.sumLocked(ours) {
		return last.annotations
	}
	number := nextRevision(annotations[targets.RevisionAnnotation], now)
	next := map[string]string{targets.RevisionAnnotation: number, targets.RevisedAnnotation: now.UTC().Format(time.RFC3339)}
	if first && !known {
		next[targets.FilledAnnotation] = number
	}
	return next
}

// sumLocked runs over keys and values with their lengths, so that no two
// contents make the same input.
func (r *revisions) sumLocked(ours map[string][]byte) (sum [sha256.Size]byte) {
	if r.key == nil {
		r.key = make([]byte, sha256.Size)
		_, _ = rand.Read(r.key) // never fails
	}
	mac := hmac.New(sha256.New, r.key)
	var length [8]byte
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		for _, text := range [][]byte{[]byte(key), ours[key]} {
			binary.BigEndian.PutUint64(length[:], uint64(len(text)))
			mac.Write(length[:])
			mac.Write(text)
		}
	}
	mac.Sum(sum[:0])
	return sum
}

// nextRevision is greater than current, and than what a Secret of that name,
// deleted since, had reached, as long as clocks go forward.
func nextRevision(current string, now time.Time) string {
	n, err := strconv.ParseInt(current, 10, 64)
	if err != nil {
		n = 0
	}
	return strconv.FormatInt(max(n+1, now.UnixMilli()), 10)
}
