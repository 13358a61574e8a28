package kube

import (
	"context"
	"io"
	"net/http"
)

// bounded sets a time limit on each request except watches, and allows writes only during
// the term. The limit of the whole http.Client would end watches too.
type bounded struct {
	next http.RoundTripper
	term *term
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "" {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	release, err := b.term.bind(r, cancel)
	end := func() { release(); cancel() }
	if err != nil {
		end()
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, end}
	return resp, nil
}

// WrappedRoundTripper gives the client library access to the inner transport, to close
// idle connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// boundedBody ends its request's time limit when it is closed.
type boundedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
