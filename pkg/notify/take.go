package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// TakeUpdated reports whether something was updated. It deletes UpdatedFile, so that each
// update is reported once.
func (s *Status) TakeUpdated() (bool, error) { return s.take(UpdatedFile) }

// TakeBeat reports whether the heart has beaten since the last TakeBeat. It deletes
// AliveFile.
func (s *Status) TakeBeat() (bool, error) { return s.take(AliveFile) }

// TakeRequested reports whether the application has requested missing content. It deletes
// RequestedFile, so that each request is accepted once.
func (s *Status) TakeRequested() (bool, error) { return s.take(RequestedFile) }

// take deletes a sentinel file. In a sticky folder, such as a volume in memory, nobody
// may delete another user's file. Then take writes a mark as the current user. The mark
// has the file's timestamp and thus says which file was taken.
func (s *Status) take(name string) (bool, error) {
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
