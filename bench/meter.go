package main

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// counts are the events at a server.
type counts struct {
	data            int   // reads of values
	dataBytes       int64 // bytes of their answers
	authentications int
	connections     int // accepted
	// refreshes is the number of bursts of reads. A burst begins with a read at
	// least half an interval after the end of the previous burst.
	refreshes int
}

func (c counts) minus(d counts) counts {
	return counts{
		data: c.data - d.data, dataBytes: c.dataBytes - d.dataBytes,
		authentications: c.authentications - d.authentications,
		connections:     c.connections - d.connections,
		refreshes:       c.refreshes - d.refreshes,
	}
}

// meter counts requests and connections. Its zero value is ready.
type meter struct {
	mu     sync.Mutex
	counts counts
	open   int       // reads in progress
	last   time.Time // end of the last read
}

func (m *meter) read() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

// quiet returns the time since the last read of a value.
func (m *meter) quiet(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open > 0 {
		return 0
	}
	return now.Sub(m.last)
}

// handler counts the requests to next.
func (m *meter) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/authenticate"):
			m.mu.Lock()
			m.counts.authentications++
			m.mu.Unlock()
		case strings.HasPrefix(path, "/secrets"):
			m.begin(time.Now())
			body := &countingBody{ResponseWriter: w}
			next.ServeHTTP(body, r)
			m.end(time.Now(), body.n)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (m *meter) begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.data++
	if m.open == 0 && now.Sub(m.last) >= interval/2 {
		m.counts.refreshes++
	}
	m.open++
}

func (m *meter) end(now time.Time, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	m.last = now
	m.counts.dataBytes += bytes
}

// countingBody counts the bytes of a body.
type countingBody struct {
	http.ResponseWriter
	n int64
}

func (b *countingBody) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p)
	b.n += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (b *countingBody) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// accepted counts a connection.
func (m *meter) accepted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.connections++
}
