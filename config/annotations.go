package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/internal/brief"
)

// domain is the prefix of the keys of Syncer's annotations.
const domain = "conjur.org/"

// maxMalformed is the number of unreadable lines that are reported one by one. A file
// with more is probably not an annotations file.
const maxMalformed = 100

// annotation is one line of the annotations file.
type annotation struct {
	value string
	line  int
	bad   bool // the value could not be read, and this was already reported
}

// readAnnotations reads a file. A missing file means no annotations.
func readAnnotations(file File, r *report) map[string]annotation {
	switch {
	case errors.Is(file.Err, fs.ErrNotExist):
		return nil
	case file.Err != nil:
		r.fail(file.Name, "the annotations cannot be read: %v", file.Err)
		return nil
	}
	return parseAnnotations(file.Name, file.Text, r)
}

// IgnoresAnnotations reports whether the configuration file is that of a standalone, and
// nobody named the annotations. Such a process serves other Pods, so annotations that lie
// on the machine do not count.
func (s Sources) IgnoresAnnotations() bool {
	if s.AnnotationsNamed || s.ConfigFile.Name == "" || errors.Is(s.Annotations.Err, fs.ErrNotExist) {
		return false
	}
	l := newLoader(s)
	l.addFile(s.ConfigFile, &l.report)
	l.addEnvironment(l.src.Getenv, &l.report)
	return l.process["containerMode"].text == string(ModeStandalone)
}

// ignoreAnnotations warns of settings that have no effect.
func (l *loader) ignoreAnnotations() {
	if bytes.Contains(l.src.Annotations.Text, []byte(domain)) {
		l.warn(l.src.Annotations.Name, "ignored, because a standalone has a configuration file; name the annotations with --annotations to use them")
	}
}

// parseAnnotations reads the format that the Downward API writes for
// metadata.annotations. Each line is key=value, of any length, with the value quoted as
// in Go. name is the file's name, for the report. If two lines have the same key, the
// later one counts.
func parseAnnotations(name string, data []byte, r *report) map[string]annotation {
	annotations := map[string]annotation{}
	line, malformed := 0, 0
	for text := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) { // a byte order mark
		line++
		key, value, err := parseAnnotation(string(text))
		if err != nil {
			if malformed++; malformed <= maxMalformed {
				r.fail(fmt.Sprintf("%s:%d", name, line), "%v", err)
			}
		}
		if key == "" {
			continue
		}
		if first, ok := annotations[key]; ok && strings.HasPrefix(key, domain) {
			r.warn(key, "written on line %d and again on line %d; the last one takes effect", first.line, line)
		}
		annotations[key] = annotation{value, line, err != nil}
	}
	if more := malformed - maxMalformed; more > 0 {
		r.fail(name, "%s cannot be read; is this a file of annotations?", brief.Count(more, "more line"))
	}
	return annotations
}

// parseAnnotation returns the key if it can be read, even with an error. The error
// contains only Syncer's own keys. If the file is not an annotations file, any other text
// may be part of a secret.
func parseAnnotation(line string) (key, value string, err error) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	key, quoted, ok := strings.Cut(line, "=")
	switch {
	case strings.TrimSpace(line) == "":
		return "", "", errors.New("the line is empty; write key=\"value\" or remove it")
	case !ok || key == "":
		return "", "", errors.New("the line is not of the form key=\"value\"")
	}
	value, err = strconv.Unquote(quoted)
	switch {
	case err == nil:
		return key, value, nil
	case strings.HasPrefix(key, domain):
		return key, "", fmt.Errorf("the value of %.200q is not in quotes, or has text before or after them; write key=\"value\"", key)
	}
	return key, "", errors.New("the value is not in quotes, or has text before or after them; write key=\"value\"")
}
