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
)

// BenchmarkStart measures how long after a Pod is created its application
// starts, in each form, and how long its deletion takes, and reports medians. "make bench-node" runs it.
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
			var took, deleted []float64
			for b.Loop() {
				spec := w.documented(files("secrets-refresh-interval", "1m"), "now")
				form.change(spec)
				began := time.Now()
				p := w.start(fmt.Sprintf("%s-%d", label(form.name), len(took)), spec)
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
		})
	}
}

// BenchmarkIdle measures what a sidecar costs while nothing changes, from its
// cgroup.
func BenchmarkIdle(b *testing.B) {
	w := newWorld(b, shop())
	p := w.start("idle", w.documented(files("secrets-refresh-interval", "1m"), "run", dbFile))
	p.ready()
	const span = 2 * time.Minute // two polls
	for b.Loop() {
		before := p.used()
		time.Sleep(span)
		b.ReportMetric((p.used()-before).Seconds()/span.Seconds()*1000, "mCPU")
	}
	for line := range strings.Lines(p.cgroupFile("memory", "memory.stat")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "rss" || key == "anon" {
			bytes, err := strconv.ParseFloat(value, 64)
			w.check(err)
			b.ReportMetric(bytes/(1<<20), "MiB")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// used is the processor time that Syncer's container has used.
func (p *pod) used() time.Duration {
	p.t.Helper()
	ns, err := strconv.ParseInt(strings.TrimSpace(p.cgroupFile("cpuacct", "cpuacct.usage")), 10, 64)
	p.check(err)
	return time.Duration(ns)
}

func (p *pod) cgroupFile(controller, name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.cgroup(controller, "syncer"), name))
	p.check(err)
	return string(text)
}
