package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// TakeUpdated reports whether something was updated, and deletes UpdatedFile,
// so that one update is taken once.
func (s *Status) TakeUpdated() (bool, error) { return s.take(UpdatedFile) }

// TakeBeat reports whether the heart has beaten since the last TakeBeat, by
// deleting AliveFile.
func (s *Status) TakeBeat() (bool, error) { return s.take(AliveFile) }

// TakeRequested reports whether the application has asked for what is missing,
// and deletes RequestedFile, so that one request is taken up once.
func (s *Status) TakeRequested() (bool, error) { return s.take(RequestedFile) }

// take deletes a sentinel file. In a sticky folder, as a volume in memory is,
// nobody may delete another user's file: then a mark of the own user's, with
// the file's timestamp, says which one was taken.
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
	case errors.Is(err, fs.ErrNotExist): // taken by another meanwhile
		return false, nil
	case !errors.Is(err, fs.ErrPermission) || !info.Mode().IsRegular():
		return false, err
	}
	mark := fmt.Sprintf(".%s-seen-by-%d", name, os.Geteuid()) // as the script calls it
	if seen, err := s.lstat(mark); err == nil && !info.ModTime().After(seen.ModTime()) {
		return false, nil
	}
	if marked := s.put(mark, note{mode: 0o644, modified: info.ModTime()}); marked != nil {
		return false, errors.Join(err, marked)
	}
	return true, nil
}
