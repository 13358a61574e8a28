package render

import (
	"bytes"
	"testing"
)

func TestBufferClearsWhatItOutgrows(t *testing.T) {
	w := &buffer{b: make([]byte, 0, 8)}
	w.writeText("secret")
	outgrown := w.b[:8]
	w.raw([]byte(" and more"))
	w.byte('!')
	if string(w.b) != "secret and more!" {
		t.Fatalf("the buffer holds %q", w.b)
	}
	if !bytes.Equal(outgrown, make([]byte, 8)) {
		t.Errorf("the outgrown array holds %q", outgrown)
	}
	last := w.b[:cap(w.b)]
	w.wipe()
	if w.b != nil || !bytes.Equal(last, make([]byte, len(last))) {
		t.Errorf("after wipe the array holds %q", last)
	}
}

func TestDecodedValuesAreCleared(t *testing.T) {
	target, items := target("directory", "k", "c2VjcmV0")
	target.Entries[0].ContentType = "base64"
	values, _, _ := decode(target.Format, target.Entries, items)
	decoded := values.entries[0].value
	if string(decoded) != "secret" {
		t.Fatalf("decoded %q", decoded)
	}
	values.wipe()
	if !bytes.Equal(decoded, make([]byte, 6)) {
		t.Errorf("after wipe there is %q", decoded)
	}
}
