package conjurdtest

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Middleware runs before the server. It may answer a request, delay it, or change
// it.
type Middleware func(http.Handler) http.Handler

// switchboard holds the current middleware; nil means none.
type switchboard struct{ current atomic.Pointer[Middleware] }

// wrap ends the contexts of requests when the server's context ends, so that a
// waiting fault does not delay the end of a test.
func (b *switchboard) wrap(server context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := next
		if m := b.current.Load(); m != nil {
			h = (*m)(next)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(server, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Intercept replaces the middleware for later requests. nil removes it. The
// counters continue. A fault that waits must stop when the request's context ends.
// That happens when the client gives up, and at the end of the test.
func (s *Server) Intercept(m Middleware) {
	if m == nil {
		s.faults.current.Store(nil)
		return
	}
	s.faults.current.Store(&m)
}
