package store

import (
	"context"
	"strings"

	"go.etcd.io/bbolt"
)

// Tx is a transaction on the store. Byte slices and records that it returns are
// copies and stay good after its end.
type Tx struct {
	tx    *bbolt.Tx
	seal  sealer
	fault func(step string) error

	meta, objects, owned, declared, members, memberships, permissions, privileges, credentials, values, policies, tokens *bucket

	sum   checksum     // of the file with what was written
	err   error        // the first failure to write
	ended func() error // returns why no more is to be written
}

// Until makes all writes fail once ctx has ended. Without it a transaction
// goes on to its end.
func (t *Tx) Until(ctx context.Context) { t.ended = ctx.Err }

const fillPercent = 0.8

func (s *Store) tx(tx *bbolt.Tx) *Tx {
	t := &Tx{tx: tx, seal: *s.seal.Load(), fault: s.fault, ended: context.Background().Err}
	copy(t.sum[:], tx.Bucket(bucketMeta).Get(metaSum))
	for i, at := range t.buckets() {
		name := buckets[i]
		*at = &bucket{Bucket: tx.Bucket(name), tx: t, name: string(name)}
		if tx.Writable() {
			(*at).waiting = map[string]*[]byte{}
			// Keys go in in order, so leave little room.
			(*at).FillPercent = fillPercent
		}
	}
	return t
}

// failed returns why nothing more can be written; nil when it can.
func (t *Tx) failed() error {
	if t.err == nil {
		t.err = t.ended()
	}
	return t.err
}

// buckets are in the order of the names.
func (t *Tx) buckets() []**bucket {
	return []**bucket{
		&t.meta, &t.objects, &t.owned, &t.declared, &t.members, &t.memberships, &t.permissions,
		&t.privileges, &t.credentials, &t.values, &t.policies, &t.tokens,
	}
}

// write brings in all that waits, and the checksum.
func (t *Tx) write() error {
	for _, b := range t.buckets() {
		(*b).write()
	}
	if t.err != nil {
		return t.err
	}
	return t.meta.Bucket.Put(metaSum, t.sum[:])
}

// key joins parts with zero bytes, which no part contains.
func key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

// prefix is the start of all keys that have these parts and one more.
func prefix(parts ...string) []byte { return append(key(parts...), 0) }
