//go:build node

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkStart measures, for each form of a Pod, the time from its creation to the start
// of its application, and the time of its deletion. It reports medians.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b, shop())
	for _, form := range []struct {
		name   string
		change func(*corev1.Pod)
	}{
		{"without Syncer", func(p *corev1.Pod) {
			p.Spec.InitContainers = nil
			p.Spec.Containers[0].VolumeMounts = nil
			p.Spec.Volumes = nil
		}},
		{"init container", asInitContainer},
		{"sidecar with a startup probe", func(*corev1.Pod) {}},
		{"sidecar with a hook", func(p *corev1.Pod) { asHook(p, "/syncer", "wait") }},
	} {
		b.Run(form.name, func(b *testing.B) {
			w := *w
			w.t = b
			spec := w.documented(files("secrets-refresh-interval", "1m"), "now")
			form.change(spec)
			w.measureStarts(b, label(form.name), spec)
		})
	}
}

// BenchmarkStartInjected compares a Pod to which the chart's admission policy adds Syncer
// with the same Pod written by hand.
func BenchmarkStartInjected(b *testing.B) {
	w := newWorld(b, shop())
	key := w.injecting()
	injected := w.labelled(key, "now")
	written := w.asAdmitted(injected)
	delete(written.Labels, key)
	written.ObjectMeta = metav1.ObjectMeta{Annotations: written.Annotations}
	for name, spec := range map[string]*corev1.Pod{"written": written, "injected": injected} {
		b.Run(name, func(b *testing.B) {
			w := *w
			w.t = b
			w.measureStarts(b, name, spec)
		})
	}
}

// measureStarts starts and deletes Pods one after the other.
func (w *world) measureStarts(b *testing.B, name string, spec *corev1.Pod) {
	b.Helper()
	var took, deleted []float64
	for b.Loop() {
		began := time.Now()
		p := w.start(fmt.Sprintf("%s-%d", name, len(took)), spec)
		p.awaitLog("app", "\n")
		at, err := strconv.ParseInt(strings.TrimSpace(p.log("app")), 10, 64)
		w.check(err)
		took = append(took, time.Unix(0, at).Sub(began).Seconds())
		began = time.Now()
		p.delete()
		deleted = append(deleted, time.Since(began).Seconds())
	}
	slices.Sort(took)
	slices.Sort(deleted)
	b.ReportMetric(took[len(took)/2], "s/start")
	b.ReportMetric(took[0], "s/fastest")
	b.ReportMetric(deleted[len(deleted)/2], "s/deletion")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdle measures the cost of an idle sidecar from its container's cgroup: as
// documented, and with the chart's liveness probe, which starts a process every 30 seconds.
func BenchmarkIdle(b *testing.B) {
	w := newWorld(b, shop())
	for _, form := range []struct {
		name   string
		change func(*corev1.Pod)
	}{
		{"documented", func(*corev1.Pod) {}},
		{"with a liveness probe", func(p *corev1.Pod) {
			p.Spec.InitContainers[0].LivenessProbe = &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/syncer", "probe", "alive"}}},
				PeriodSeconds: 30, TimeoutSeconds: 5,
			}
		}},
	} {
		b.Run(form.name, func(b *testing.B) {
			w := *w
			w.t = b
			spec := w.documented(files("secrets-refresh-interval", "1m"), "run", dbFile)
			form.change(spec)
			p := w.start(label(form.name), spec)
			p.ready()
			const span = 2 * time.Minute // two polls
			for b.Loop() {
				before := p.counted(processorTime)
				time.Sleep(span)
				b.ReportMetric((p.counted(processorTime)-before)/span.Seconds()*1000, "mCPU")
			}
			const MiB = 1 << 20
			b.ReportMetric((p.counted(memoryUsed)-p.counted(memoryInactive))/MiB, "MiB/working-set")
			b.ReportMetric(p.counted(memoryAnonymous)/MiB, "MiB/anonymous")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// counter names a figure of a cgroup: a file that contains a number, or the line of a file
// that begins with a key.
type counter struct {
	controller, file, key string
	unit                  float64
}

// Counters, of cgroups of version 1 and of version 2.
var (
	processorTime   = []counter{{"cpuacct", "cpuacct.usage", "", 1e-9}, {"cpu", "cpu.stat", "usage_usec", 1e-6}} // seconds
	memoryUsed      = []counter{{"memory", "memory.usage_in_bytes", "", 1}, {"memory", "memory.current", "", 1}}
	memoryInactive  = []counter{{"memory", "memory.stat", "total_inactive_file", 1}, {"memory", "memory.stat", "inactive_file", 1}}
	memoryAnonymous = []counter{{"memory", "memory.stat", "total_rss", 1}, {"memory", "memory.stat", "anon", 1}}
)

// counted returns the figure of the cgroup of Syncer's container, from the first counter
// that exists.
func (p *pod) counted(counters []counter) float64 {
	p.t.Helper()
	for _, c := range counters {
		text, err := os.ReadFile(filepath.Join(p.cgroup(c.controller, "syncer"), c.file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 1 || fields[0] == c.key {
				n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
				p.check(err)
				return n * c.unit
			}
		}
	}
	p.t.Fatalf("no cgroup counts %v", counters)
	return 0
}
