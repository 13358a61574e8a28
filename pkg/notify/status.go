package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// The sentinel files of the status folder, all but the last by the names that
// the Secrets Provider gave them. They are empty.
const (
	// ProvidedFile appears when every target has been delivered once.
	ProvidedFile = "CONJUR_SECRETS_PROVIDED"
	// UpdatedFile appears, or gets a new timestamp, when something was
	// written after that.
	UpdatedFile = "CONJUR_SECRETS_UPDATED"
	// AliveFile is created anew each second by a process that is well; a
	// liveness probe deletes it.
	AliveFile = "SECRETS_PROVIDER_ALIVE"
	// RequestedFile is created by an application that wants what is missing
	// to be there again; it is deleted when the request is taken up.
	RequestedFile = "CONJUR_SECRETS_REQUESTED"
)

// Status is the folder where applications, probes and hooks look for the
// sentinel files. What is in it survives a restart of the process.
type Status struct {
	dir     string
	lacking atomic.Bool // the scripts could not be installed
}

// NewStatus makes the folder if it is missing. It is open to all, as the
// probe of an application running as another user deletes files in it.
func NewStatus(dir string) (*Status, error) {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o777); err == nil {
			err = os.Chmod(dir, 0o777) // whatever the umask
		}
	}
	if err != nil {
		return nil, fmt.Errorf("status folder: %w; mount a volume there or choose another with --status-dir", err)
	}
	return &Status{dir: dir}, nil
}

// OpenStatus is the folder as it is, for those who look at it from outside.
func OpenStatus(dir string) *Status { return &Status{dir: dir} }

// TakeUpdated tells whether something was updated, and deletes UpdatedFile, so
// that one update is taken once.
func (s *Status) TakeUpdated() (bool, error) { return s.take(UpdatedFile) }

// TakeBeat tells whether the heart has beaten since the last TakeBeat, by
// deleting AliveFile.
func (s *Status) TakeBeat() (bool, error) { return s.take(AliveFile) }

// TakeRequested tells whether the application has asked for what is missing,
// and deletes RequestedFile, so that one request is taken up once.
func (s *Status) TakeRequested() (bool, error) { return s.take(RequestedFile) }

func (s *Status) take(name string) (bool, error) {
	path := filepath.Join(s.dir, name)
	err := os.Remove(path)
	if err == nil {
		return true, nil
	}
	// A read-only folder refuses also to delete what is not there.
	if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
		return false, nil
	}
	return false, err
}

// Provided tells whether every target has been delivered once, by this
// process or an earlier one.
func (s *Status) Provided() (bool, error) {
	_, err := os.Stat(filepath.Join(s.dir, ProvidedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SetProvided creates ProvidedFile.
func (s *Status) SetProvided() error { return s.touch(ProvidedFile) }

// SetUpdated creates UpdatedFile, or gives it a new timestamp.
func (s *Status) SetUpdated() error { return s.touch(UpdatedFile) }

// Beat creates AliveFile if it is missing. It is not made durable: a beat
// matters only while the machine is up.
func (s *Status) Beat() error {
	name := filepath.Join(s.dir, AliveFile)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return s.touch(AliveFile)
}

func (s *Status) touch(name string) error {
	// Truncating gives a new timestamp to another user's file too, which
	// setting the time would not.
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("sentinel file: %w", err)
	}
	// Whoever may use the folder may delete the file: no umask here either.
	// That fails for another user's file, which then is as open as it was.
	_ = f.Chmod(0o666)
	if err := f.Close(); err != nil {
		return fmt.Errorf("sentinel file: %w", err)
	}
	return nil
}
