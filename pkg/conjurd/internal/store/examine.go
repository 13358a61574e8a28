package store

import (
	"bytes"
	"errors"
	"io"
	"os"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

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
	case f != format && (f != unsummed || summed):
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
