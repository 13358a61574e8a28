//go:build prometheus

package alerts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/test/clouds"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

func TestMain(m *testing.M) {
	podtest.Main()
	os.Exit(m.Run())
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("SYNCER_PROMETHEUS"), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; make test-alerts fetches Prometheus", err)
	}
	return path
}

func TestPromtoolFindsNothingWrong(t *testing.T) {
	if out, err := exec.Command(tool(t, "promtool"), "check", "rules", files+"alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestEachRuleAtItsBounds: by promtool, each rule fires at its bound, and not earlier.
func TestEachRuleAtItsBounds(t *testing.T) {
	out, err := exec.Command(tool(t, "promtool"), "test", "rules", "testdata/bounds.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	bounds := string(read(t, "testdata/bounds.yaml"))
	for _, r := range rules(t) {
		if !strings.Contains(bounds, `alertname="`+r.Alert+`", alertstate="firing", `) {
			t.Errorf("testdata/bounds.yaml does not have %s", r.Alert)
		}
	}
}

// minutes and thresholds are the parts of a rule that the test shortens: minutes become
// seconds.
var (
	minutes    = regexp.MustCompile(`\b(\d+)m\b`)
	thresholds = strings.NewReplacer("> 900", "> 15", "> 240", "> 4", "> 3600", "> 5", "< -3600", "< -5")
)

// prometheus is one that scrapes each second.
type prometheus struct {
	t       *testing.T
	url     string
	targets string // a file
	jobs    []string
}

func startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	dir, address := t.TempDir(), proctest.FreeAddress(t)
	p := &prometheus{t: t, url: "http://" + address, targets: dir + "/targets.json"}
	p.scrape("")
	shared.Replace(t, dir+"/rules.yaml", thresholds.Replace(minutes.ReplaceAllString(string(read(t, files+"alerts.yaml")), "${1}s")))
	shared.Replace(t, dir+"/prometheus.yaml", `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: syncer
  file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`)
	proctest.Start(t, exec.Command(tool(t, "prometheus"), "--config.file="+dir+"/prometheus.yaml", "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+address, "--log.level=error"), (*exec.Cmd).Start)
	return p
}

// scrape makes Prometheus scrape one more process, as a separate job.
func (p *prometheus) scrape(address string) {
	p.t.Helper()
	if job, _, ok := strings.Cut(address, "="); ok {
		p.jobs = append(p.jobs, fmt.Sprintf(`{"targets": [%q], "labels": {"job": %q}}`, address[len(job)+1:], job))
	}
	shared.Replace(p.t, p.targets, "["+strings.Join(p.jobs, ", ")+"]")
}

// alerts returns the firing alerts, as "Alert job".
func (p *prometheus) alerts() (names []string) {
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if !p.get("/api/v1/alerts", &answer) {
		return nil
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names = append(names, strings.TrimSpace(a.Labels["alertname"]+" "+a.Labels["job"]))
		}
	}
	slices.Sort(names)
	return names
}

// fired returns all alerts that have fired, as alerts does, because some fire only for a
// while.
func (p *prometheus) fired() (names []string) {
	for _, sample := range p.query(`sum by (alertname, job) (count_over_time(ALERTS{alertstate="firing"}[1h]))`) {
		metric := sample.(map[string]any)["metric"].(map[string]any)
		job, _ := metric["job"].(string)
		names = append(names, strings.TrimSpace(metric["alertname"].(string)+" "+job))
	}
	return names
}

func (p *prometheus) get(path string, into any) bool {
	answer, err := http.Get(p.url + path)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}

func (p *prometheus) await(alert string) {
	p.t.Helper()
	proctest.Eventually(p.t, alert, func() bool { return slices.Contains(p.alerts(), alert) })
}

// world is one Syncer with its own server, and a group of five variables.
type world struct {
	*shared.Conjur
	dir string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{shared.New(t), t.TempDir()}
	w.Env["PATH"] = os.Getenv("PATH")
	w.Variables("a", "b", "c", "d", "e")
	return w
}

// intercept redirects each request for data to a handler.
func (w *world) intercept(to http.HandlerFunc) {
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/authn/") {
				next.ServeHTTP(rw, r)
				return
			}
			to(rw, r)
		})
	})
}

// start starts Syncer with a configuration and returns the address of its metrics.
func (w *world) start(binary, config string) (address string) {
	w.Helper()
	return w.startBy((*exec.Cmd).Start, binary, config)
}

// startBy is start with another way to start a process.
func (w *world) startBy(begin func(*exec.Cmd) error, binary, config string) (address string) {
	w.Helper()
	address = proctest.FreeAddress(w.TB)
	path := filepath.Join(w.dir, "syncer.yaml")
	shared.Replace(w.TB, path, fmt.Sprintf("server: {address: %q}\n", address)+config)
	cmd := exec.Command(binary, "--annotations", w.dir+"/none", "--config", path, "--secrets-dir", w.dir, "--status-dir", w.dir)
	cmd.Env = w.Environ()
	proctest.Start(w.TB, cmd, begin)
	return address
}

// startInPod starts Syncer beside an application that runs as another user.
func (w *world) startInPod(pod *podtest.Pod, binary, config string) (address string) {
	w.Helper()
	pod.App("web", 1001)
	podtest.Reachable(w.TB, w.dir)
	podtest.Reachable(w.TB, binary)
	if err := os.Chmod(w.dir, 0o777); err != nil {
		w.Fatal(err)
	}
	return w.startBy(func(cmd *exec.Cmd) error { return pod.Run(cmd, 1000) }, binary, config)
}

const sidecar = `
containerMode: sidecar
secretsDestination: file
refresh: {interval: 1s}
removal: {grace: 0s}
exitOnRevoked: false
targets:
- {name: db, secrets: [a, b, c, d, e], format: json}
- {name: web, secrets: [a], format: json}
`

const standalone = `
containerMode: standalone
secretsDestination: k8s_secrets
refresh: {interval: 1s}
kubernetes: {namespaces: [shop], namespace: syncer, kubeconfig: %q}
`

const rotation = `
leaderElection: {enabled: false}
rotation:
  sets: [{set: a, generate: {random: 32}, confirm: {wait: 1s}}]
`

// limitedSecret is a Secret of which a workload does not exist.
const limitedSecret = `
containerMode: standalone
secretsDestination: k8s_secrets
refresh: {interval: 1s}
leaderElection: {enabled: false}
kubernetes:
  namespaces: [default]
  namespace: syncer
  kubeconfig: %q
  secrets: [{namespace: default, name: limited, create: true, map: {a: a}, restart: [deployment/nosuch]}]
`

// slowRotation has a set whose consumer does not exist, and a set that Syncer may only read
// once it has begun.
const slowRotation = `
leaderElection: {enabled: false}
rotation:
  every: 10s
  sets:
  - {set: lingers, generate: {random: 32}, confirm: {ask: ["http://127.0.0.1:1/keys"]}}
  - {set: kept, generate: {random: 32}, confirm: {wait: 1s}}
`

// refusedRotation has a set whose cloud refuses each call.
const refusedRotation = `
leaderElection: {enabled: false}
rotation:
  sets: [{set: kept, confirm: {wait: 1s}, aws: {user: shop, admin: b, endpoint: %q}}]
`

// kubeconfig names an API server that does not exist.
const kubeconfig = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "https://%s"}}], users: [{name: x, user: {token: x}}]}`

func TestEachAlertFiresWhenItsConditionIsCaused(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "syncer")
	if err := gobuild.Build(binary, "", "../../cmd/syncer"); err != nil {
		t.Fatal(err)
	}
	plane, err := kubetest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plane.Stop() }()
	p := startPrometheus(t)
	p.await("SyncerAbsent")

	well := newWorld(t)
	p.scrape("well=" + well.start(binary, sidecar))
	proctest.Eventually(t, "no alert", func() bool { return p.knows() && len(p.alerts()) == 0 })

	outage := newWorld(t)
	p.scrape("outage=" + outage.start(binary, sidecar))
	held := newWorld(t)
	p.scrape("held=" + held.start(binary, sidecar))
	revoked := newWorld(t)
	p.scrape("revoked=" + revoked.start(binary, sidecar))
	proctest.Eventually(t, "deliveries, which were scraped", func() bool {
		return len(p.query(`syncer_syncs_total{result="written"} == 2`)) == 4
	})
	outage.intercept(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "", http.StatusServiceUnavailable) })
	held.Deny("a", "b", "c", "d", "e")
	revoked.Deny("a")

	locked := newWorld(t)
	locked.Env["CONJUR_AUTHN_API_KEY"] = "wrong"
	p.scrape("locked=" + locked.start(binary, sidecar))
	stuck := newWorld(t)
	stuck.intercept(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p.scrape("stuck=" + stuck.start(binary, sidecar))
	expiring := newWorld(t)
	parts, err := generate.Config{X509: &generate.X509{Subject: "shop", Days: 2}}.Parts(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	expiring.Server.Set("e", string(parts["crt"].Bytes()))
	p.scrape("expiring=" + expiring.start(binary, sidecar))
	idle := newWorld(t)
	shared.Replace(t, idle.dir+"/kubeconfig", fmt.Sprintf(kubeconfig, proctest.FreeAddress(t)))
	p.scrape("idle=" + idle.start(binary, fmt.Sprintf(standalone, idle.dir+"/kubeconfig")))
	limited := newWorld(t)
	p.scrape("limited=" + limited.start(binary, fmt.Sprintf(limitedSecret, plane.Kubeconfig())))
	// Without an API server, Syncer does not know which step the Secrets show.
	rotates := newWorld(t)
	shared.Replace(t, rotates.dir+"/kubeconfig", fmt.Sprintf(kubeconfig, proctest.FreeAddress(t)))
	p.scrape("rotates=" + rotates.start(binary, fmt.Sprintf(standalone+rotation, rotates.dir+"/kubeconfig")))
	slow := newWorld(t)
	slow.Server.Policy(`
- &sets [!variable lingers, !variable lingers/control, !variable kept, !variable kept/control]
- !permit { role: !host app, privileges: [read, execute, update], resource: *sets }
`)
	p.scrape("slow=" + slow.start(binary, fmt.Sprintf(standalone+slowRotation, plane.Kubeconfig())))
	proctest.Eventually(t, "both sets", func() bool { return len(p.query(`syncer_rotation_stage_seconds{job="slow"}`)) == 2 })
	slow.Server.Policy("- !deny { role: !host app, privileges: [update], resource: !variable kept }\n")
	cloud, forbidden := clouds.NewAWS(t, "shop", nil), newWorld(t)
	cloud.Deny("ListAccessKeys", true)
	forbidden.Server.Set("b", cloud.AdminJSON())
	forbidden.Server.Policy(`
- !variable kept
- !variable kept/control
- !permit { role: !host app, privileges: [read, execute, update], resources: [!variable kept, !variable kept/control] }
`)
	p.scrape("forbidden=" + forbidden.start(binary, fmt.Sprintf(standalone+refusedRotation, plane.Kubeconfig(), cloud.URL)))
	refused := newWorld(t)
	p.scrape("refused=" + refused.startInPod(podtest.Start(t), binary, sidecar+"restartApp: {signal: SIGHUP}\n"))
	proctest.Eventually(t, "its delivery", func() bool { return len(p.query(`syncer_syncs_total{job="refused",result="written"} == 2`)) == 1 })
	refused.Server.Set("a", "w")

	due := []string{
		"SyncerConjurFails outage", "SyncerTargetStale outage", "SyncerRemovalsHeld held", "SyncerRemoved revoked",
		"SyncerLoginRefused locked", "SyncerWorkerStuck stuck", "SyncerNobodyWorks idle", "SyncerSecretExpires expiring", "SyncerTargetLimited limited", "SyncerRotationFails rotates",
		"SyncerRotationFails forbidden", "SyncerRotationHeld slow", "SyncerRotationOverdue slow", "SyncerSignalsRefused refused",
	}
	proctest.Eventually(t, "each alert", func() bool {
		fired := p.fired()
		for _, alert := range fired {
			if strings.HasSuffix(alert, " well") {
				t.Errorf("%s fires too", alert)
			}
		}
		return !slices.ContainsFunc(due, func(alert string) bool { return !slices.Contains(fired, alert) })
	})
	p.draws()
}

// knows reports whether Prometheus has scraped the healthy process.
func (p *prometheus) knows() bool {
	return len(p.query(`syncer_leader{job="well"} == 1`)) == 1
}

// draws evaluates each expression of the dashboard.
func (p *prometheus) draws() {
	p.t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(p.t, files+"dashboard.json"), &d); err != nil {
		p.t.Fatal(err)
	}
	variables := strings.NewReplacer(`{namespace=~"$namespace"}`, "", "$__rate_interval", "10s")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			if got := p.query(variables.Replace(target.Expr)); len(got) == 0 && panel.Title != "Restarts of workloads" {
				p.t.Errorf("%s: nothing for %s", panel.Title, target.Expr)
			}
		}
	}
}

func (p *prometheus) query(expr string) []any {
	var answer struct{ Data struct{ Result []any } }
	p.get("/api/v1/query?query="+url.QueryEscape(expr), &answer)
	return answer.Data.Result
}
