package render

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
