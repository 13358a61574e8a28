package conjur

import (
	"bytes"
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
	// maxListBody is for a page of the list, some 400 bytes a variable and more
	// where many roles may do something with it.
	maxListBody = 8 << 20
	// maxNameBody is for what holds a token, some 600 bytes, or a name, and for who
	// may do what with one variable.
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
	case k == KindAuthenticate, k == KindLogin, k == KindWhoami, k == KindCheck, k == KindResource:
		return maxNameBody
	case k == KindList:
		return maxListBody
	}
	return maxBody
}

var errTooLarge = errors.New("the answer is longer than the limit")

// readBody reads an answer's body, at most limit bytes of it. When the length
// is known it makes no copies; else it makes one, of pieces that are no longer
// than segment, so that what is too large takes no more than the limit.
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
			case err == io.EOF: // not io.ErrUnexpectedEOF, which io.ReadFull makes of it
				pieces[len(pieces)-1] = piece[:n]
				return bytes.Join(pieces, nil), nil
			case err != nil:
				return nil, err
			}
		}
		size = min(2*size, segment)
	}
}

// segment is the longest piece that a body of unknown length is read in.
const segment = 1 << 20

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

// attach makes b the request's body. The transport announces the length 0 only of
// http.NoBody: any other body of that length is sent in chunks.
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
