package traces_test

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/health/traces"
	"github.com/secretsync/syncer/pkg/health/traces/tracestest"
)

const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

// TestOffUnlessAsked: what is off connects to nothing and runs nothing.
func TestOffUnlessAsked(t *testing.T) {
	collector := tracestest.Start(t)
	for name, env := range map[string]map[string]string{
		"nothing is set":     {"OTEL_SERVICE_NAME": "web"},
		"disabled":           {endpoint: collector.URL, "OTEL_SDK_DISABLED": "True"},
		"no exporter":        {endpoint: collector.URL, "OTEL_TRACES_EXPORTER": "none"},
		"disabled, mistaken": {endpoint: "x", "OTEL_SDK_DISABLED": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			running := goleak.IgnoreCurrent()
			tracer := start(t, env)
			if tracer != nil {
				t.Error("traces are sent")
			}
			span := tracer.Begin("file/db")
			span.Step("fetch")()
			span.End(nil, nil)
			if fields := span.Fields(); fields != nil {
				t.Errorf("a log line has %v", fields)
			}
			tracer.Close(time.Hour)
			goleak.VerifyNone(t, running)
		})
	}
	if n := collector.Connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestWhatCannotBeIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"exporter": {map[string]string{endpoint: "http://c:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin"},
		"protocol": {map[string]string{endpoint: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"its own":  {map[string]string{endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"},
		"header":   {map[string]string{endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,canary"}, "item 2 of OTEL_EXPORTER_OTLP_HEADERS"},
		"several": {
			map[string]string{
				endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd",
				"OTEL_EXPORTER_OTLP_CERTIFICATE": "/none", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/none",
			},
			"OTEL_EXPORTER_OTLP_TIMEOUT=10s is not a number of milliseconds\n" +
				"OTEL_EXPORTER_OTLP_COMPRESSION=zstd is not supported; use gzip or none\n" +
				"OTEL_EXPORTER_OTLP_CERTIFICATE: open /none: no such file or directory\n" +
				"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE with its CLIENT_KEY: open /none",
		},
		"no URL":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL"},
		"a login": {map[string]string{endpoint: "http://u:canary@c:4318"}, "has a user or password in it"},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, c.env)
			tracer, err := traces.Start("1", func(error) {})
			if tracer != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

// TestTheLastSpansAreSent: what is left at the end is on its way before Close
// returns.
func TestTheLastSpansAreSent(t *testing.T) {
	collector := tracestest.Start(t)
	tracer := start(t, map[string]string{
		endpoint: collector.URL, "OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=web-0",
	})
	span := tracer.Begin("file/db")
	span.Step("fetch")()
	span.End(errors.New("no answer"), map[string]string{"outcome": "failed"})
	tracer.Close(time.Hour)

	syncs, steps := collector.Spans("sync"), collector.Spans("fetch")
	if len(syncs) != 1 || len(steps) != 1 {
		t.Fatalf("%d spans of a sync, %d of its step", len(syncs), len(steps))
	}
	if s := syncs[0]; tracestest.Attribute(s, "syncer.outcome") != "failed" || s.GetStatus().GetMessage() != "no answer" {
		t.Errorf("the sync has %v and %v", s.GetAttributes(), s.GetStatus())
	}
	if name, pod := collector.Resource("service.name"), collector.Resource("k8s.pod.name"); name != "syncer" || pod != "web-0" {
		t.Errorf("the process is %q in %q", name, pod)
	}
}

// TestTheCollectorIsReachedAsTheEnvironmentSays: over TLS by an authority of its
// own, with a token, compressed, at a path of its own; not where it points to.
func TestTheCollectorIsReachedAsTheEnvironmentSays(t *testing.T) {
	elsewhere := tracestest.Start(t)
	var collector tracestest.Collector
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer a,b":
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case r.URL.Path != "/spans":
			http.Redirect(w, r, elsewhere.URL+"/v1/traces", http.StatusTemporaryRedirect)
		default:
			r.URL.Path = "/v1/traces"
			collector.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": server.URL + "/spans", "OTEL_EXPORTER_OTLP_CERTIFICATE": authority,
		"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20a%2Cb", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
	}
	tracer := start(t, env)
	tracer.Begin("file/db").End(nil, nil)
	tracer.Close(time.Hour)
	if n := len(collector.Spans("sync")); n != 1 {
		t.Errorf("%d spans", n)
	}

	env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = server.URL + "/old"
	set(t, env)
	var said error
	tracer, err := traces.Start("1", func(err error) { said = err })
	if err != nil {
		t.Fatal(err)
	}
	tracer.Begin("file/db").End(nil, nil)
	tracer.Close(time.Hour)
	if n := elsewhere.Connections(); n > 0 || said == nil || said.Error() != "the collector answers 307 Temporary Redirect" {
		t.Errorf("%d connections elsewhere, and %v", n, said)
	}
}

// TestABusyCollectorIsAskedAgain: it has no room at first.
func TestABusyCollectorIsAskedAgain(t *testing.T) {
	var collector tracestest.Collector
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		collector.ServeHTTP(w, r)
	}))
	defer server.Close()
	tracer := start(t, map[string]string{endpoint: server.URL})
	tracer.Begin("file/db").End(nil, nil)
	tracer.Close(time.Hour)
	if n := len(collector.Spans("sync")); n != 1 {
		t.Errorf("%d spans", n)
	}
}

// TestADeadCollectorHoldsNothingUp: it takes the spans and never answers; no
// span waits for it, and Close does no longer than it may. With a mistake here
// the test does not end.
func TestADeadCollectorHoldsNothingUp(t *testing.T) {
	asked := make(chan struct{}, 100)
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client left
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer dead.Close()
	var said error
	set(t, map[string]string{endpoint: dead.URL, "OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1"})
	tracer, err := traces.Start("1", func(err error) { said = err })
	if err != nil {
		t.Fatal(err)
	}
	running := goleak.IgnoreCurrent()
	for range 100 { // more than the queue has room for
		tracer.Begin("file/db").End(nil, nil)
	}
	<-asked
	tracer.Close(time.Millisecond)
	if said == nil || !strings.Contains(said.Error(), "the last spans were not sent before the exit") {
		t.Errorf("it said %v", said)
	}
	dead.CloseClientConnections()
	goleak.VerifyNone(t, running)
}

// TestTheCollectorsCredentialStaysOut: neither the address nor the answer is
// said, which may hold it.
func TestTheCollectorsCredentialStaysOut(t *testing.T) {
	const canary = "canary-7AX"
	refusing := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "you sent "+r.Header.Get("Authorization"), status)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for url, want := range map[string]string{
		refusing(401): "the collector answers 401 Unauthorized", refusing(503): "not sent before the exit", closed.URL: "the collector cannot be reached: dial tcp",
	} {
		set(t, map[string]string{
			endpoint: url + "/" + canary, "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=" + canary,
		})
		var said []string
		tracer, err := traces.Start("1", func(err error) {
			if err != nil {
				said = append(said, err.Error())
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		tracer.Begin("file/db").End(nil, nil)
		tracer.Close(100 * time.Millisecond)
		if all := strings.Join(said, "\n"); !strings.Contains(all, want) || strings.Contains(all, canary) {
			t.Errorf("it said %q, want %q", all, want)
		}
	}
}

func TestWhatIsNotSampledHasNoID(t *testing.T) {
	collector := tracestest.Start(t)
	tracer := start(t, map[string]string{endpoint: collector.URL, "OTEL_TRACES_SAMPLER": "always_off"})
	span := tracer.Begin("file/db")
	if fields := span.Fields(); fields != nil {
		t.Errorf("a log line has %v", fields)
	}
	span.End(nil, nil)
	tracer.Close(time.Hour)
	if n := collector.Connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// start starts a tracer that nothing goes wrong with.
func start(t *testing.T, env map[string]string) *traces.Tracer {
	t.Helper()
	set(t, env)
	tracer, err := traces.Start("1", func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func set(t *testing.T, env map[string]string) {
	t.Helper()
	for name, text := range env {
		t.Setenv(name, text)
	}
}
