package store

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// bucket is a bbolt bucket that buffers writes. It flushes them in key order before
// a search and at the end of the transaction. bbolt keeps all additions of a
// transaction in one sorted list. An insertion out of order would move all later
// entries of that list.
type bucket struct {
	*bbolt.Bucket
	tx      *Tx
	name    string
	waiting map[string]*[]byte // :: key → value, nil to delete it
}

// Get returns the value at k, or nil if there is none.
func (b *bucket) Get(k []byte) []byte {
	if v, ok := b.waiting[string(k)]; ok {
		if v == nil {
			return nil
		}
		return append([]byte{}, *v...)
	}
	return b.Bucket.Get(k)
}

// Put sets the value at k to v, and retains v. The error is from an earlier write,
// or says why writes are no longer permitted.
func (b *bucket) Put(k, v []byte) error {
	b.waiting[string(k)] = &v
	return b.tx.failed()
}

// Delete removes k. Its error is as for Put.
func (b *bucket) Delete(k []byte) error {
	b.waiting[string(k)] = nil
	return b.tx.failed()
}

// write flushes the buffered writes.
func (b *bucket) write() {
	if len(b.waiting) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(b.waiting)) {
		if b.tx.failed() != nil {
			break
		}
		b.tx.err = b.writeOne([]byte(name), b.waiting[name])
	}
	clear(b.waiting)
}

func (b *bucket) writeOne(k []byte, v *[]byte) error {
	old := b.Bucket.Get(k)
	if v != nil && old != nil && bytes.Equal(*v, old) {
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

// Cursor includes everything written so far.
func (b *bucket) Cursor() *bbolt.Cursor {
	b.write()
	return b.Bucket.Cursor()
}

// scan yields the keys that begin with p, without p, and their values. The bucket
// must not change meanwhile.
func scan(b *bucket, p []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := b.Cursor()
		for k, v := c.Seek(p); k != nil && bytes.HasPrefix(k, p); k, v = c.Next() {
			if !yield(string(k[len(p):]), v) {
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
