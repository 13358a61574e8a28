package render

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// buffer accumulates bytes of secrets. Unlike bytes.Buffer it clears the arrays
// that it outgrows.
type buffer struct{ b []byte }

// room ensures that n more bytes fit.
func (w *buffer) room(n int) {
	if cap(w.b)-len(w.b) >= n {
		return
	}
	grown := make([]byte, len(w.b), 2*cap(w.b)+n)
	copy(grown, w.b)
	w.wipe()
	w.b = grown
}

func (w *buffer) byte(c byte) {
	w.room(1)
	w.b = append(w.b, c)
}

func (w *buffer) raw(p []byte) {
	w.room(len(p))
	w.b = append(w.b, p...)
}

func (w *buffer) writeText(s string) {
	w.room(len(s))
	w.b = append(w.b, s...)
}

// cut clears and removes the bytes from start on.
func (w *buffer) cut(start int) {
	clear(w.b[start:])
	w.b = w.b[:start]
}

// wipe clears and releases the bytes.
func (w *buffer) wipe() {
	clear(w.b[:cap(w.b)])
	w.b = nil
}

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
