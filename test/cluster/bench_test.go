package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// The benchmark's size; SYNCER_BENCH_SECRETS sets another number of Secrets.
const (
	benchSecrets = 2000
	benchSharers = 50  // Secrets with the shared value
	benchCreated = 100 // Secrets that are created one after the other
	benchEdits   = 50  // of a template
	benchChanges = 5   // of the shared value
	benchIdle    = 20  // unchanged refreshes
	benchNodes   = 300 // nodes, with benchOwn variables each
	benchOwn     = 20
)

// BenchmarkCluster measures one process that keeps 2,000 Secrets, or as many as
// SYNCER_BENCH_SECRETS says, each with a variable of its own, against a real
// API server and a real Conjur server on the same machine, refreshing every
// second.
//
// Times are from the request's answer, seen by the client that made it, to the
// event of the wanted data on a watch of the same client. The baseline, named
// bare-*, is what that takes without Syncer: the same client sees the event of
// a new Secret and applies one key itself.
//
// It does so twice: nodes says whether the identity may also read what 300 nodes
// have of their own, which no Secret uses.
func BenchmarkCluster(b *testing.B) {
	for _, nodes := range []int{0, benchNodes} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				measure(b, nodes)
			}
		})
	}
}

func measure(b *testing.B, nodes int) {
	w := newWorld(b)
	ids := make([]string, benchSize(b))
	for i := range ids {
		ids[i] = fmt.Sprintf("app/var%05d", i)
	}
	w.Variables(append(ids, "shared", "new")...)
	var overrides []string
	for i := range nodes * benchOwn {
		overrides = append(overrides, fmt.Sprintf("node/n%03d/%s", i/benchOwn, ids[i%benchOwn]))
	}
	if nodes > 0 {
		w.Variables(overrides...)
	}
	w.template("layout", "t", "0")
	for i, id := range ids {
		conjurMap := map[string]string{"value": id}
		if i < benchSharers {
			conjurMap["shared"] = "shared"
		}
		w.secret(fmt.Sprintf("s%05d", i), conjurMap)
	}
	seen := w.follow(w.namespace, "")
	bare := w.bare(seen)

	begin := time.Now()
	p := w.start()
	for i, id := range ids {
		seen.await(b, fmt.Sprintf("s%05d", i), "value", w.Value[id])
	}
	b.ReportMetric(time.Since(begin).Seconds(), "s/all-filled")

	report(b, "bare", bare)
	report(b, "created", w.timeCreations(seen))
	report(b, "template", w.timeEdits(seen))
	report(b, "shared", w.timeShared(seen))
	w.idle(p)
	b.ReportMetric(float64(p.Memory("VmHWM"))/(1<<20), "MiB-peak")
	b.ReportMetric(float64(p.Memory("RssAnon"))/(1<<20), "MiB-anonymous")
	b.ReportMetric(0, "ns/op") // says nothing here
	p.Stop()
}

// benchSize is the number of Secrets.
func benchSize(t testing.TB) int {
	t.Helper()
	set := os.Getenv("SYNCER_BENCH_SECRETS")
	if set == "" {
		return benchSecrets
	}
	size, err := strconv.Atoi(set)
	if err != nil || size < benchSharers {
		t.Fatalf("SYNCER_BENCH_SECRETS is %q, want a number from %d", set, benchSharers)
	}
	return size
}

// report gives the median and the 99th percentile by nearest rank, in
// milliseconds.
func report(b *testing.B, what string, times []time.Duration) {
	half, most := percentile(times, 0.5), percentile(times, 0.99)
	b.Logf("%s: the five longest of %d: %v", what, len(times), times[max(len(times)-5, 0):])
	b.ReportMetric(half, "ms-"+what+"-p50")
	b.ReportMetric(most, "ms-"+what+"-p99")
}

// percentile sorts times, and gives one in milliseconds, by nearest rank.
func percentile(times []time.Duration, share float64) float64 {
	slices.Sort(times)
	return float64(times[int(math.Ceil(share*float64(len(times))))-1].Microseconds()) / 1000
}

// following is a watch of the labelled Secrets of a world.
type following struct {
	events watch.Interface
	data   map[string]map[string]string // Secret → its data, as last seen
	at     map[string]time.Time         // Secret → when that was
}

// follow watches the Secrets of a namespace, "" for all, that a selector matches.
func (w *world) follow(namespace, selector string) *following {
	w.Helper()
	events, err := plane.Core.Secrets(namespace).Watch(context.WithoutCancel(w.Context()), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	return &following{events: events, data: map[string]map[string]string{}, at: map[string]time.Time{}}
}

// await waits until a Secret has a value under a key, and tells when it was
// seen.
func (f *following) await(t testing.TB, name, key, value string) time.Time {
	t.Helper()
	patient := time.After(2 * proctest.Patience)
	for f.data[name][key] != value {
		select {
		case event := <-f.events.ResultChan():
			s, ok := event.Object.(*corev1.Secret)
			if !ok {
				t.Fatalf("the watch broke: %+v", event)
			}
			data := map[string]string{}
			for key, value := range s.Data {
				data[key] = string(value)
			}
			f.data[s.Name], f.at[s.Name] = data, time.Now()
		case <-patient:
			t.Fatalf("no wanted value under %s in the Secret %s", key, name)
		}
	}
	return f.at[name]
}

// bare is the baseline.
func (w *world) bare(seen *following) (times []time.Duration) {
	for i := range benchCreated {
		name := fmt.Sprintf("bare-%d", i)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"seen": "yes"}}
		if _, err := plane.Core.Secrets(w.namespace).Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		begin := time.Now()
		seen.await(w, name, "seen", "yes")
		patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"stringData":{"done":"yes"}}`, name)
		force := true
		if _, err := plane.Core.Secrets(w.namespace).Patch(w.Context(), name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "bare", Force: &force}); err != nil {
			w.Fatal(err)
		}
		times = append(times, seen.await(w, name, "done", "yes").Sub(begin))
	}
	return times
}

func (w *world) timeCreations(seen *following) (times []time.Duration) {
	for i := range benchCreated {
		name := fmt.Sprintf("created-%d", i)
		w.secret(name, map[string]string{"value": "new"})
		begin := time.Now()
		times = append(times, seen.await(w, name, "value", w.Value["new"]).Sub(begin))
	}
	return times
}

func (w *world) timeEdits(seen *following) (times []time.Duration) {
	w.secret("templated", nil, func(s *corev1.Secret) {
		s.Annotations["conjur.org/conjur-secrets.out"] = "- new: new\n"
		s.Annotations["conjur.org/secret-file-template-configmap.out"] = "layout/t"
	})
	seen.await(w, "templated", "out", "0")
	for i := range benchEdits {
		text := strconv.Itoa(i + 1)
		w.template("layout", "t", text)
		begin := time.Now()
		times = append(times, seen.await(w, "templated", "out", text).Sub(begin))
	}
	return times
}

// timeShared is to the last of the Secrets that share a value, and has the
// wait for the next refresh in it.
func (w *world) timeShared(seen *following) (times []time.Duration) {
	for range benchChanges {
		value := w.Renew("shared")
		begin := time.Now()
		var last time.Time
		for i := range benchSharers {
			last = slices.MaxFunc([]time.Time{last, seen.await(w, fmt.Sprintf("s%05d", i), "shared", value)}, time.Time.Compare)
		}
		times = append(times, last.Sub(begin))
	}
	return times
}

// idle measures unchanged refreshes.
func (w *world) idle(p *proctest.Process) {
	b := w.TB.(*testing.B)
	perRefresh := w.requestsPerRefresh()
	cpu, begin := p.CPU(), time.Now()
	w.polls(benchIdle * perRefresh)
	refreshes := time.Since(begin).Seconds()
	calls := plane.Calls(b, kubetest.ByUser(w.user()), kubetest.Since(begin), notWatches)
	b.ReportMetric(float64((p.CPU()-cpu).Microseconds())/1000/refreshes, "cpu-ms/s-idle")
	b.ReportMetric(float64(perRefresh), "conjur-requests/refresh")
	b.ReportMetric(float64(len(calls))/refreshes, "api-requests/s-idle")
}

// requestsPerRefresh counts what comes between two pauses.
func (w *world) requestsPerRefresh() int64 {
	counts := map[int64]int{}
	for range 5 {
		last := w.Server.Counts().Data
		w.polls(1)
		for now := w.Server.Counts().Data; ; {
			time.Sleep(300 * time.Millisecond) // a refresh takes less, the pause between two takes more
			if now == w.Server.Counts().Data {
				counts[now-last]++
				break
			}
			now = w.Server.Counts().Data
		}
	}
	return slices.MaxFunc(slices.Collect(maps.Keys(counts)), func(a, b int64) int { return cmp.Compare(counts[a], counts[b]) })
}
