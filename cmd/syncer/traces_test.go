package main

import (
	"encoding/hex"
	"net"
	"testing"

	"github.com/secretsync/syncer/pkg/health/traces/tracestest"
)

// TestEachSyncIsTraced: each is a span with its steps below it, its log lines
// carry its id, and no value is in any of it. The spans are sent at the end, as
// no earlier time comes.
func TestEachSyncIsTraced(t *testing.T) {
	t.Parallel()
	w, collector := newWorld(t), tracestest.Start(t)
	w.Env["OTEL_EXPORTER_OTLP_ENDPOINT"], w.Env["OTEL_BSP_SCHEDULE_DELAY"] = collector.URL, "3600000"
	w.Group("db", "json", "db/user", "db/password")
	w.Group("web", "template", "web/password")
	w.template("web", `{{ fail (secret "password") }}`)
	p := w.start()
	eventually(t, "a failure", func() bool { return len(p.Lines("Failing", "file/web")) > 0 })
	w.await("db.json", w.Renew("db/password"))
	eventually(t, "two writes of db", func() bool { return len(p.Lines("Target written", "file/db")) == 2 })
	p.Stop()

	steps := map[string]int{} // name and id of the sync's span → how many
	for _, name := range []string{"fetch", "render", "read", "write"} {
		for _, span := range collector.Spans(name) {
			steps[name+string(span.GetParentSpanId())]++
		}
	}
	written, failed := 0, 0
	for _, sync := range collector.Spans("sync") {
		id, trace := string(sync.GetSpanId()), hex.EncodeToString(sync.GetTraceId())
		switch outcome := tracestest.Attribute(sync, "syncer.outcome"); {
		case tracestest.Attribute(sync, "syncer.target") == "file/db" && outcome == "written":
			written++
			for _, name := range []string{"fetch", "render", "read", "write"} {
				if steps[name+id] == 0 {
					t.Errorf("a sync that wrote has no step %s", name)
				}
			}
			for _, line := range []string{"Rendering target", "Writing target", "Target written"} {
				if len(p.Lines(line, "file/db", trace)) != 1 {
					t.Errorf("no line %q has the id %s", line, trace)
				}
			}
		case tracestest.Attribute(sync, "syncer.target") == "file/web" && outcome == "failed":
			if failed++; failed == 1 && len(p.Lines("Failing", "file/web", trace)) == 0 {
				t.Errorf("the failure is not logged with the id %s", trace)
			}
			if steps["fetch"+id] == 0 || steps["write"+id] > 0 || sync.GetStatus().GetMessage() == "" {
				t.Errorf("a sync that failed has the wrong steps, or no error: %v", sync)
			}
		}
	}
	if written != 2 || failed == 0 {
		t.Errorf("%d writes and %d failures are traced", written, failed)
	}
	if found := w.Leak(collector.Raw()); found != "" {
		t.Errorf("a span holds %s", found)
	}
}

// TestADeadCollectorDelaysNothing: it takes connections and answers none.
func TestADeadCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	w := newWorld(t)
	w.Env["OTEL_EXPORTER_OTLP_ENDPOINT"], w.Env["OTEL_EXPORTER_OTLP_TIMEOUT"] = "http://"+dead.Addr().String(), "3600000"
	w.Env["OTEL_BSP_SCHEDULE_DELAY"], w.Env["OTEL_BSP_EXPORT_TIMEOUT"] = "1", "3600000"
	w.Group("db", "json", "db/password")
	p := w.start()
	for range 3 {
		w.await("db.json", w.Renew("db/password"))
	}
	p.Stop()
	if len(p.Lines("Failing", `"traces"`, "the last spans were not sent before the exit")) != 1 {
		t.Error("nothing is said of the spans that were left")
	}
}

// TestTracesAreNotWorthAnEnd: what the environment says wrongly of them stops no
// delivery.
func TestTracesAreNotWorthAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Env["OTEL_EXPORTER_OTLP_ENDPOINT"], w.Env["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http://collector:4317", "grpc"
	w.oneShot("init", 0)
	w.Group("db", "json", "db/password")
	p := w.start()
	p.Exit(0)
	if len(p.Lines("Failing", `"traces"`, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")) != 1 {
		t.Error("the mistake is not logged")
	}
}
