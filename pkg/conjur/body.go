package conjur

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/secretsync/syncer/pkg/secret"
)

// The longest bodies that are read.
const (
	// maxBody is for values: the longest that the genuine server was seen to take
	// is 16 MiB, which is some 23 MiB in base64 with line breaks.
	maxBody = 24 << 20
	// maxListBody is for a page of the list, some 400 bytes a variable, and for
	// what is said about one variable: both name all roles that may do something.
	maxListBody = 8 << 20
	// maxNameBody is for what holds a token, some 600 bytes, or a name.
	maxNameBody = 1 << 20
	// maxErrorBody is for an answer that is not 200: Conjur's own are a few
	// hundred bytes.
	maxErrorBody = 64 << 10
)

// longest returns how much of an answer is read.
func (k Kind) longest(status int) int64 {
	switch {
	case status != http.StatusOK:
		return maxErrorBody
	case k == KindAuthenticate, k == KindLogin, k == KindWhoami, k == KindCheck:
		return maxNameBody
	case k == KindList, k == KindResource:
		return maxListBody
	}
	return maxBody
}

var errTooLarge = errors.New("the answer is longer than the limit")

// readBody reads an answer's body, at most limit bytes of it. When the length
// is known, it makes no copies that would have to be wiped.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, errTooLarge
	}
	size := resp.ContentLength
	if size < 0 {
		size = 4 << 10
	}
	buf := make([]byte, 0, size+1) // one more, to see the end
	for {
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			clear(buf)
			return nil, err
		case int64(len(buf)) > limit:
			clear(buf)
			return nil, errTooLarge
		case len(buf) == cap(buf):
			grown := make([]byte, len(buf), min(2*int64(cap(buf)), limit+1))
			copy(grown, buf)
			clear(buf)
			buf = grown
		}
	}
}

// credentialBody is a request's body that can be wiped although the transport
// may still be reading it, which it may do after it has handed out the answer.
type credentialBody struct {
	mu    sync.Mutex
	value secret.Value
}

func (b *credentialBody) wipe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value.Wipe()
}

// attach makes b the request's body.
func (b *credentialBody) attach(req *http.Request) {
	req.ContentLength = int64(b.value.Len())
	req.Body = &credentialReader{body: b}
	req.GetBody = func() (io.ReadCloser, error) { return &credentialReader{body: b}, nil }
}

type credentialReader struct {
	body *credentialBody
	read int
}

func (r *credentialReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	b := r.body.value.Bytes()
	if r.read >= len(b) {
		return 0, io.EOF
	}
	n := copy(p, b[r.read:])
	r.read += n
	return n, nil
}

func (*credentialReader) Close() error { return nil }
