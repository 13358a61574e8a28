package definitions

import (
	"fmt"
	"path/filepath"
	"strings"
)

const (
	maxFileName = 255 // bytes of one path segment, the limit of Linux file systems

	// reservedPrefix is the prefix of Syncer's own files next to a target.
	reservedPrefix = ".syncer-"
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
		if len(segment) > maxFileName {
			return "", fmt.Errorf("the name %.300q is longer than %d bytes", segment, maxFileName)
		}
		if strings.HasPrefix(segment, reservedPrefix) {
			return "", fmt.Errorf("the name %.300q begins with %s, which is reserved for Syncer's own files", segment, reservedPrefix)
		}
	}
	return rel, nil
}
