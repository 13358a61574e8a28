package store

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"go.etcd.io/bbolt"
)

// Tx is a transaction on the store. Byte slices and records that it gives are
// copies and stay good after its end.
type Tx struct {
	tx    *bbolt.Tx
	seal  sealer
	fault func(step string) error

	meta, objects, owned, declared, members, memberships, permissions, privileges, credentials, values, policies *bbolt.Bucket
}

const fillPercent = 0.8

func (s *Store) tx(tx *bbolt.Tx) *Tx {
	t := &Tx{tx: tx, seal: s.seal, fault: s.fault}
	for _, b := range []struct {
		name []byte
		at   **bbolt.Bucket
	}{
		{bucketMeta, &t.meta}, {bucketObjects, &t.objects}, {bucketOwned, &t.owned}, {bucketDeclared, &t.declared},
		{bucketMembers, &t.members}, {bucketMemberships, &t.memberships}, {bucketPermissions, &t.permissions},
		{bucketPrivileges, &t.privileges}, {bucketCredentials, &t.credentials}, {bucketValues, &t.values},
		{bucketPolicies, &t.policies},
	} {
		*b.at = tx.Bucket(b.name)
		// Most keys come in order, as policies do, so leave little room.
		(*b.at).FillPercent = fillPercent
	}
	return t
}

// key joins parts with zero bytes, which no part contains.
func key(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

// prefix is the start of all keys that have these parts and one more.
func prefix(parts ...string) []byte { return append(key(parts...), 0) }

// scan gives the keys that begin with p, without p, and their values. The
// bucket must not be changed meanwhile.
func scan(b *bbolt.Bucket, p []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := b.Cursor()
		for k, v := c.Seek(p); k != nil && bytes.HasPrefix(k, p); k, v = c.Next() {
			if !yield(string(k[len(p):]), v) {
				return
			}
		}
	}
}

// keys is scan's first half, gathered, for those who change what they read.
func keys(b *bbolt.Bucket, p []byte) []string {
	var out []string
	for k := range scan(b, p) {
		out = append(out, k)
	}
	return out
}

// get decodes the record at k; false when there is none.
func get[T any](b *bbolt.Bucket, k []byte) (rec T, ok bool, err error) {
	v := b.Get(k)
	if v == nil {
		return rec, false, nil
	}
	err = json.Unmarshal(v, &rec)
	return rec, err == nil, err
}

func put[T any](b *bbolt.Bucket, k []byte, rec T) error {
	v, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return b.Put(k, v)
}
