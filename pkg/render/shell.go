package render

import (
	"bytes"
)

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
