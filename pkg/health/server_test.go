package health

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs the server for the time of the test and gives its URL.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	s.Address = "127.0.0.1:0"
	l, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String()
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// process is not ready, and may be sick.
type process struct{ sick atomic.Bool }

func (p *process) Healthy() error {
	if p.sick.Load() {
		return errors.New("nothing moves")
	}
	return nil
}

func (*process) Ready() ([]string, error) { return []string{"but for one"}, errors.New("not yet") }

func TestProbesSayWhatIsWrong(t *testing.T) {
	var p process
	url := serve(t, &Server{Process: &p, Metrics: NewMetrics("").Handler()})
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("healthy: status %d", code)
	}
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || body != "not yet\nbut for one\n" {
		t.Errorf("not ready: status %d, %q", code, body)
	}
	p.sick.Store(true)
	if code, body := get(t, url+"/healthz"); code != http.StatusServiceUnavailable || body != "nothing moves\n" {
		t.Errorf("not healthy: status %d, %q", code, body)
	}
	if code, _ := get(t, url+"/other"); code != http.StatusNotFound {
		t.Errorf("another path: status %d", code)
	}
}

func TestAddressInUseIsNamed(t *testing.T) {
	first := &Server{Address: "127.0.0.1:0"}
	l, err := first.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second := &Server{Address: l.Addr().String()}
	if _, err := second.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), second.Address) {
		t.Errorf("error %v does not name %s", err, second.Address)
	}
}

func TestMetricsAreServed(t *testing.T) {
	m := NewMetrics("1.2.3+abc")
	url := serve(t, &Server{Metrics: m.Handler()})
	m.Sync("default", OutcomeWritten, time.Now().Add(-time.Second))
	m.Sync("default", OutcomeRemoved, time.Now())
	m.Request("default", "values", 304, time.Millisecond)
	m.Request("default", "values", 0, time.Millisecond)
	m.Held("default", 7, true)
	m.Restarted("shop")
	m.Signalled(3, 1)
	m.Leads(true)

	q := queue.New(queue.Config{Name: "default", Metrics: m.Queues()})
	q.Add(queue.Hint{Trigger: "test"}, "secret/shop/db", "secret/shop/other")
	defer q.ShutDown()

	lane := &records.Lane{}
	lane.Put(&targets.Target{Key: "secret/shop/db"})
	lane.Put(&targets.Target{Key: "secret/shop/tls"})
	tls, _ := lane.Begin("secret/shop/tls")
	tls.Status.Expires.At = time.Now().Add(-time.Hour)
	lane.Settle(tls)
	unwatch := m.Watch("default", lane)
	unwatchFolder := m.WatchFolder(folder{})
	_, body := get(t, url+"/metrics")
	for _, line := range []string{
		`syncer_syncs_total{identity="default",result="written"} 1`,
		`syncer_delivery_seconds_count{identity="default"} 2`,
		`syncer_removals_total{identity="default"} 1`,
		`syncer_conjur_requests_total{code="304",identity="default",kind="values"} 1`,
		`syncer_conjur_requests_total{code="0",identity="default",kind="values"} 1`,
		`syncer_removals_held{identity="default"} 7`,
		`syncer_removal_holds_total{identity="default"} 1`,
		`syncer_workload_restarts_total{namespace="shop"} 1`,
		`syncer_signals_total{result="refused"} 1`,
		`syncer_leader 1`,
		`syncer_build_info{goversion="` + runtime.Version() + `",revision="abc",version="1.2.3"} 1`,
		"syncer_folder_bytes 5\n", "syncer_folder_limit_bytes 9\n", "syncer_folder_on_disk 1\n",
		`workqueue_depth{name="default"} 2`,
		`syncer_target_freshness_seconds{identity="default",target="secret/shop/db"} `,
		`syncer_secret_expiry_seconds{identity="default",target="secret/shop/tls"} -36`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(body, `syncer_secret_expiry_seconds{identity="default",target="secret/shop/db"}`) {
		t.Error("a target without certificates expires")
	}
	lane.Delete("secret/shop/tls")
	if _, body := get(t, url+"/metrics"); strings.Contains(body, "secret/shop/tls") {
		t.Error("a target that is gone is measured")
	}
	unwatch()
	unwatchFolder()
	if _, body := get(t, url+"/metrics"); strings.Contains(body, "syncer_target_freshness_seconds{") || strings.Contains(body, "syncer_folder") {
		t.Error("the ages of targets are there after the end of the watch")
	}
}

// folder holds 5 of 9 bytes, on a disk.
type folder struct{}

func (folder) Kept() (bytes, limit int64) { return 5, 9 }
func (folder) OnDisk() bool               { return true }

func TestRemovalsAreCountedFromZero(t *testing.T) {
	m := NewMetrics("")
	defer m.Watch("default", &records.Lane{})()
	_, body := get(t, serve(t, &Server{Metrics: m.Handler()})+"/metrics")
	for _, line := range []string{`syncer_removals_total{identity="default"} 0`, `syncer_removal_holds_total{identity="default"} 0`} {
		if !strings.Contains(body, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestNilMetricsCountNothing(t *testing.T) {
	var m *Metrics
	m.Sync("default", OutcomeRemoved, time.Now())
	m.Request("default", "values", 200, 0)
	m.Held("default", 1, true)
	m.Restarted("shop")
	m.Signalled(1, 1)
	m.Leads(true)
	m.Watch("default", nil)()
	if m.Queues() != nil {
		t.Error("metrics of queues from nothing")
	}
}
