package conjurdtest

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// Counts are requests by kind, answered by the server or by a fault.
type Counts struct {
	Data            int64 // reads of values, single or batch
	NotModified     int64 // those of them that were answered 304
	Authentications int64 // requests for an access token, good or not
	WhoAmI          int64
	Checks          int64 // of a privilege on a resource
	Other           int64
	Connections     int64 // that were accepted
	DataBytes       int64 // of bodies that answered Data
	DataErrors      int64 // Data answered with 400 and above
}

// meter counts; the names are those of Counts.
type meter struct {
	data, notModified, authentications, whoAmI, checks, other, connections, dataBytes, dataErrors atomic.Int64
}

// Counts returns what was counted since the start or the last ResetCounts.
func (s *Server) Counts() Counts {
	m := &s.meter
	return Counts{
		Data: m.data.Load(), NotModified: m.notModified.Load(), Authentications: m.authentications.Load(),
		WhoAmI: m.whoAmI.Load(), Checks: m.checks.Load(), Other: m.other.Load(),
		Connections: m.connections.Load(), DataBytes: m.dataBytes.Load(), DataErrors: m.dataErrors.Load(),
	}
}

// ResetCounts starts counting anew.
func (s *Server) ResetCounts() {
	m := &s.meter
	for _, n := range []*atomic.Int64{
		&m.data, &m.notModified, &m.authentications, &m.whoAmI, &m.checks, &m.other, &m.connections, &m.dataBytes, &m.dataErrors,
	} {
		n.Store(0)
	}
}

// count wraps the whole of the server.
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
	case strings.HasPrefix(path, "/secrets") && (r.Method == http.MethodGet || strings.HasSuffix(path, "/values")):
		return &m.data
	}
	return &m.other
}

// recorder notes how a read of values was answered.
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
