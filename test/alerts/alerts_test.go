// Package alerts tests the alert rules and the dashboard. These tests check their texts;
// make test-alerts causes each condition with a real Prometheus.
package alerts

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

const files = "../../deploy/chart/syncer/files/"

// rule is an alert.
type rule struct {
	Alert, Expr         string
	For                 string
	Labels, Annotations map[string]string
}

// rules returns the alerts that the chart installs.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(read(t, files+"alerts.yaml"), &file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%d groups: %v", len(file.Groups), err)
	}
	return file.Groups[0].Rules
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEachAlertHasARunbook(t *testing.T) {
	page := string(read(t, "../../docs/troubleshooting.md"))
	for _, r := range rules(t) {
		if want := "docs/troubleshooting.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("%s: the runbook is %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if !strings.Contains(page, "\n### "+r.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no section %s", r.Alert)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, a description or a severity", r.Alert)
		}
	}
}

// metricName matches the names of metrics in an expression.
var metricName = regexp.MustCompile(`\b(?:syncer|workqueue)_[a-z_]+`)

// TestOnlyMetricsThatAreThereAreAskedFor: rules and dashboard use only metrics that Syncer
// serves.
func TestOnlyMetricsThatAreThereAreAskedFor(t *testing.T) {
	served := metrics(t)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		names := metricName.FindAllString(string(read(t, files+file)), -1)
		if len(names) < 5 {
			t.Errorf("%s asks for %d metrics only", file, len(names))
		}
		for _, name := range names {
			if !strings.Contains(served, "\n"+name+"{") && !strings.Contains(served, "\n"+name+" ") {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

// metrics returns the metrics of a process that has counted every event.
func metrics(t *testing.T) string {
	t.Helper()
	m := health.NewMetrics("")
	m.Sync("default", health.OutcomeWritten, time.Now())
	m.Request("default", "values", 200, time.Millisecond)
	m.Held("default", 0, false)
	m.Restarted("shop")
	m.Signalled(1, 1)
	m.RotationFailed("jwt", "read")
	lane := &records.Lane{}
	lane.Put(&targets.Target{Key: "file/db"})
	lane.Put(&targets.Target{Key: "secret/shop/db", Secret: &targets.Secret{Warnings: []targets.Fault{{Place: "a", Why: "b"}}}})
	db, _ := lane.Begin("file/db")
	db.Status.Expires.At = time.Now()
	lane.Settle(db)
	defer m.Watch("default", lane)()
	defer m.WatchSets(func() []health.Set {
		return []health.Set{{ID: "jwt", Stage: "idle", Since: time.Now(), Due: time.Now(), Unread: map[string]time.Time{"team": time.Now()}}}
	})()
	q := queue.New(queue.Config{Name: "default", Metrics: m.Queues()})
	defer q.ShutDown()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// dashboard is the tested part of the dashboard.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func TestTheDashboardIsWhole(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal(read(t, files+"dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
	for _, p := range d.Panels {
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("the panel %q has %d expressions", p.Title, len(p.Targets))
		}
	}
}
