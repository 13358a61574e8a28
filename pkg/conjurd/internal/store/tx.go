package store

import (
	"context"
	"strings"

	"go.etcd.io/bbolt"
)

// Tx is a transaction on the store. Byte slices and records that it returns are
// copies and stay valid after its end.
type Tx struct {
	tx    *bbolt.Tx
	seal  sealer
	fault func(step string) error

	meta, objects, owned, declared, members, memberships, permissions, privileges, credentials, values, policies, tokens *bucket

	sum   checksum     // of the file including this transaction's writes
	err   error        // the first write error
	ended func() error // returns an error if writes are no longer permitted
}

// Until makes all writes fail after ctx ends. Without it a transaction runs to
// completion.
func (t *Tx) Until(ctx context.Context) { t.ended = ctx.Err }

const fillPercent = 0.8

// tx wraps a transaction of bbolt. If writes is true, the result collects writes.
func (s *Store) tx(tx *bbolt.Tx, writes bool) *Tx {
	t := &Tx{tx: tx, seal: *s.seal.Load(), fault: s.fault, ended: context.Background().Err}
	copy(t.sum[:], tx.Bucket(bucketMeta).Get(metaSum))
	for i, at := range t.buckets() {
		name := buckets[i]
		*at = &bucket{Bucket: tx.Bucket(name), tx: t, name: string(name)}
		// Keys are inserted in order, so pages can be nearly full.
		(*at).FillPercent = fillPercent
		if writes {
			(*at).waiting = map[string]*[]byte{}
		}
	}
	return t
}

// Err returns the reason why writes fail, or nil.
func (t *Tx) Err() error {
	if t.err == nil {
		t.err = t.ended()
	}
	return t.err
}

// buckets returns the buckets in the order of their names.
func (t *Tx) buckets() []**bucket {
	return []**bucket{
		&t.meta, &t.objects, &t.owned, &t.declared, &t.members, &t.memberships, &t.permissions,
		&t.privileges, &t.credentials, &t.values, &t.policies, &t.tokens,
	}
}

// write flushes all buffered writes, and the checksum.
func (t *Tx) write() error {
	for _, b := range t.buckets() {
		(*b).write()
	}
	if t.err != nil {
		return t.err
	}
	return t.meta.Bucket.Put(metaSum, t.sum[:])
}

// key joins parts with zero bytes, which never occur in parts.
func key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

// prefix returns the prefix of all keys that have these parts and one more.
func prefix(parts ...string) []byte { return append(key(parts...), 0) }
