// Package store keeps a server's state in one bbolt file: roles and resources,
// memberships, permissions, credentials, policy texts, and sealed values of
// variables. A transaction is a snapshot: it sees all effects of another
// transaction or none.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// format identifies the current file format.
const format = "syncer conjurd store 2"

// lockWait is how long Open waits for another process to release the file. It looks
// each lockPollInterval.
const (
	lockWait         = 2 * time.Second
	lockPollInterval = 50 * time.Millisecond
)

// The buckets, each with its key → value. Names of roles and resources are full
// names: "account:kind:id". "·" is a zero byte, which never occurs in names.
var (
	bucketMeta        = []byte("meta")        // "format", "check", "sum", "key·"+account → sealed
	bucketObjects     = []byte("objects")     // id → Object
	bucketOwned       = []byte("owned")       // owner·id → nothing
	bucketDeclared    = []byte("declared")    // policy·id → nothing
	bucketMembers     = []byte("members")     // role·member → Membership
	bucketMemberships = []byte("memberships") // member·role → nothing
	bucketPermissions = []byte("permissions") // resource·privilege·role → policy
	bucketPrivileges  = []byte("privileges")  // role·resource·privilege → nothing
	bucketCredentials = []byte("credentials") // role → Credentials
	bucketValues      = []byte("values")      // variable·version → sealed
	bucketPolicies    = []byte("policies")    // policy·version → PolicyVersion
	bucketTokens      = []byte("tokens")      // digest of the token → FactoryToken
)

var buckets = [][]byte{
	bucketMeta, bucketObjects, bucketOwned, bucketDeclared, bucketMembers, bucketMemberships, bucketPermissions,
	bucketPrivileges, bucketCredentials, bucketValues, bucketPolicies, bucketTokens,
}

// Keys in the metadata bucket.
var (
	metaFormat = []byte("format")
	metaCheck  = []byte("check")
	metaSum    = []byte("sum") // checksum of everything else
)

// Errors of Open. All are wrapped with the file's name.
var (
	ErrNoFile    = errors.New("there is no such data file")
	ErrWrongKey  = errors.New("the data key is not the one that the file was made with")
	ErrForeign   = errors.New("the file is not a data file of this server")
	ErrTruncated = errors.New("the file is shorter than its contents: it was cut off")
	ErrDamaged   = errors.New("the file is damaged: put back a backup")
	ErrInUse     = errors.New("another process uses the data file")
)

// ErrReplaced is the error of a store whose file was moved, removed or replaced. It
// is wrapped with the file's name.
var ErrReplaced = errors.New("another file is in its place, or none: start the server again")

// Store is an open data file.
type Store struct {
	db    *bbolt.DB
	seal  atomic.Pointer[sealer]
	fault func(step string) error
	path  string
	file  os.FileInfo // of the open file; nil if the file need not survive
	lock  *os.File
}

// Options of Open.
type Options struct {
	Key []byte // 32 bytes, or several such keys, of which the first one seals
	// Create creates the file if it does not exist.
	Create bool
	// NoSync trades durability for speed, for files that need not survive a crash.
	NoSync bool
	// Fault, for tests, runs before each "value" is put and before each "commit".
	// Its error makes that step fail. Nil injects no faults.
	Fault func(step string) error
}

// Open opens or creates the data file at path. It does not modify a file that is of
// another format, is damaged or has another key. It locks a second file beside the
// data file, because another file may take the place of the data file.
func Open(path string, o Options) (_ *Store, err error) {
	seal, err := newSealer(o.Key)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !o.Create {
		return nil, fmt.Errorf("data file %s: %w", path, ErrNoFile)
	}
	s := &Store{fault: o.Fault, path: path}
	s.seal.Store(&seal)
	if s.fault == nil {
		s.fault = func(string) error { return nil }
	}
	if s.lock, err = lockFile(path + ".lock"); err != nil {
		return nil, err
	}
	if err := s.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("data file %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(o Options) error {
	if _, err := os.Stat(s.path); err == nil {
		if err := examine(s.path, *s.seal.Load()); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := bbolt.Open(s.path, 0o600, &bbolt.Options{
		Timeout: lockWait, NoSync: o.NoSync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			if err == nil && !o.NoSync {
				s.file, err = f.Stat()
			}
			return f, err
		},
	})
	if err != nil {
		return explain(err)
	}
	s.db = db
	return s.prepare()
}

// lockFile creates and locks a file. The lock ends when the file is closed. Nothing
// removes the file: a process may wait for it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPollInterval) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	return nil, errors.Join(fmt.Errorf("folder %s: %w", filepath.Dir(path), err), f.Close())
}

// InPlace returns ErrReplaced if the open file is no longer at its path.
func (s *Store) InPlace() error {
	if s.file == nil {
		return nil
	}
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(s.file, now) {
		return fmt.Errorf("data file %s: %w", s.path, ErrReplaced)
	}
	return nil
}

// prepare creates missing buckets, and the metadata of a new file.
func (s *Store) prepare() error {
	whole := true
	err := s.db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			whole = whole && tx.Bucket(name) != nil
		}
		return nil
	})
	if err != nil || whole {
		return err
	}
	return s.db.Update(func(btx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := btx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		tx := s.tx(btx, true)
		if tx.meta.Get(metaFormat) != nil {
			return nil
		}
		return errors.Join(
			tx.meta.Put(metaFormat, []byte(format)),
			tx.meta.Put(metaCheck, s.seal.Load().seal([]byte(format), "check")),
			tx.write())
	})
}

// Close closes the file, after the transactions in progress. It may be called twice.
func (s *Store) Close() (err error) {
	if s.db != nil {
		err = s.db.Close()
	}
	if e := s.lock.Close(); !errors.Is(e, fs.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// View runs f on a snapshot.
func (s *Store) View(f func(*Tx) error) error { return s.runInView(f, false) }

// Try runs f on a snapshot that f may change. Nothing is written, and other
// transactions do not wait.
func (s *Store) Try(f func(*Tx) error) error { return s.runInView(f, true) }

func (s *Store) runInView(f func(*Tx) error, writes bool) error {
	if err := s.InPlace(); err != nil {
		return err
	}
	return s.db.View(func(tx *bbolt.Tx) error { return guard(func() error { return f(s.tx(tx, writes)) }) })
}

// Update runs f in a transaction. The transaction is durable when Update returns
// nil, in the file that is at the path then. It has no effect if f or the commit
// fails.
func (s *Store) Update(f func(*Tx) error) error {
	err := s.db.Update(func(btx *bbolt.Tx) error {
		return guard(func() error {
			tx := s.tx(btx, true)
			if err := f(tx); err != nil {
				return err
			}
			if err := tx.write(); err != nil {
				return err
			}
			return errors.Join(s.InPlace(), s.fault("commit"))
		})
	})
	if err != nil {
		return err
	}
	return s.InPlace() // again, because the file may have been moved during the commit
}

// guard converts a memory fault into an error. Such a fault occurs if the file is
// damaged or truncated while open, and would otherwise end the process.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v; if this comes again, the data file was damaged while it was open", p)
		}
	}()
	return f()
}

// Backup writes a complete copy of the current data file to a new file at path. The
// server may continue to write meanwhile.
func (s *Store) Backup(path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("backup to %s: %w", path, err), f.Close(), os.Remove(path))
		}
	}()
	err = s.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(f)
		return errors.Join(err, s.InPlace())
	})
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in the folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
