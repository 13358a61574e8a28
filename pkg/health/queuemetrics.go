package health

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

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
