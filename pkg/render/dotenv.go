package render

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/targets"
)

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
