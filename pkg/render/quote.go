package render

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted writes v in double quotes. It puts a backslash before quotes and
// backslashes, copies printable runes, and calls escape for all others. With
// escapeGo it matches strconv.Quote, which the Secrets Provider uses.
func (w *buffer) quoted(v []byte, escape func(w *buffer, r rune)) {
	w.byte('"')
	start := 0
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		if stays(r, size) {
			i += size
			continue
		}
		w.raw(v[start:i])
		if r == '"' || r == '\\' {
			w.byte('\\')
			w.byte(byte(r))
		} else {
			escape(w, r)
		}
		i += size
		start = i
	}
	w.raw(v[start:])
	w.byte('"')
}

// stays reports whether strconv.Quote leaves r, read from size bytes, unchanged.
func stays(r rune, size int) bool {
	if size == 1 {
		return ' ' <= r && r <= '~' && r != '"' && r != '\\'
	}
	return strconv.IsPrint(r)
}

// printable reports whether strconv.Quote would escape only quotes, backslashes and
// the characters in except.
func printable(v []byte, except string) bool {
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		if !stays(r, size) && r != '"' && r != '\\' && (size > 1 || bytes.IndexByte([]byte(except), v[i]) < 0) {
			return false
		}
		i += size
	}
	return true
}

// escapeGo writes the escapes of strconv.Quote. For valid UTF-8, \a, \v, \x, \u and
// \U mean the same in YAML.
func escapeGo(w *buffer, r rune) {
	switch {
	case '\a' <= r && r <= '\r':
		w.byte('\\')
		w.byte("abtnvfr"[r-'\a'])
	case r < utf8.RuneSelf:
		w.hex(`\x`, r, 2)
	case r <= 0xFFFF:
		w.hex(`\u`, r, 4)
	default:
		w.hex(`\U`, r, 8)
	}
}

// escapeJSON writes the escapes of strconv.Quote that JSON supports, and UTF-16
// numbers for all other runes.
func escapeJSON(w *buffer, r rune) {
	switch r {
	case '\b', '\t', '\n', '\f', '\r':
		escapeGo(w, r)
	default:
		w.utf16(r)
	}
}

// utf16 writes r as one \u escape, or as two beyond the basic plane.
func (w *buffer) utf16(r rune) {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		w.hex(`\u`, high, 4)
		r = low
	}
	w.hex(`\u`, r, 4)
}

// hex writes prefix and the last digits of r in lower case.
func (w *buffer) hex(prefix string, r rune, digits int) {
	w.writeText(prefix)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		w.byte("0123456789abcdef"[r>>shift&0xF])
	}
}
