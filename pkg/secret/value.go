// Package secret holds values that must never be shown: bytes behind a func, which
// no formatting verb, encoder or logger can inspect.
package secret

import (
	"bytes"
	"fmt"
	"io"
)

// redacted is the printed form of every Value.
const redacted = "[secret]"

// Value is a secret's bytes. A closure holds them: fmt, encoding/json and zap print
// a func field at most as an address. This also applies if the Value is in an
// unexported field that reflection prints.
//
// The zero Value is empty. Copies of a Value share the bytes, so a Wipe of one
// wipes all.
type Value struct{ buf func() *[]byte }

// New returns a Value that owns b. The caller must not use b afterwards.
func New(b []byte) Value {
	p := &b
	return Value{buf: func() *[]byte { return p }}
}

// Bytes returns the bytes themselves, not a copy. It returns nil after Wipe and for
// the zero Value. The caller must not modify or retain them.
func (v Value) Bytes() []byte {
	if v.buf == nil {
		return nil
	}
	return *v.buf()
}

// Len returns the number of bytes.
func (v Value) Len() int { return len(v.Bytes()) }

// Equal reports whether both hold the same bytes.
func (v Value) Equal(w Value) bool { return bytes.Equal(v.Bytes(), w.Bytes()) }

// Wipe overwrites the bytes with zeros and releases them. It may be called more
// than once, but not while another goroutine reads the Value.
func (v Value) Wipe() {
	if v.buf == nil {
		return
	}
	p := v.buf()
	clear((*p)[:cap(*p)])
	*p = nil
}

// Wipe wipes all values of a map.
func Wipe(values map[string]Value) {
	for _, v := range values {
		v.Wipe()
	}
}

// String returns the same text for every Value.
func (v Value) String() string { return redacted }

// Format prints the same text for every Value, verb and flag.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText returns the same text for every Value. JSON, YAML and zap's
// reflection use it too.
func (v Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }
