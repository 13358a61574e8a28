// Package cloudtest simulates, on loopback, the services of AWS, Azure and Google
// Cloud that a login needs. These are their metadata services, AWS's Security Token
// Service, and the issuers of identity tokens. It is for tests.
package cloudtest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// Service is an HTTP service on loopback that ends with the test.
type Service struct {
	URL   string           // without a trailing slash
	Usual http.HandlerFunc // the default handler

	mu   sync.Mutex
	now  http.HandlerFunc
	seen []Request
}

// Request is one request that a Service received.
type Request struct {
	Host   string
	URL    *url.URL
	Header http.Header
}

// NewService starts a service.
func NewService(t testing.TB, answer http.HandlerFunc) *Service {
	s := &Service{Usual: answer, now: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, Request{Host: r.Host, URL: r.URL, Header: r.Header})
		now := s.now
		s.mu.Unlock()
		now(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Answer replaces the handler for later requests. nil restores the default handler.
func (s *Service) Answer(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now = h; h == nil {
		s.now = s.Usual
	}
}

// Log returns the requests since the last call of Log.
func (s *Service) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}
