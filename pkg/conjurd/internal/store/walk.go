package store

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// walk reads a bbolt file page by page and trusts none of its contents. bbolt
// itself trusts the file. An altered byte can make it panic, even in its background
// goroutines, loop forever, or accept an older state as the newest. The format is
// version 2 of bbolt's:
//
//	page:    id u64, flags u16, count u16, overflow u32, then count elements
//	branch:  pos u32, ksize u32, page u64
//	leaf:    flags u32, pos u32, ksize u32, vsize u32
//	bucket:  root page u64, sequence u64, then the root page itself if that is 0
//	meta:    magic u32, version u32, page size u32, flags u32, bucket,
//	         page of the freelist u64, number of pages u64, transaction u64, checksum u64
//
// pos is an offset from the element itself.
type walk struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64
	root     uint64
	seen     []bool // page → whether it is in use
}

const (
	pageHeader  = 16
	branchPage  = 1
	leafPage    = 2
	bucketEntry = 1 // flag of a leaf's element
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	maxDepth    = 64
	maxPageSize = 1 << 16
)

var order = binary.NativeEndian

// newWalk reads the two meta pages. Both are always complete, because a commit
// writes one of them in one sector.
func newWalk(file io.ReaderAt, size int64) (*walk, error) {
	w := &walk{file: file}
	first := make([]byte, pageHeader+metaSize)
	if _, err := file.ReadAt(first, 0); err != nil {
		return nil, ErrTruncated
	}
	w.pageSize = int64(order.Uint32(first[pageHeader+8:]))
	if w.pageSize < 1<<9 || w.pageSize > maxPageSize {
		return nil, ErrDamaged
	}
	newest := uint64(0)
	for id := range uint64(2) {
		meta, err := w.meta(id)
		if err != nil {
			return nil, err
		}
		if txid := order.Uint64(meta[48:]); id == 0 || txid > newest {
			newest, w.root, w.pages = txid, order.Uint64(meta[16:]), order.Uint64(meta[40:])
		}
	}
	if w.pages > uint64(size/w.pageSize) {
		return nil, ErrTruncated
	}
	w.seen = make([]bool, w.pages)
	return w, nil
}

func (w *walk) meta(id uint64) ([]byte, error) {
	p := make([]byte, pageHeader+metaSize)
	if _, err := w.file.ReadAt(p, int64(id)*w.pageSize); err != nil {
		return nil, ErrTruncated
	}
	m := p[pageHeader:]
	h := fnv.New64a()
	h.Write(m[:metaSize-8])
	if order.Uint64(p) != id || order.Uint32(m) != metaMagic || order.Uint64(m[metaSize-8:]) != h.Sum64() ||
		int64(order.Uint32(m[8:])) != w.pageSize {
		return nil, ErrDamaged
	}
	return m, nil
}

// records calls f for each key and value in each bucket. f may keep the slices.
func (w *walk) records(f func(bucket string, k, v []byte)) error {
	return w.tree(w.root, nil, 0, func(e element) error {
		if e.flags != bucketEntry || len(e.value) < pageHeader || !slices.ContainsFunc(buckets, func(b []byte) bool { return bytes.Equal(b, e.key) }) {
			return ErrDamaged
		}
		name, last := string(e.key), []byte(nil)
		one := func(e element) error {
			if e.flags != 0 || bytes.Compare(last, e.key) >= 0 {
				return ErrDamaged
			}
			last = e.key
			f(name, e.key, e.value)
			return nil
		}
		if root := order.Uint64(e.value); root != 0 {
			return w.tree(root, nil, 0, one)
		}
		return w.page(e.value[pageHeader:], nil, 0, one)
	})
}

// element of a page. A branch element has a child. A leaf element has flags and a
// value.
type element struct {
	key, value []byte
	child      uint64
	flags      uint32
}

// tree walks the page and the pages below it. The first key of the page must equal
// start, the key in its parent page. start is nil for a page without a parent.
func (w *walk) tree(id uint64, start []byte, depth int, f func(element) error) error {
	p, err := w.readPage(id)
	if err != nil {
		return err
	}
	return w.page(p, start, depth, f)
}

func (w *walk) page(p, start []byte, depth int, f func(element) error) error {
	if len(p) < pageHeader || depth > maxDepth {
		return ErrDamaged
	}
	kind, count := order.Uint16(p[8:]), int(order.Uint16(p[10:]))
	if kind != leafPage && (kind != branchPage || count == 0) || start != nil && count == 0 {
		return ErrDamaged
	}
	for i := range count {
		e, ok := elementOf(p, kind, i)
		if !ok || i == 0 && start != nil && !bytes.Equal(start, e.key) {
			return ErrDamaged
		}
		err := error(nil)
		if kind == branchPage {
			err = w.tree(e.child, e.key, depth+1, f)
		} else {
			err = f(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elementOf returns the page's ith element. It returns false if the element exceeds
// the page.
func elementOf(p []byte, kind uint16, i int) (e element, ok bool) {
	at := pageHeader + i*pageHeader // an element has the same size as the header
	if at+pageHeader > len(p) {
		return e, false
	}
	head := p[at:]
	pos, ksize, vsize := order.Uint32(head), order.Uint32(head[4:]), uint32(0)
	if kind == branchPage {
		e.child = order.Uint64(head[8:])
	} else {
		e.flags, pos, ksize, vsize = pos, ksize, order.Uint32(head[8:]), order.Uint32(head[12:])
	}
	from := uint64(at) + uint64(pos)
	to := from + uint64(ksize)
	if ksize == 0 || to+uint64(vsize) > uint64(len(p)) {
		return e, false
	}
	e.key, e.value = p[from:to], p[to:to+uint64(vsize)]
	return e, true
}

// readPage returns a page with its overflow pages. It rejects a page that was read
// before.
func (w *walk) readPage(id uint64) ([]byte, error) {
	p := make([]byte, w.pageSize)
	if id < 2 || id >= w.pages {
		return nil, ErrDamaged
	}
	if _, err := w.file.ReadAt(p, int64(id)*w.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	more := uint64(order.Uint32(p[12:]))
	if order.Uint64(p) != id || id+more >= w.pages || slices.Contains(w.seen[id:id+more+1], true) {
		return nil, ErrDamaged
	}
	for i := range more + 1 {
		w.seen[id+i] = true
	}
	if more == 0 {
		return p, nil
	}
	p = append(p, make([]byte, int64(more)*w.pageSize)...)
	if _, err := w.file.ReadAt(p[w.pageSize:], int64(id+1)*w.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return p, nil
}

// examine opens the file read-only and returns the damage that it finds.
func examine(path string, seal sealer) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return ErrForeign
	}
	if info.Size() == 0 {
		return ErrTruncated
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return explain(err)
	}
	defer db.Close() // the file stays locked during the examination
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := newWalk(f, info.Size())
	if err != nil {
		return err
	}
	return w.identify(seal)
}

// identify checks the file's format, its checksum, and the key.
func (w *walk) identify(seal sealer) error {
	var sum checksum
	meta := map[string][]byte{}
	err := w.records(func(bucket string, k, v []byte) {
		if bucket == string(bucketMeta) {
			meta[string(k)] = v
			if string(k) == string(metaSum) {
				return
			}
		}
		sum.toggle(bucket, k, v)
	})
	if err != nil {
		return err
	}
	kept, summed := meta[string(metaSum)]
	switch f := string(meta[string(metaFormat)]); {
	case summed && !bytes.Equal(kept, sum[:]):
		return ErrDamaged
	case f != format || !summed:
		return ErrForeign
	}
	if _, err := seal.open(meta[string(metaCheck)], "check"); err != nil {
		return ErrWrongKey
	}
	return nil
}

// explain translates bbolt's errors into errors of this package.
func explain(err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrForeign
	case err.Error() == "file size too small":
		return ErrTruncated
	}
	return err
}

// checksum covers all records of a file in any order: it is the exclusive or of
// their digests. Therefore a transaction updates it from its own changes. It
// detects damage. It does not detect tampering, because anyone who can write the
// file can write the checksum.
type checksum [sha256.Size]byte

// toggle adds a record, or removes it if it is included already.
func (c *checksum) toggle(bucket string, k, v []byte) {
	h := sha256.New()
	var n [8]byte
	for _, part := range [...][]byte{[]byte(bucket), k} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Write(v)
	var sum checksum
	h.Sum(sum[:0])
	subtle.XORBytes(c[:], c[:], sum[:])
}
