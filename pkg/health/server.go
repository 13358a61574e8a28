package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Process answers the probes.
type Process interface {
	// Healthy returns an error that a restart of the process would fix, or nil.
	Healthy() error
	// Ready returns an error if the process cannot work. The remarks describe
	// reduced function.
	Ready() (remarks []string, err error)
}

// The server's timeouts. Answers are short, except streams, which set separate
// deadlines.
const (
	readTimeout  = 5 * time.Second // for a whole request
	writeTimeout = 15 * time.Second
	idleTimeout  = time.Minute
)

// Server answers probes and serves metrics over HTTP. It needs no authentication.
// Therefore it limits connections and refuses requests with a body.
//
//	/healthz   200 while Healthy returns no error, else 503 with the reason
//	/readyz    the same with Ready; its remarks are lines of the body
//	/metrics   Metrics, in Prometheus' text format
//	/status    Status, with everything below, and for /; nil: absent
//	/keys      Keys; nil: absent
type Server struct {
	// Address is host:port, or :port for all addresses.
	Address string
	Process Process
	Metrics http.Handler
	Status  http.Handler
	Keys    http.Handler
}

// Listen opens the address. The error names it.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w; choose another one", s.Address, err)
	}
	return l, nil
}

// Serve answers on l until ctx ends, and closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           withoutBody(s.handler()),
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends streams
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(drain) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(&peers{Listener: l})
	if stop() { // the server failed
		return errors.Join(fmt.Errorf("serving probes: %w", err), server.Close())
	}
	<-ended
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", probe(func() ([]string, error) { return nil, s.Process.Healthy() }))
	mux.HandleFunc("GET /readyz", probe(func() ([]string, error) { return s.Process.Ready() }))
	mux.Handle("GET /metrics", s.Metrics)
	if s.Status != nil {
		for _, path := range []string{"/{$}", "/status", "/status.json", "/status/"} {
			mux.Handle(path, s.Status)
		}
	}
	if s.Keys != nil {
		mux.Handle("GET /keys", s.Keys)
	}
	return mux
}

// withoutBody refuses requests that have a body, without reading it.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// The net/http server reads bodies that handlers ignore.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		w.Header().Set("Connection", "close")
		http.Error(w, "a request must not have a body", http.StatusRequestEntityTooLarge)
	})
}

func probe(check func() (remarks []string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		remarks, err := check()
		first := "ok"
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			first = err.Error()
		}
		for _, line := range append([]string{first}, remarks...) {
			fmt.Fprintln(w, line)
		}
	}
}
