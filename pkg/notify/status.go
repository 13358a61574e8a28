package notify

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/safefile"
)

// The sentinel files of the status folder. The names of ProvidedFile, UpdatedFile and
// AliveFile come from the Secrets Provider. All files except MissingFile and KeysSeenFile
// are empty.
const (
	// ProvidedFile appears after every target has been delivered once.
	ProvidedFile = "CONJUR_SECRETS_PROVIDED"
	// UpdatedFile appears, or gets a new timestamp, when something was written after
	// that.
	UpdatedFile = "CONJUR_SECRETS_UPDATED"
	// AliveFile is created again within about a second by a healthy process; a liveness
	// probe deletes it.
	AliveFile = "SECRETS_PROVIDER_ALIVE"
	// MissingFile lists, until ProvidedFile appears, the undelivered targets with
	// reasons: one line for each target, and no value.
	MissingFile = "CONJUR_SECRETS_MISSING"
	// RequestedFile is created by an application that wants missing content to be
	// restored. Syncer deletes it when it accepts the request.
	RequestedFile = "CONJUR_SECRETS_REQUESTED"
	// KeysSeenFile is written by an application to report the keys that it has, by set:
	// {"apps/shop/jwt":{"ids":["r1","r2"],"primary":"r2"}}.
	KeysSeenFile = "KEYS_SEEN"
)

// Status is the folder in which applications, probes and hooks look for the sentinel
// files. Its content survives a restart of the process.
type Status struct {
	folder
	lacking atomic.Bool // the scripts could not be installed

	mu      sync.Mutex
	updated time.Time // last timestamp of UpdatedFile
}

// NewStatus creates the folder if it is missing. Everybody may write to the folder,
// because the probe of an application that runs as another user deletes files in it.
func NewStatus(dir string) (*Status, error) {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o777); err == nil {
			err = os.Chmod(dir, 0o777) // regardless of the umask
		}
	}
	if err != nil {
		return nil, fmt.Errorf("status folder: %w; mount a volume there or choose another with --status-dir", err)
	}
	return OpenStatus(dir), nil
}

// OpenStatus returns the folder without changes, for readers outside Syncer.
func OpenStatus(dir string) *Status { return &Status{folder: folder(dir)} }

// ReadOnly reports whether the folder is on a read-only file system.
func (s *Status) ReadOnly() bool {
	return errors.Is(unix.Access(string(s.folder), unix.W_OK), unix.EROFS)
}

// Provided reports whether every target has been delivered once, by this process or an
// earlier one, since the machine started.
func (s *Status) Provided() (bool, error) {
	info, err := s.lstat(ProvidedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular() && s.boot() != anotherBoot, err
}

// bootFile contains the id of the machine's start to which the other files belong. A folder
// on a disk survives the next start, but files in memory do not, and all containers start
// anew.
const bootFile = ".boot"

// bootID returns the id of the machine's start; "" if the system has none.
var bootID = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
})

// boot is what bootFile says.
type boot int

const (
	thisBoot boot = iota
	noBoot        // the folder is new, or of an earlier version of Syncer
	anotherBoot
)

func (s *Status) boot() boot {
	text, err := s.readFile(bootFile)
	switch {
	case bootID() == "" || err == nil && string(text) == bootID():
		return thisBoot
	case errors.Is(err, fs.ErrNotExist):
		return noBoot
	}
	return anotherBoot
}

// enterBoot removes the sentinel files from before the machine started, and calls forget.
func (s *Status) enterBoot(forget func() error) error {
	var err error
	switch s.boot() {
	case thisBoot:
		return nil
	case anotherBoot:
		err = errors.Join(s.remove(ProvidedFile), s.remove(UpdatedFile), forget())
	}
	if err == nil {
		err = s.put(bootFile, note{text: []byte(bootID()), mode: 0o644})
	}
	if err != nil {
		return fmt.Errorf("files from before the machine started: %w", err)
	}
	return nil
}

// SetProvided creates ProvidedFile, and removes MissingFile.
func (s *Status) SetProvided() error {
	if err := s.put(ProvidedFile, sentinel); err != nil {
		return fmt.Errorf("sentinel file: %w", err)
	}
	_ = s.remove(MissingFile) // nobody reads it from now on
	return nil
}

// sentinel is an empty file. Everybody who may use the folder may delete it.
var sentinel = note{mode: 0o666}

// SetUpdated creates UpdatedFile, or gives it a new timestamp.
func (s *Status) SetUpdated() error {
	update := sentinel
	update.modified = s.nextUpdate()
	err := s.put(UpdatedFile, update)
	if errors.Is(err, fs.ErrPermission) && s.renew(UpdatedFile) == nil {
		return nil // the folder is sticky, and the file belongs to another user
	}
	if err != nil {
		return fmt.Errorf("sentinel file: %w", err)
	}
	return nil
}

// nextUpdate returns the timestamp of an update: now, but in a later second than the
// previous update, because some shells compare whole seconds.
func (s *Status) nextUpdate() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := time.Now()
	if next.Unix() <= s.updated.Unix() {
		next = time.Unix(s.updated.Unix()+1, 0)
	}
	s.updated = next
	return next
}

// Beat creates AliveFile if it is missing, and reports whether it did. The file is not
// synced to disk: a beat matters only while the machine runs.
func (s *Status) Beat() (given bool, err error) {
	if _, err := s.lstat(AliveFile); err == nil {
		return false, nil
	}
	if err := s.put(AliveFile, sentinel); err != nil {
		return false, fmt.Errorf("sentinel file: %w", err)
	}
	return true, nil
}

// KeysSeen returns the content of KeysSeenFile; nil without the file.
func (s *Status) KeysSeen() ([]byte, error) {
	text, err := s.readFile(KeysSeenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// TakeUpdated reports whether something was updated. It deletes UpdatedFile, so that each
// update is reported once.
func (s *Status) TakeUpdated() (bool, error) { return s.takeFile(UpdatedFile) }

// TakeBeat reports whether the heart has beaten since the last TakeBeat. It deletes
// AliveFile.
func (s *Status) TakeBeat() (bool, error) { return s.takeFile(AliveFile) }

// TakeRequested reports whether the application has requested missing content. It deletes
// RequestedFile, so that each request is accepted once.
func (s *Status) TakeRequested() (bool, error) { return s.takeFile(RequestedFile) }

// takeFile deletes a sentinel file. In a sticky folder, such as a volume in memory, nobody
// may delete another user's file. Then takeFile writes a mark as the current user. The
// mark has the file's timestamp and thus says which file was taken.
func (s *Status) takeFile(name string) (bool, error) {
	info, err := s.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = s.in(func(root *os.Root) error { return root.Remove(name) })
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist): // another process took it in the meantime
		return false, nil
	case !errors.Is(err, fs.ErrPermission) || !info.Mode().IsRegular():
		return false, err
	}
	mark := fmt.Sprintf(".%s-seen-by-%d", name, os.Geteuid()) // the same name as in the script
	if seen, err := s.lstat(mark); err == nil && !info.ModTime().After(seen.ModTime()) {
		return false, nil
	}
	if marked := s.put(mark, note{mode: 0o644, modified: info.ModTime()}); marked != nil {
		return false, errors.Join(err, marked)
	}
	return true, nil
}

// scripts are for probes and hooks in containers that have a shell. Their names come from
// the Secrets Provider.
//
//go:embed scripts/*.sh
var scripts embed.FS

// InstallScripts puts the scripts for probes and hooks into the status folder, where the
// application's container can run them. It does not rewrite a script that is already
// there with the same text.
func (s *Status) InstallScripts() error {
	err := s.installScripts()
	s.lacking.Store(err != nil)
	return err
}

func (s *Status) installScripts() error {
	// Remove the files that a killed process left. A file that stays does no harm.
	if temps, err := s.names(safefile.IsTempName); err == nil {
		for _, name := range temps {
			_ = s.remove(name)
		}
	}
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		text, err := scripts.ReadFile("scripts/" + entry.Name())
		if err == nil {
			err = s.install(entry.Name(), text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("script: %w", err))
		}
	}
	return errors.Join(errs...)
}

// install replaces a script atomically, because a probe may be running it.
func (s *Status) install(name string, text []byte) error {
	if there, err := s.readFile(name); err == nil && bytes.Equal(there, text) {
		return nil
	}
	return s.put(name, note{text: text, mode: 0o755})
}
