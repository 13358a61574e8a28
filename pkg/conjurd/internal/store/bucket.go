package store

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// bucket is a bbolt bucket that buffers writes until the end of the transaction, and
// then applies them in key order. bbolt keeps all additions of a transaction in one
// sorted list. A change out of order would move all later entries of that list.
type bucket struct {
	*bbolt.Bucket
	tx      *Tx
	name    string
	waiting map[string]*[]byte // key → value, nil to delete it; nil in a reading transaction
	// put lists the keys that were put, and may have been deleted since. The first
	// sorted ones are in order.
	put    []string
	sorted int
	last   uint64 // number from next, 0 if there is none
}

// Get returns the value at k, or nil if there is none. The caller must not change
// the value.
func (b *bucket) Get(k []byte) []byte {
	if v, ok := b.waiting[string(k)]; ok {
		if v == nil {
			return nil
		}
		return *v
	}
	return b.Bucket.Get(k)
}

// Put sets the value at k to v, and retains v. The error is from an earlier write,
// or says why writes are no longer permitted.
func (b *bucket) Put(k, v []byte) error {
	if v == nil {
		v = []byte{}
	}
	name := string(k)
	if b.waiting[name] == nil {
		b.put = append(b.put, name)
	}
	b.waiting[name] = &v
	return b.tx.Err()
}

// Delete removes k. Its error is as for Put.
func (b *bucket) Delete(k []byte) error {
	if _, ok := b.waiting[string(k)]; ok || b.Bucket.Get(k) != nil {
		b.waiting[string(k)] = nil
	}
	return b.tx.Err()
}

// write applies the buffered writes.
func (b *bucket) write() {
	for _, name := range slices.Sorted(maps.Keys(b.waiting)) {
		if b.tx.Err() != nil {
			return
		}
		b.tx.err = b.writeOne([]byte(name), b.waiting[name])
	}
	if b.last > 0 && b.tx.err == nil {
		b.tx.err = b.SetSequence(b.last)
	}
}

// next returns a number that is higher than all earlier ones.
func (b *bucket) next() uint64 {
	b.last = max(b.last, b.Sequence()) + 1
	return b.last
}

func (b *bucket) writeOne(k []byte, v *[]byte) error {
	old := b.Bucket.Get(k)
	if v == nil && old == nil || v != nil && old != nil && bytes.Equal(*v, old) {
		return nil
	}
	if old != nil {
		b.tx.sum.toggle(b.name, k, old)
	}
	if v == nil {
		return b.Bucket.Delete(k)
	}
	b.tx.sum.toggle(b.name, k, *v)
	return b.Bucket.Put(k, *v)
}

// order sorts the keys that were put.
func (b *bucket) order() []string {
	fresh := b.put[b.sorted:]
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	if b.sorted == 0 || len(fresh) == 0 || b.put[b.sorted-1] < fresh[0] {
		b.put = b.put[:b.sorted+len(fresh)]
	} else {
		b.put = slices.Compact(merge(b.put[:b.sorted], fresh))
	}
	b.sorted = len(b.put)
	return b.put
}

// merge merges two sorted lists.
func merge(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		from := &a
		if b[0] < a[0] {
			from = &b
		}
		out = append(out, (*from)[0])
		*from = (*from)[1:]
	}
	return append(append(out, a...), b...)
}

// scan yields the keys that begin with p, without p, and their values. The bucket
// must not change meanwhile. scan ends early if the transaction's context ends; then
// the transaction fails.
func scan(b *bucket, p []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		put := b.order()
		i, _ := slices.BinarySearch(put, string(p))
		c := b.Bucket.Cursor()
		k, v := c.Seek(p)
		for b.waiting == nil || b.tx.Err() == nil {
			for ; k != nil && bytes.HasPrefix(k, p); k, v = c.Next() {
				if _, ok := b.waiting[string(k)]; !ok {
					break
				}
			}
			stored := k != nil && bytes.HasPrefix(k, p)
			added := func() bool { return i < len(put) && strings.HasPrefix(put[i], string(p)) }
			for added() && b.waiting[put[i]] == nil {
				i++
			}
			switch {
			case added() && (!stored || put[i] < string(k)):
				if !yield(put[i][len(p):], *b.waiting[put[i]]) {
					return
				}
				i++
			case stored:
				if !yield(string(k[len(p):]), v) {
					return
				}
				k, v = c.Next()
			default:
				return
			}
		}
	}
}

// keys returns the keys from scan. Use it to change the bucket while reading.
func keys(b *bucket, p []byte) []string {
	var out []string
	for k := range scan(b, p) {
		out = append(out, k)
	}
	return out
}

// get decodes the record at k. It returns false if there is none.
func get[T any](b *bucket, k []byte) (rec T, ok bool, err error) {
	v := b.Get(k)
	if v == nil {
		return rec, false, nil
	}
	err = json.Unmarshal(v, &rec)
	return rec, err == nil, err
}

func put[T any](b *bucket, k []byte, rec T) error {
	v, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return b.Put(k, v)
}
