package render

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/targets"
)

// longestSimpleKey bounds the characters of a YAML key with its quotes. A longer
// key needs a question mark (YAML 1.2, section 7.4.2).
const longestSimpleKey = 1024

// writeYAML writes one line of a YAML mapping, in double quotes.
func writeYAML(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	start := len(w.b)
	w.quoted([]byte(e.alias), escapeGo)
	if len(w.b)-start > longestSimpleKey {
		w.b = w.b[:start]
		w.writeText("? ")
		w.quoted([]byte(e.alias), escapeGo)
		w.byte('\n')
	}
	w.writeText(": ")
	w.quoted(e.value, escapeGo)
	return ""
}

// writeJSON writes one member of a JSON object.
func writeJSON(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	w.quoted([]byte(e.alias), escapeJSON)
	w.byte(':')
	w.quoted(e.value, escapeJSON)
	return ""
}

// writeBash writes an assignment for any POSIX shell that sources the file. The
// Secrets Provider uses double quotes, in which a shell expands $ and ` and knows
// no escapes such as \n. A value with one of these gets single quotes, in which
// only the single quote is special.
func writeBash(w *buffer, e entry) fault {
	if bytes.IndexByte(e.value, 0) >= 0 {
		return hasNUL
	}
	w.writeText("export ")
	w.writeText(e.alias)
	w.byte('=')
	if printable(e.value, "") && !bytes.ContainsAny(e.value, "$`") {
		w.quoted(e.value, nil)
		return ""
	}
	w.byte('\'')
	for i, part := range bytes.Split(e.value, []byte("'")) {
		if i > 0 {
			w.writeText(`'\''`)
		}
		w.raw(part)
	}
	w.byte('\'')
	return ""
}

// Values that an env-file cannot hold. Versions of docker differ in whether they
// strip enclosing quotes, so no form of such a value is right for all versions.
const (
	hasLineBreak fault = "a line feed, or a carriage return at the end, cannot be written"
	isQuoted     fault = "it begins and ends with the same quote, which some versions of docker strip"
	isTooLong    fault = "with its alias it is longer than the 65535 bytes of a line"
)

// writeEnvFile writes a line for docker run --env-file. Everything after the equal
// sign is the value, and there are no escapes.
func writeEnvFile(w *buffer, e entry) fault {
	v := e.value
	switch {
	case bytes.IndexByte(v, 0) >= 0:
		return hasNUL
	case !utf8.Valid(v):
		return notText
	case bytes.IndexByte(v, '\n') >= 0, bytes.HasSuffix(v, []byte("\r")):
		return hasLineBreak
	case len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[0] == v[len(v)-1]:
		return isQuoted
	case len(e.alias)+1+len(v) >= bufio.MaxScanTokenSize:
		return isTooLong
	}
	w.writeText(e.alias)
	w.byte('=')
	w.raw(v)
	return ""
}

// Values that the kubelet does not read from a file as they are.
const (
	isEmpty        fault = "it is empty, which the kubelet treats as a missing variable"
	hasSingleQuote fault = "it has a single quote, which ends the value"
	hasCRLF        fault = "it has a carriage return before a line feed, which the kubelet drops"
	hasLongLine    fault = "with its alias and its quotes, a line of it is longer than 65535 bytes"
)

// writeKubernetesEnv writes a variable for the kubelet, which reads it for a Pod's
// valueFrom.fileKeyRef (k8s.io/kubernetes/pkg/kubelet/util/env). Everything between the
// single quotes is the value, and there are no escapes.
func writeKubernetesEnv(w *buffer, e entry) fault {
	v := e.value
	switch {
	case len(v) == 0:
		return isEmpty
	case bytes.IndexByte(v, 0) >= 0:
		return hasNUL
	case !utf8.Valid(v):
		return notText
	case bytes.IndexByte(v, '\'') >= 0:
		return hasSingleQuote
	case bytes.Contains(v, []byte("\r\n")):
		return hasCRLF
	}
	start := len(w.b)
	w.writeText(e.alias)
	w.byte('=')
	w.singleQuoted(v)
	for line := range bytes.SplitSeq(w.b[start:], []byte("\n")) {
		if len(line) >= bufio.MaxScanTokenSize {
			w.cut(start)
			return hasLongLine
		}
	}
	return ""
}

// writeProperties writes the Secrets Provider's format, in which
// java.util.Properties reads the quotes as part of the value. It replaces escapes
// that java.util.Properties does not support. Text beyond the basic plane is
// unchanged, because readers must use UTF-8 anyway.
func writeProperties(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	w.writeText(e.alias)
	w.byte('=')
	w.quoted(e.value, escapeProperties)
	return ""
}

func escapeProperties(w *buffer, r rune) {
	switch {
	case r == '\t' || r == '\n' || r == '\f' || r == '\r':
		escapeGo(w, r)
	case r <= 0xFFFF:
		w.hex(`\u`, r, 4)
	default:
		w.raw(utf8.AppendRune(nil, r))
	}
}

// writeJavaProperties writes a line in the format of java.util.Properties. It uses
// only ASCII, so that ISO 8859-1 and UTF-8 readers read the same text.
func writeJavaProperties(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	w.javaText([]byte(e.alias), " =:#!")
	w.byte('=')
	rest := e.value
	if len(rest) > 0 && rest[0] == ' ' {
		w.writeText(`\ `)
		rest = rest[1:]
	}
	w.javaText(rest, "")
	return ""
}

// javaText writes text. It puts a backslash before backslashes and the characters
// in special.
func (w *buffer) javaText(text []byte, special string) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		switch {
		case r < ' ' || r > '~':
			w.javaEscape(r)
			continue
		case r == '\\' || strings.ContainsRune(special, r):
			w.byte('\\')
		}
		w.byte(byte(r))
	}
}

func (w *buffer) javaEscape(r rune) {
	if r == '\t' || r == '\n' || r == '\f' || r == '\r' {
		escapeGo(w, r)
		return
	}
	w.utf16(r)
}

// writeDotenv writes a line that five readers read alike, if the value has such a
// form. They are godotenv, npm's dotenv, python-dotenv, a shell that sources the
// file, and systemd's EnvironmentFile.
//
//   - In single quotes only three things are special to any of them: the quote, a
//     carriage return, and a backslash at the end. python-dotenv also reads two
//     backslashes as one, and replaces ${NAME} in any quotes.
//   - In double quotes all of them accept a line feed unescaped. They agree on no
//     escape: npm's dotenv knows only \n and \r, and a shell only the others.
//
// Plain values get the Secrets Provider's double quotes. So do values with line feeds
// that need no escape, because phpdotenv refuses single quotes around several lines. A
// value without a common form gets one that godotenv reads. A shell may read a
// different value, but executes nothing and reads the following lines correctly.
// godotenv ends a value at the first quote without a preceding backslash, and drops
// adjacent quotes.
//
// If readers are named, the value gets the first of these forms that all of them read.
func writeDotenv(w *buffer, e entry, readers []string) fault {
	v := e.value
	if bytes.IndexByte(v, 0) >= 0 {
		return hasNUL
	}
	w.writeText(e.alias)
	w.byte('=')
	lines := bytes.IndexByte(v, '\n') >= 0 && !bytes.ContainsAny(v, "'\r")
	plain := (lines || printable(v, "")) && !bytes.ContainsAny(v, "\"\\$`")
	start, misread := len(w.b), false
	unable := readers // they misread each form
	for _, form := range []struct {
		fits  bool
		write func(v []byte)
	}{
		{plain, w.dotenvText},
		{!endsIn(v, `\`) && !bytes.ContainsAny(v, "'\r"), w.singleQuoted},
		{!plain && !endsIn(v, `"\`), w.dotenvText},
		{endsIn(v, `\`) && bare(v), w.bareLine},
	} {
		if !form.fits {
			continue
		}
		form.write(v)
		reads := func(r string) bool { return !targets.MisreadsDotenv(r, w.b[start:]) }
		if !slices.ContainsFunc(readers, func(r string) bool { return !reads(r) }) {
			return ""
		}
		unable = slices.DeleteFunc(slices.Clone(unable), reads)
		w.cut(start)
		misread = true
	}
	switch {
	case !misread:
		return "its quotes, backslashes and line breaks fit none of the forms that dotenv has"
	case len(unable) == 0:
		unable = readers
	}
	return "no form of it is read correctly by " + fault(strings.Join(unable, " and "))
}

func (w *buffer) singleQuoted(v []byte) {
	w.byte('\'')
	w.raw(v)
	w.byte('\'')
}

// bareLine adds a line feed, because a shell joins a line that ends in a backslash with
// the next.
func (w *buffer) bareLine(v []byte) {
	w.raw(v)
	w.byte('\n')
}

// dotenvText writes v in double quotes. It escapes the characters that are special
// to a shell there. To godotenv any $ after a backslash is special. If v contains a
// carriage return, line breaks are escaped, because some readers would read it as a
// line feed.
func (w *buffer) dotenvText(v []byte) {
	breaks := bytes.IndexByte(v, '\r') >= 0
	w.byte('"')
	for i, c := range v {
		switch {
		case breaks && (c == '\n' || c == '\r'):
			escapeGo(w, rune(c))
			continue
		case c == '"', c == '\\', c == '`', c == '$' && (expands(v[i+1:]) || endsIn(v[:i], `\`)):
			w.byte('\\')
		}
		w.byte(c)
	}
	w.byte('"')
}

func endsIn(v []byte, chars string) bool {
	return len(v) > 0 && bytes.IndexByte([]byte(chars), v[len(v)-1]) >= 0
}

// expands reports whether a shell expands a $ that precedes rest.
func expands(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	c := rest[0]
	return c >= utf8.RuneSelf || nameOf(string(rest[:1]), "", "") || strings.IndexByte("0123456789_({[?$!#*@-", c) >= 0
}

// bare reports whether v can be written without quotes. Apart from backslashes,
// nothing in it is special to a shell.
func bare(v []byte) bool {
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		i += size
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(" \"'`$&|;<>()*?[~!{}^", r) {
			return false
		}
	}
	return true
}
