// Package secret holds the values that must never be seen: bytes behind a
// func, which no formatting verb, encoder or logger can look into.
package secret

import (
	"bytes"
	"fmt"
	"io"
)

// redacted is what every printed form of a Value shows.
const redacted = "[secret]"

// Value is a secret's bytes. It keeps them in a closure: fmt, encoding/json
// and zap print a func field at most as an address, also when the Value sits
// in an unexported field of something that is printed with reflection.
//
// The zero Value holds nothing. Copies of a Value share the bytes, so a Wipe
// of one wipes all.
type Value struct{ buf func() *[]byte }

// New makes a Value that owns b: the caller must not use b any more.
func New(b []byte) Value {
	p := &b
	return Value{buf: func() *[]byte { return p }}
}

// Bytes returns the bytes themselves, not a copy; nil after Wipe and for the
// zero Value. The caller must neither change them nor keep them.
func (v Value) Bytes() []byte {
	if v.buf == nil {
		return nil
	}
	return *v.buf()
}

// Len is the number of bytes held.
func (v Value) Len() int { return len(v.Bytes()) }

// Equal reports whether both hold the same bytes.
func (v Value) Equal(w Value) bool { return bytes.Equal(v.Bytes(), w.Bytes()) }

// Wipe overwrites the bytes with zeros and lets go of them. It may be called
// more than once, but not while another goroutine reads the Value.
func (v Value) Wipe() {
	if v.buf == nil {
		return
	}
	p := v.buf()
	clear((*p)[:cap(*p)])
	*p = nil
}

// String is the same text for every Value.
func (v Value) String() string { return redacted }

// Format prints the same text for every Value, verb and flag.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText, which JSON, YAML and zap's reflection use too, returns the same
// text for every Value.
func (v Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }
