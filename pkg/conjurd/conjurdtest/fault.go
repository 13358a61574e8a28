package conjurdtest

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Middleware stands before the server: it may answer itself, wait, or change
// what passes.
type Middleware func(http.Handler) http.Handler

// switchboard holds the middleware in force; nil for none.
type switchboard struct{ current atomic.Pointer[Middleware] }

// wrap has the contexts of requests end when the server's does, so that a
// fault that waits does not hold up the end of a test.
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

// Intercept puts m before the server, in place of what stood there; nil takes
// it away. It acts on requests from now on. The counters go on counting. A
// fault that waits must stop when the request's context ends, which it does
// when the client gives up, and at the end of the test.
func (s *Server) Intercept(m Middleware) {
	if m == nil {
		s.faults.current.Store(nil)
		return
	}
	s.faults.current.Store(&m)
}
