package health

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/pkg/targets"
)

// Metrics counts and measures, for Prometheus. No label holds a secret value. Only
// the labels of rotated sets hold variable ids. The configuration bounds the values
// of every label. The label identity is the name of the identity at Conjur. Create
// it with NewMetrics. A nil Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry
	queues   *queueMetrics
	sets     *setMetrics

	syncs    *prometheus.CounterVec
	lag      *prometheus.HistogramVec
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	removals *prometheus.CounterVec
	holds    *prometheus.CounterVec
	held     *prometheus.GaugeVec
	restarts *prometheus.CounterVec
	signals  *prometheus.CounterVec
	inPlace  prometheus.Gauge
	leader   prometheus.Gauge
	fights   prometheus.Gauge
}

// Outcomes of a sync, for the label result of syncer_syncs_total.
const (
	OutcomeUnchanged = "unchanged" // everything was as wanted
	OutcomeWritten   = "written"
	OutcomeRemoved   = "removed" // revoked content was removed
	OutcomeFailed    = "failed"
)

// NewMetrics returns metrics that initially contain only those of the process. version is
// that of the build, which ends with + and the revision if it is known.
func NewMetrics(version string) *Metrics {
	version, revision, _ := strings.Cut(version, "+")
	identity := []string{"identity"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		syncs:    counter("syncer_syncs_total", "Syncs of targets, by result.", "identity", "result"),
		lag: histogram("syncer_delivery_seconds", "Time from the hint that a target may be stale to the end of the sync that wrote it.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "identity"),
		requests: counter("syncer_conjur_requests_total", "Requests to Conjur, by kind and HTTP status; the code 0 means that no answer came, 304 that nothing changed.", "identity", "kind", "code"),
		seconds: histogram("syncer_conjur_request_seconds", "Time of requests to Conjur.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}, "identity", "kind"),
		removals: counter("syncer_removals_total", "Targets from which something was removed because a variable is gone in Conjur.", identity...),
		holds:    counter("syncer_removal_holds_total", "Times at which removal was held back because too much was gone at once.", identity...),
		held:     gauge("syncer_removals_held", "Variables whose removal is held back now.", identity...),
		restarts: counter("syncer_workload_restarts_total", "Workloads that were restarted because of a changed Secret.", "namespace"),
		signals:  counter("syncer_signals_total", "Processes of the application that were sent a signal, by result.", "result"),
		inPlace:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncer_restarts_in_place", Help: "Restarts of all containers in place, because of changes, in the life of the Pod."}),
		fights:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncer_contested_secrets", Help: "Secrets that another client changes again and again; Syncer corrects each at most once a second."}),
		leader:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncer_leader", Help: "1 in the process that works, 0 in one that waits for the lease."}),
	}
	build := gauge("syncer_build_info", "1, with the version, the Go version and the revision of the build as labels.", "version", "goversion", "revision")
	build.WithLabelValues(version, runtime.Version(), revision).Set(1)
	m.Signalled(0, 0) // makes the first refusal visible as an increase
	m.queues = newQueueMetrics(m.registry)
	m.sets = newSetMetrics(m.registry)
	m.registry.MustRegister(m.syncs, m.lag, m.requests, m.seconds, m.removals, m.holds, m.held, m.restarts, m.signals, m.inPlace, m.leader, m.fights, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// mostScrapes bounds the concurrent requests for metrics, because each takes memory
// for every target.
const mostScrapes = 4

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes})
}

// Sync counts one sync. since is when the target was first enqueued.
func (m *Metrics) Sync(identity, outcome string, since time.Time) {
	if m == nil {
		return
	}
	m.syncs.WithLabelValues(identity, outcome).Inc()
	switch outcome {
	case OutcomeWritten, OutcomeRemoved:
		m.lag.WithLabelValues(identity).Observe(time.Since(since).Seconds())
	}
	if outcome == OutcomeRemoved {
		m.removals.WithLabelValues(identity).Inc()
	}
}

// Request counts one request to Conjur. code 0 means no answer.
func (m *Metrics) Request(identity, kind string, code int, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(identity, kind, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(identity, kind).Observe(took.Seconds())
}

// Held records the number of variables whose removal the brake delays, or 0. began
// means that the hold has just begun.
func (m *Metrics) Held(identity string, variables int, began bool) {
	if m == nil {
		return
	}
	m.held.WithLabelValues(identity).Set(float64(variables))
	if began {
		m.holds.WithLabelValues(identity).Inc()
	}
}

// Restarted counts one restart of a workload.
func (m *Metrics) Restarted(namespace string) {
	if m == nil {
		return
	}
	m.restarts.WithLabelValues(namespace).Inc()
}

// Contested adds more to the number of Secrets that another client keeps changing.
func (m *Metrics) Contested(more int) {
	if m != nil {
		m.fights.Add(float64(more))
	}
}

// RestartedInPlace sets how many restarts in place earlier processes of the Pod recorded.
func (m *Metrics) RestartedInPlace(times int) {
	if m != nil {
		m.inPlace.Set(float64(times))
	}
}

// Signalled counts processes that were sent a signal, and those that refused it.
func (m *Metrics) Signalled(sent, refused int) {
	if m == nil {
		return
	}
	m.signals.WithLabelValues("sent").Add(float64(sent))
	m.signals.WithLabelValues("refused").Add(float64(refused))
}

// Leads records whether this process is the leader.
func (m *Metrics) Leads(leads bool) {
	if m == nil {
		return
	}
	m.leader.Set(0)
	if leads {
		m.leader.Set(1)
	}
}

// Lane provides the measurements of targets; see records.Lane.
type Lane interface {
	Ages() map[targets.Key]time.Duration
	Expiries() map[targets.Key]targets.Expiry
	Limited() map[targets.Key][]string
}

// Watch adds the targets of a lane to the metrics until the caller calls unwatch.
// The counters of syncs and removals start at 0 at once, because Prometheus sees no
// increase in a counter that appears with its first event.
func (m *Metrics) Watch(identity string, l Lane) (unwatch func()) {
	if m == nil {
		return func() {}
	}
	for _, outcome := range []string{OutcomeUnchanged, OutcomeWritten, OutcomeRemoved, OutcomeFailed} {
		m.syncs.WithLabelValues(identity, outcome)
	}
	m.removals.WithLabelValues(identity)
	m.holds.WithLabelValues(identity)
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"target"}, prometheus.Labels{"identity": identity})
	}
	c := &laneMetrics{
		lane:    l,
		age:     desc("syncer_target_freshness_seconds", "Seconds since the target was last proven to hold what Conjur has."),
		limited: desc("syncer_target_limited", "1 if part of the definition of the target has no effect, or a workload or a service account did not get it. Also 1 if another client changes it again and again."),
		expiry:  desc("syncer_secret_expiry_seconds", "Seconds until the first certificate in the target expires; negative: since it has."),
	}
	m.registry.MustRegister(c)
	return func() { m.registry.Unregister(c) }
}

// laneMetrics collects the metrics of a lane's targets.
type laneMetrics struct {
	lane                 Lane
	age, expiry, limited *prometheus.Desc
}

func (m *laneMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.age
	ch <- m.expiry
	ch <- m.limited
}

func (m *laneMetrics) Collect(ch chan<- prometheus.Metric) {
	for key, age := range m.lane.Ages() {
		ch <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, age.Seconds(), string(key))
	}
	for key := range m.lane.Limited() {
		ch <- prometheus.MustNewConstMetric(m.limited, prometheus.GaugeValue, 1, string(key))
	}
	for key, expiry := range m.lane.Expiries() {
		ch <- prometheus.MustNewConstMetric(m.expiry, prometheus.GaugeValue, time.Until(expiry.At).Seconds(), string(key))
	}
}

// Set contains the times that metrics show of a set's rotation.
type Set struct {
	ID, Stage        string
	Since, Made, Due time.Time // times of stage, primary and next version; zero if unknown
	// Unread maps each namespace that shows the set and cannot be followed to the time
	// at which that began.
	Unread map[string]time.Time
}

// setMetrics collects the metrics of rotated sets. The configuration lists these
// sets.
type setMetrics struct {
	ended, failures   *prometheus.CounterVec
	stage, age, until *prometheus.Desc
	unread            *prometheus.Desc

	mu   sync.Mutex
	sets func() []Set // nil if nothing rotates
}

func newSetMetrics(registry *prometheus.Registry) *setMetrics {
	m := &setMetrics{
		ended:    counter("syncer_rotation_total", "Rotations of sets, by how they ended: promoted, rolled_back or dropped.", "set", "result"),
		failures: counter("syncer_rotation_failures_total", "Steps of rotations that failed and are tried again.", "set", "step"),
		stage:    prometheus.NewDesc("syncer_rotation_stage_seconds", "For how long a set is in its stage.", []string{"set", "stage"}, nil),
		age:      prometheus.NewDesc("syncer_rotation_age_seconds", "The age of a set's primary.", []string{"set"}, nil),
		until:    prometheus.NewDesc("syncer_rotation_due_seconds", "The time until the next version of a set is due; negative: since it was.", []string{"set"}, nil),
		unread:   prometheus.NewDesc("syncer_rotation_unread_seconds", "For how long a namespace, \"unread\", that shows a set cannot be followed.", []string{"set", "unread"}, nil),
	}
	registry.MustRegister(m.ended, m.failures, m)
	return m
}

// Describe implements prometheus.Collector.
func (m *setMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.stage
	to <- m.age
	to <- m.until
	to <- m.unread
}

// Collect implements prometheus.Collector.
func (m *setMetrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	sets := m.sets
	m.mu.Unlock()
	if sets == nil {
		return
	}
	send := func(desc *prometheus.Desc, at time.Time, sign float64, labels ...string) {
		if !at.IsZero() {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, sign*time.Since(at).Seconds(), labels...)
		}
	}
	for _, s := range sets() {
		send(m.stage, s.Since, 1, s.ID, s.Stage)
		send(m.age, s.Made, 1, s.ID)
		send(m.until, s.Due, -1, s.ID)
		for namespace, since := range s.Unread {
			send(m.unread, since, 1, s.ID, namespace)
		}
	}
}

// WatchSets adds the metrics of sets until the caller calls unwatch.
func (m *Metrics) WatchSets(sets func() []Set) (unwatch func()) {
	if m == nil {
		return func() {}
	}
	set := func(f func() []Set) {
		m.sets.mu.Lock()
		defer m.sets.mu.Unlock()
		m.sets.sets = f
	}
	set(sets)
	return func() { set(nil) }
}

// Rotated counts a finished rotation by its result.
func (m *Metrics) Rotated(set, result string) {
	if m != nil {
		m.sets.ended.WithLabelValues(set, result).Inc()
	}
}

// RotationFailed counts a failed step of a set.
func (m *Metrics) RotationFailed(set, step string) {
	if m != nil {
		m.sets.failures.WithLabelValues(set, step).Inc()
	}
}

// Queues returns the metrics provider for client-go work queues. The name of a
// queue is its identity. It returns nil for a nil Metrics.
func (m *Metrics) Queues() workqueue.MetricsProvider {
	if m == nil {
		return nil
	}
	return m.queues
}

// queueMetrics holds the metrics that each work queue maintains, with the same
// names as in Kubernetes' controllers.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

func newQueueMetrics(r *prometheus.Registry) *queueMetrics {
	buckets := prometheus.ExponentialBuckets(1e-4, 4, 10) // 0.1 ms to 26 s
	q := &queueMetrics{
		depth:      gauge("workqueue_depth", "Targets that wait.", "name"),
		unfinished: gauge("workqueue_unfinished_work_seconds", "Seconds that syncs under way have taken so far, together.", "name"),
		longest:    gauge("workqueue_longest_running_processor_seconds", "Seconds that the longest sync under way has taken so far.", "name"),
		adds:       counter("workqueue_adds_total", "Targets that were queued.", "name"),
		retries:    counter("workqueue_retries_total", "Retries of targets.", "name"),
		latency:    histogram("workqueue_queue_duration_seconds", "Time that targets waited.", buckets, "name"),
		work:       histogram("workqueue_work_duration_seconds", "Time that syncs took.", buckets, "name"),
	}
	r.MustRegister(q.depth, q.unfinished, q.longest, q.adds, q.retries, q.latency, q.work)
	return q
}

func (q *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

func (q *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

func (q *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

func (q *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

func (q *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

func (q *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

func (q *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}

// Folder is the folder that holds the secrets.
type Folder interface {
	// Kept returns the bytes of its secrets, and their limit.
	Kept() (bytes, limit int64)
	// OnDisk reports whether it is on a disk.
	OnDisk() bool
}

// folderMetrics collects the metrics of a folder.
type folderMetrics struct {
	Folder
	bytes, limit, disk *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (m *folderMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.bytes
	to <- m.limit
	to <- m.disk
}

// Collect implements prometheus.Collector.
func (m *folderMetrics) Collect(to chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	bytes, limit := m.Kept()
	send(m.bytes, float64(bytes))
	send(m.limit, float64(limit))
	disk := 0.0
	if m.OnDisk() {
		disk = 1
	}
	send(m.disk, disk)
}

// WatchFolder adds the metrics of a folder until the caller calls unwatch.
func (m *Metrics) WatchFolder(f Folder) (unwatch func()) {
	if m == nil {
		return func() {}
	}
	c := &folderMetrics{
		Folder: f,
		bytes:  prometheus.NewDesc("syncer_folder_bytes", "What the files of all targets hold together.", nil, nil),
		limit:  prometheus.NewDesc("syncer_folder_limit_bytes", "Maximum size of all secret files together.", nil, nil),
		disk:   prometheus.NewDesc("syncer_folder_on_disk", "1 where the secrets folder is on a disk instead of in memory.", nil, nil),
	}
	m.registry.MustRegister(c)
	return func() { m.registry.Unregister(c) }
}
