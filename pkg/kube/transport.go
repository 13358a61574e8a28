package kube

import (
	"context"
	"io"
	"net/http"
)

// bounded sets each request but the watches a time limit. That of the whole
// http.Client would end watches too.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "" {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, cancel}
	return resp, nil
}

// WrappedRoundTripper lets the client library reach the transport below, to
// close idle connections.
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
