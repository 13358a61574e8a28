// Package tracestest provides a collector of traces for tests: OTLP over HTTP.
package tracestest

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector stores the received data. The zero Collector is a handler without a
// server.
type Collector struct {
	URL string

	mu          sync.Mutex
	raw         []byte
	resource    []*common.KeyValue
	spans       []*traces.Span
	connections int
}

// Start starts a collector. The end of the test stops it.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewUnstartedServer(c)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.connections++
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := read(r)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not spans in protobuf", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, of := range request.GetResourceSpans() {
		c.resource = of.GetResource().GetAttributes()
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// Spans returns the received spans with the name.
func (c *Collector) Spans(name string) []*traces.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s *traces.Span) bool { return s.GetName() != name })
}

// Resource returns an attribute of the sending process.
func (c *Collector) Resource(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return text(c.resource, name)
}

// Attribute returns an attribute of a span.
func Attribute(s *traces.Span, name string) string { return text(s.GetAttributes(), name) }

// Raw returns all received bytes.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}

// Connections returns the number of connections.
func (c *Collector) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connections
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	in, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

func text(attributes []*common.KeyValue, name string) string {
	for _, a := range attributes {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
