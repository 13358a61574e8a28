package targets

import (
	"fmt"
	"path/filepath"
	"strings"
)

const (
	maxFileName = 255 // bytes of one path segment, the limit of Linux file systems

	// reservedPrefix begins the names of the files beside a target that are
	// Syncer's own.
	reservedPrefix = ".syncer-"
)

// FilePath makes the Path of a File from what an operator wrote: relative to
// the folder base, clean, and never outside it. When text is empty or ends in
// a slash, the file is called name. The test is one of whole path segments:
// with the base /conjur/secrets, ../secrets-other/x leaves it.
func FilePath(base, text, name string) (string, error) {
	switch {
	case filepath.IsAbs(text):
		return "", fmt.Errorf("%.300q is absolute; write it relative to %s", text, base)
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("%.300q contains a NUL byte", text)
	}
	full := text
	if text == "" || strings.HasSuffix(text, "/") {
		full += name
	}
	rel, err := filepath.Rel(base, filepath.Join(base, full))
	switch {
	case err != nil || rel == ".." || strings.HasPrefix(rel, "../"):
		return "", fmt.Errorf("%.300q leaves the folder %s", full, base)
	case rel == ".":
		return "", fmt.Errorf("%.300q is the folder %s itself; name a file in it", full, base)
	}
	for segment := range strings.SplitSeq(rel, "/") {
		if len(segment) > maxFileName {
			return "", fmt.Errorf("the name %.300q is longer than %d bytes", segment, maxFileName)
		}
		if strings.HasPrefix(segment, reservedPrefix) {
			return "", fmt.Errorf("the name %.300q begins with %s, which is reserved for Syncer's own files", segment, reservedPrefix)
		}
	}
	return rel, nil
}

// PathConflict is a group whose file cannot be written beside another's.
type PathConflict struct {
	Group string
	Err   error // names both groups
}

// PathConflicts finds the targets that get in each other's way: two with one
// path, or one below another, which is either a file or a folder of its own.
func PathConflicts(ts []*Target) []PathConflict {
	var conflicts []PathConflict
	owner := map[string]string{} // path → group
	for _, t := range ts {
		if first, ok := owner[t.File.Path]; ok {
			conflicts = append(conflicts, PathConflict{t.Group, fmt.Errorf("the groups %q and %q have the same path %q; give one of them another", first, t.Group, t.File.Path)})
			continue
		}
		owner[t.File.Path] = t.Group
	}
	for _, t := range ts {
		for dir := filepath.Dir(t.File.Path); dir != "."; dir = filepath.Dir(dir) {
			if other, ok := owner[dir]; ok {
				conflicts = append(conflicts, PathConflict{t.Group, fmt.Errorf("%.300q of the group %q is below %q, where the group %q has its own file or folder", t.File.Path, t.Group, dir, other)})
			}
		}
	}
	return conflicts
}
