package render

import (
	"strings"
	"unicode/utf8"
)

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
