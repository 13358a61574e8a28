package render

import (
	"bytes"
)

// writeBash writes an assignment for any POSIX shell that sources the file. In
// double quotes, the Secrets Provider's form, a shell expands $ and ` and knows
// no escapes such as \n; a value with one of these is put in single quotes,
// within which nothing is special but the single quote.
func writeBash(w *buffer, e entry) fault {
	if bytes.IndexByte(e.value, 0) >= 0 {
		return hasNUL
	}
	w.text("export ")
	w.text(e.alias)
	w.byte('=')
	if printable(e.value, "") && !bytes.ContainsAny(e.value, "$`") {
		w.quoted(e.value, nil)
		return fault{}
	}
	w.byte('\'')
	for i, part := range bytes.Split(e.value, []byte("'")) {
		if i > 0 {
			w.text(`'\''`)
		}
		w.raw(part)
	}
	w.byte('\'')
	return fault{}
}
