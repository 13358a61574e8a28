package conjur

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/length"
)

var bodyPart = length.Flag("body-part", 1, 8, "the longest answers are divided by it")

// stream is a body of n bytes, unless it breaks off before.
type stream struct {
	n   int
	end error
}

func (s *stream) Read(p []byte) (int, error) {
	if s.n == 0 {
		return 0, s.end
	}
	n := min(len(p), s.n)
	for i := range p[:n] {
		p[i] = 'x'
	}
	s.n -= n
	return n, nil
}

func TestReadBody(t *testing.T) {
	const limit = 3<<20 + 5
	for _, c := range []struct {
		length, declared int
		end, want        error
	}{
		{0, -1, io.EOF, nil}, {1, -1, io.EOF, nil}, {4 << 10, -1, io.EOF, nil}, {limit, -1, io.EOF, nil}, {limit, limit, io.EOF, nil}, {0, 0, io.EOF, nil},
		{limit + 1, -1, io.EOF, errTooLarge}, {0, limit + 1, io.EOF, errTooLarge}, {limit - 1, limit, io.EOF, io.ErrUnexpectedEOF},
		{100, -1, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF}, {100, 200, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
	} {
		body, err := readBody(&http.Response{Body: io.NopCloser(&stream{c.length, c.end}), ContentLength: int64(c.declared)}, limit)
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(body, bytes.Repeat([]byte{'x'}, c.length)) {
			t.Errorf("%d bytes, declared %d, ended by %v: %d bytes, %v", c.length, c.declared, c.end, len(body), err)
		}
	}
}

// What is allocated for an answer is a small multiple of what is read of one.
func TestAnswersAreNotMultiplied(t *testing.T) {
	body, listBody := maxBody/bodyPart(), maxListBody/bodyPart()
	small := "{" + strings.Repeat(`"k":"",`, body/7-2) + `"z":""}`
	list := "[" + strings.Repeat("{},", listBody/3-1) + "{}]"
	noted := `[{"annotations":[` + strings.Repeat("{},", listBody/3-20) + "{}]}]"
	for name, c := range map[string]struct {
		most   int
		decode func()
	}{
		"an answer without end": {maxBody + 2*segment, func() {
			_, _ = readBody(&http.Response{Body: io.NopCloser(&stream{1 << 40, io.EOF}), ContentLength: -1}, maxBody)
		}},
		"a batch of others":         {body + 2*segment, func() { _, _, _ = decodeBatch(jsonHeader(""), []byte(small), []string{"a"}, ofDev) }},
		"a list of more than asked": {2 * listBody, func() { _, _ = decodeList(jsonHeader(""), []byte(list), "", 1000) }},
		"a list of annotations":     {6 * listBody, func() { _, _ = decodeList(jsonHeader(""), []byte(noted), "", 1000) }},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c.decode()
			runtime.ReadMemStats(&after)
			if took := int(after.TotalAlloc - before.TotalAlloc); took > c.most {
				t.Errorf("%d KiB allocated, want %d at most", took>>10, c.most>>10)
			}
		})
	}
}

// TestBounds of answers, with and without a known length, and of what is kept of them.
func TestBounds(t *testing.T) {
	const limit = 3 * segment
	for less := -1; less <= 1; less++ {
		for _, length := range []int{-1, limit + less} {
			resp := &http.Response{Body: io.NopCloser(&stream{limit + less, io.EOF}), ContentLength: int64(length)}
			if body, err := readBody(resp, limit); (err == nil) != (less <= 0) || err == nil && len(body) != limit+less {
				t.Errorf("an answer of the bound%+d with the length %d: %d bytes, %v", less, length, len(body), err)
			}
		}
		if err := CheckID(strings.Repeat("a", longestID+less)); (err == nil) != (less <= 0) {
			t.Errorf("an id of the bound%+d: %v", less, err)
		}
		name := strings.Repeat("a", longestName+less)
		if _, user := decodeWhoami([]byte(`{"username":"` + name + `"}`)); user != name[:min(len(name), longestName)] {
			t.Errorf("of a name of the bound%+d, %d bytes are kept", less, len(user))
		}
	}
}
