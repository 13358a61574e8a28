package conjur

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/secretsync/syncer/pkg/secret"
)

// Limits of bodies, in bytes.
const (
	// maxBody is for values. The longest value that the genuine server was seen to
	// accept is 16 MiB. In base64 with line breaks that is about 23 MiB.
	maxBody = 24 << 20
	// maxListBody is for a page of the list. A variable takes about 400 bytes, and
	// more if many roles have privileges on it.
	maxListBody = 8 << 20
	// maxNameBody is for a token, which takes about 600 bytes, for a name, and for
	// the permissions on one variable.
	maxNameBody = 1 << 20
	// maxErrorBody is for answers other than 200 and 201. Conjur's own take a few hundred
	// bytes.
	maxErrorBody = 64 << 10
)

// longest returns the maximum length of an answer's body.
func (k Kind) longest(status int) int64 {
	switch {
	case status != http.StatusOK && status != http.StatusCreated:
		return maxErrorBody
	case k == KindAuthenticate, k == KindLogin, k == KindWhoami, k == KindCheck, k == KindResource:
		return maxNameBody
	case k == KindList:
		return maxListBody
	}
	return maxBody
}

var errTooLarge = errors.New("the answer is longer than the limit")

// readBody reads at most limit bytes of an answer's body. If the length is known,
// it makes no copies. Otherwise it copies once, from pieces of at most segment
// bytes. Therefore an oversized body takes no more memory than the limit.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, errTooLarge
	}
	if resp.ContentLength >= 0 {
		body := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(resp.Body, body); err != nil {
			clear(body)
			return nil, err
		}
		return body, nil
	}
	var pieces [][]byte
	defer func() {
		for _, p := range pieces {
			clear(p)
		}
	}()
	size, total := 4<<10, int64(0)
	for {
		piece, n := make([]byte, size), 0
		pieces = append(pieces, piece)
		for n < size {
			m, err := resp.Body.Read(piece[n:])
			n, total = n+m, total+int64(m)
			switch {
			case total > limit:
				return nil, errTooLarge
			case err == io.EOF: // not io.ErrUnexpectedEOF, which io.ReadFull would return
				pieces[len(pieces)-1] = piece[:n]
				return bytes.Join(pieces, nil), nil
			case err != nil:
				return nil, err
			}
		}
		size = min(2*size, segment)
	}
}

// segment bounds the pieces in which a body of unknown length is read.
const segment = 1 << 20

// credentialBody is a request body that can be wiped while the transport may still
// read it. The transport may do so even after it returned the answer.
type credentialBody struct {
	mu    sync.Mutex
	value secret.Value
}

func (b *credentialBody) wipe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value.Wipe()
}

// attach makes b the request's body. The transport sends a Content-Length of 0 only
// for http.NoBody. It sends any other empty body in chunks.
func (b *credentialBody) attach(req *http.Request) {
	if b.value.Len() == 0 {
		req.Body = http.NoBody
		return
	}
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
