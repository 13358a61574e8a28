package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// trip keeps the context of the request that it took.
type trip struct {
	ctx context.Context
	err error
}

func (r *trip) RoundTrip(req *http.Request) (*http.Response, error) {
	r.ctx = req.Context()
	return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, r.err
}

func send(t *testing.T, r *trip, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bounded{r, &term{}}.RoundTrip(req)
}

func TestARequestIsBoundedUntilItsBodyIsClosed(t *testing.T) {
	r := &trip{}
	resp, err := send(t, r, "https://k/api/v1/secrets?limit=500")
	if err != nil {
		t.Fatal(err)
	}
	if _, bounded := r.ctx.Deadline(); !bounded || r.ctx.Err() != nil {
		t.Errorf("a list has no time limit, or it is over before the body was read: %v", r.ctx.Err())
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if r.ctx.Err() == nil {
		t.Error("the timer outlives the request")
	}
}

func TestAFailedRequestLeavesNoTimer(t *testing.T) {
	r := &trip{err: errors.New("no route to host")}
	if _, err := send(t, r, "https://k/api/v1/secrets"); !errors.Is(err, r.err) {
		t.Errorf("error %v, want %v", err, r.err)
	}
	if r.ctx.Err() == nil {
		t.Error("the timer outlives the request")
	}
}

func TestAWatchIsNotBounded(t *testing.T) {
	r := &trip{}
	if _, err := send(t, r, "https://k/api/v1/secrets?allowWatchBookmarks=true&watch=true"); err != nil {
		t.Fatal(err)
	}
	if _, bounded := r.ctx.Deadline(); bounded {
		t.Error("a watch has a time limit")
	}
}
