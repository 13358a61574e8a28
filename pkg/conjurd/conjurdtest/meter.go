package conjurdtest

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// Counts are requests by kind, whether the server or a fault answered them.
type Counts struct {
	Data            int64 // reads of values, single or batch
	NotModified     int64 // reads answered with 304
	Authentications int64 // requests for an access token, accepted or not
	WhoAmI          int64
	Checks          int64 // of a privilege on a resource
	Other           int64
	Connections     int64 // accepted connections
	DataBytes       int64 // bytes of bodies of data reads
	DataErrors      int64 // data reads answered with 400 and above
}

// meter counts; the names are those of Counts.
type meter struct {
	data, notModified, authentications, whoAmI, checks, other, connections, dataBytes, dataErrors atomic.Int64
}

// Counts returns the counts since the start or the last ResetCounts.
func (s *Server) Counts() Counts {
	m := &s.meter
	return Counts{
		Data: m.data.Load(), NotModified: m.notModified.Load(), Authentications: m.authentications.Load(),
		WhoAmI: m.whoAmI.Load(), Checks: m.checks.Load(), Other: m.other.Load(),
		Connections: m.connections.Load(), DataBytes: m.dataBytes.Load(), DataErrors: m.dataErrors.Load(),
	}
}

// ResetCounts sets all counts to zero.
func (s *Server) ResetCounts() {
	m := &s.meter
	for _, n := range []*atomic.Int64{
		&m.data, &m.notModified, &m.authentications, &m.whoAmI, &m.checks, &m.other, &m.connections, &m.dataBytes, &m.dataErrors,
	} {
		n.Store(0)
	}
}

// count wraps the whole server.
func (m *meter) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := m.kindOf(r)
		kind.Add(1)
		if kind != &m.data {
			next.ServeHTTP(w, r)
			return
		}
		rec := &recorder{ResponseWriter: w, m: m}
		next.ServeHTTP(rec, r)
	})
}

func (m *meter) kindOf(r *http.Request) *atomic.Int64 {
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/authenticate"):
		return &m.authentications
	case path == "/whoami":
		return &m.whoAmI
	case strings.HasPrefix(path, "/resources/") && r.URL.Query().Has("check"):
		return &m.checks
	case strings.HasPrefix(path, "/secrets") && r.Method == http.MethodGet:
		return &m.data
	}
	return &m.other
}

// recorder records the answer to a read of values.
type recorder struct {
	http.ResponseWriter
	m *meter
}

func (r *recorder) WriteHeader(status int) {
	if status == http.StatusNotModified {
		r.m.notModified.Add(1)
	}
	if status >= 400 {
		r.m.dataErrors.Add(1)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.m.dataBytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// accepted counts a connection.
func (m *meter) accepted() { m.connections.Add(1) }
