package health

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
