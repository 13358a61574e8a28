package definitions

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// FilePath makes the Path of a File from an operator's text. The Path is relative to the
// folder base, clean, and never outside it. If text is empty or ends in a slash, the file
// is called name. The check compares whole path segments: with the base /conjur/secrets,
// ../secrets-other/x is outside.
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
		if len(segment) > targets.MaxFileName {
			return "", fmt.Errorf("the name %.300q is longer than %d bytes", segment, targets.MaxFileName)
		}
		if strings.HasPrefix(segment, safefile.TempPrefix) {
			return "", fmt.Errorf("the name %.300q begins with %s, which is reserved for Syncer's own files", segment, safefile.TempPrefix)
		}
	}
	return rel, nil
}

// DefaultFileMode is the mode of a file whose group sets none.
const DefaultFileMode fs.FileMode = 0o644

const (
	permissionLetters = "rwxrwxrwx"
	ownerReadWrite    = 0o600
)

// ParsePermissions reads a file mode in the format of ls, "rw-r--r--", with or without
// the leading "-" of a regular file. The owner must have read and write permission.
func ParsePermissions(text string) (fs.FileMode, error) {
	letters := text
	if len(letters) == len(permissionLetters)+1 {
		letters = strings.TrimPrefix(letters, "-")
	}
	mode, ok := modeOf(letters)
	if !ok {
		return 0, fmt.Errorf("%.200q is not a file mode; write it like rw-r--r--%s", text, hint(text))
	}
	if mode&ownerReadWrite != ownerReadWrite {
		return 0, fmt.Errorf("%.200q must let the owner read and write; begin it with rw", text)
	}
	return mode, nil
}

// parseMode reads a file mode in the octal format of chmod: "0440". Its owner must have
// read permission.
func parseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 32)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.200q is not octal; write it like 0440", text)
	case n > 0o777:
		return 0, fmt.Errorf("%.200q has more than the permission bits; take set-uid, set-gid and sticky bits out, as in 0440", text)
	case n&0o400 == 0:
		return 0, fmt.Errorf("%.200q must let the owner read; begin it with 04", text)
	}
	return fs.FileMode(n), nil
}

func modeOf(letters string) (fs.FileMode, bool) {
	if len(letters) != len(permissionLetters) {
		return 0, false
	}
	var mode fs.FileMode
	for i := range len(letters) {
		mode <<= 1
		switch letters[i] {
		case permissionLetters[i]:
			mode |= 1
		case '-':
		default:
			return 0, false
		}
	}
	return mode, true
}

// hint spells an octal mode in letters.
func hint(text string) string {
	n, err := strconv.ParseUint(text, 8, 16)
	if err != nil || n > 0o777 {
		return ""
	}
	return fmt.Sprintf(" (octal %s is %s)", text, fs.FileMode(n).String()[1:])
}
