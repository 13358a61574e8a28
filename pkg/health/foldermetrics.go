package health

import "github.com/prometheus/client_golang/prometheus"

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
