package render

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writeDotenv writes a line that godotenv, npm's dotenv, python-dotenv, a shell
// that sources the file and systemd's EnvironmentFile read alike, wherever the
// value has such a form:
//
//   - Nothing is special to any of them in single quotes, but for the quote, a
//     carriage return, and a backslash at the end. python-dotenv also reads two
//     backslashes as one and replaces ${NAME}, which it does in any quotes.
//   - In double quotes a line feed is itself to all. They agree on no escape:
//     npm's dotenv knows \n and \r alone, and a shell just the others.
//
// Plain values have the Secrets Provider's double quotes. A value without a
// common form gets one that godotenv reads; a shell may read another value
// from it, but runs nothing and reads the lines that follow. godotenv takes
// the first quote without a backslash before it as the closing one, and drops
// further quotes beside it.
func writeDotenv(w *buffer, e entry) fault {
	v := e.value
	if bytes.IndexByte(v, 0) >= 0 {
		return hasNUL
	}
	w.text(e.alias)
	w.byte('=')
	switch {
	case printable(v, "") && !bytes.ContainsAny(v, "\"\\$`"):
		w.quoted(v, nil)
	case !endsIn(v, `\`) && !bytes.ContainsAny(v, "'\r"):
		w.byte('\'')
		w.raw(v)
		w.byte('\'')
	case !endsIn(v, `"\`):
		w.dotenvText(v)
	case bare(v):
		w.raw(v)
		w.byte('\n') // for a shell the backslash at the end takes a line feed away
	default:
		return fault{"its quotes, backslashes and line breaks fit none of the forms that dotenv has", "use format bash, json or directory"}
	}
	return fault{}
}

// dotenvText writes v in double quotes, with a backslash before what is special
// to a shell there; to godotenv any $ after a backslash is. Line breaks are escapes if there is a carriage return, which
// some readers would take for a line feed.
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

// expands reports whether a shell expands a $ that rest follows.
func expands(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	c := rest[0]
	return c >= utf8.RuneSelf || nameOf(string(rest[:1]), "", "") || strings.IndexByte("0123456789_({[?$!#*@-", c) >= 0
}

// bare reports whether v can stand without quotes: it has nothing that is
// special to a shell but backslashes.
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
