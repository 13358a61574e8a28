package render

import (
	"bytes"
	"unicode/utf8"
)

// writeDotenv writes a line as github.com/joho/godotenv reads it. That reader
// has no grammar but a few rules: a closing quote is the first one without a
// backslash before it, and further quotes beside it are dropped; in double
// quotes \n and \r are escapes, a backslash before another character goes
// away, and $NAME is replaced; in single quotes nothing is special; without
// quotes the line is trimmed, cut at a comment, and $NAME is replaced.
//
// The Secrets Provider's form comes first, then the one that other readers are
// most likely to understand too.
func writeDotenv(w *buffer, e entry) fault {
	v := e.value
	if bytes.IndexByte(v, 0) >= 0 {
		return hasNUL
	}
	w.text(e.alias)
	w.byte('=')
	open := !endsIn(v, `"\`) // a closing double quote can follow
	switch {
	case open && printable(v, "\n\r") && !expands(v):
		w.quoted(v, escapeGo)
	case !endsIn(v, `\`) && !bytes.ContainsAny(v, "'\r"):
		w.byte('\'')
		w.raw(v)
		w.byte('\'')
	case open:
		w.byte('"')
		w.dotenvText(v, `"\$`)
		w.byte('"')
	case bare(v):
		w.dotenvText(v, "$")
	default:
		return fault{"its quotes, backslashes and line breaks fit none of the forms that dotenv has", "use format bash, json or directory"}
	}
	return fault{}
}

// dotenvText writes v with escapes for line breaks and for special.
func (w *buffer) dotenvText(v []byte, special string) {
	for _, c := range v {
		switch {
		case c == '\n' || c == '\r':
			escapeGo(w, rune(c))
			continue
		case bytes.IndexByte([]byte(special), c) >= 0:
			w.byte('\\')
		}
		w.byte(c)
	}
}

func endsIn(v []byte, chars string) bool {
	return len(v) > 0 && bytes.IndexByte([]byte(chars), v[len(v)-1]) >= 0
}

// expands tells whether v has a $ that is taken for a variable, or that loses
// the backslash before it.
func expands(v []byte) bool {
	for i, c := range v {
		if c != '$' {
			continue
		}
		if i > 0 && v[i-1] == '\\' {
			return true
		}
		rest := bytes.TrimPrefix(v[i+1:], []byte("("))
		rest = bytes.TrimPrefix(rest, []byte("{"))
		if len(rest) > 0 && (rest[0] == '_' || '0' <= rest[0] && rest[0] <= '9' || 'A' <= rest[0] && rest[0] <= 'Z') {
			return true
		}
	}
	return false
}

// bare tells whether v can stand without quotes.
func bare(v []byte) bool {
	if !utf8.Valid(v) || bytes.ContainsAny(v, "\n\r") || v[0] == '"' || v[0] == '\'' {
		return false
	}
	if len(bytes.TrimFunc(v, dotenvSpace)) != len(v) {
		return false
	}
	space := false
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		if r == '#' && space {
			return false
		}
		space = dotenvSpace(r)
		i += size
	}
	return true
}

func dotenvSpace(r rune) bool {
	switch r {
	case '\t', '\v', '\f', '\r', ' ', 0x85, 0xA0:
		return true
	}
	return false
}
