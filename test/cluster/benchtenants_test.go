//go:build long

package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The size of the benchmark of tenants.
const (
	benchTenants = 20 // namespaces of normal tenants
	benchRounds  = 5  // of one creation and one rotation in each namespace
)

// hostilities are the attacks of a namespace or a Pod on others. Each runs until ctx ends,
// or until it has created all its objects. prepare makes costly objects in advance, because
// Conjur shares this process. Both functions may be nil.
var hostilities = []struct {
	name    string
	do      func(ctx context.Context, w *world, namespace string)
	prepare func(namespace string) []*corev1.Secret
}{
	{name: "2,707 ConfigMap references in each of 2 Secrets", do: func(_ context.Context, w *world, namespace string) {
		for i := range 2 {
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), nil, func(s *corev1.Secret) {
				for j := range 2707 { // short, so that all fit into the annotations of a Secret
					s.Annotations[fmt.Sprintf("conjur.org/conjur-secrets.%x", j)] = "- a: a"
					s.Annotations[fmt.Sprintf("conjur.org/secret-file-template-configmap.%x", j)] = fmt.Sprintf("m%d-%x/t", i, j)
				}
			})
		}
	}},
	{name: "81,000 forged ids in each of 10 Secrets", prepare: func(namespace string) (all []*corev1.Secret) {
		for i := range 10 {
			ids := make([]string, 81_000)
			for j := range ids {
				ids[j] = fmt.Sprintf("v%d", j)
			}
			all = append(all, forged(namespace, fmt.Sprintf("bad-%d", i), ids))
		}
		return all
	}},
	{name: "60 maps of 1 MiB", do: func(_ context.Context, w *world, namespace string) { w.large(namespace, 60, 1<<20-1000) }},
	{name: "17,523 missing workloads in 3 Secrets, 5,000 in 100", do: func(_ context.Context, w *world, namespace string) {
		w.names(namespace, "conjur.org/restart-workloads", "deployment/", 3, 5841, nil)
		w.names(namespace, "conjur.org/restart-workloads", "deployment/", 100, 50, nil)
	}},
	{name: "59,489 missing service accounts in a Secret, 5,000 in 100", do: func(_ context.Context, w *world, namespace string) {
		pull := func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeDockerConfigJson
			s.Data[corev1.DockerConfigJsonKey] = []byte("{}")
		}
		w.names(namespace, "conjur.org/pull-secret-for", "", 1, 59_489, pull) // as many as fit
		w.names(namespace, "conjur.org/pull-secret-for", "", 100, 50, pull)
	}},
	{name: "a fight on a key, 50 writes/s", do: func(ctx context.Context, w *world, namespace string) {
		w.secretIn(namespace, "bad", map[string]string{"a": "shared"})
		each(ctx, 20*time.Millisecond, func(i int) {
			w.merge(ctx, namespace, "bad", fmt.Sprintf(`{"data":{"a":%q}}`, base64.StdEncoding.EncodeToString(fmt.Append(nil, "theirs", i))))
		})
	}},
	{name: "a flood of changes, each for an Event, 100/s", do: func(ctx context.Context, w *world, namespace string) {
		w.secretIn(namespace, "bad", map[string]string{"a": "shared"})
		each(ctx, 10*time.Millisecond, func(i int) {
			w.merge(ctx, namespace, "bad", fmt.Sprintf(`{"stringData":{"conjur-map":"a: shared\nbad-%d: 17\n"}}`, i))
		})
	}},
	{name: "12,764 half-sent requests to the metrics, again and again", do: func(ctx context.Context, w *world, _ string) { w.halfSend(ctx, 12_764) }},
}

// BenchmarkTenants measures the effect of a hostile tenant on 20 normal ones: the time from
// the creation of a Secret to its data, and from a rotation in Conjur to its delivery. The
// process has the memory of the chart's container. Undisturbed phases and attacks alternate;
// an attack is compared with the phases before and after it.
func BenchmarkTenants(b *testing.B) {
	for b.Loop() {
		m := newTenants(b)
		p := m.startWithin(binary)
		m.measure(1) // warms up
		before := m.measure(benchRounds)
		var table strings.Builder
		var worst figures
		for i, h := range hostilities {
			namespace := m.hostile[i]
			var prepared []*corev1.Secret
			if h.prepare != nil {
				prepared = h.prepare(namespace)
			}
			ctx, stop := context.WithCancel(b.Context())
			var attack sync.WaitGroup
			attack.Go(func() {
				for _, s := range prepared {
					m.asSyncer(s)
				}
				if h.do != nil {
					h.do(ctx, m.world, namespace)
				}
			})
			cpu := p.CPU()
			during := m.measure(benchRounds)
			cpu = p.CPU() - cpu
			stop()
			attack.Wait()
			p.MustRun()
			m.clean(namespace, "bad")
			m.measure(1) // until the attack is over here too
			after := m.measure(benchRounds)
			calm, grown := before.with(after), figures{}
			fmt.Fprintf(&table, "| %s |", h.name)
			for f, times := range during {
				quiet, loud := percentile(calm[f], 0.99), percentile(times, 0.99)
				grown[f] = []time.Duration{time.Duration(1000 * loud / quiet)}
				fmt.Fprintf(&table, " %.0f | %.0f | %.1f |", quiet, loud, loud/quiet)
				if worst[f] == nil || grown[f][0] > worst[f][0] {
					worst[f] = grown[f]
				}
			}
			fmt.Fprintf(&table, " %.1f |\n", cpu.Seconds())
			before = after
		}
		b.Logf("p99 in ms, undisturbed | attacked | ratio; of bare, created, rotated; and CPU of the attack in s:\n%s", table.String())
		for f, what := range []string{"bare", "created", "rotated"} {
			b.ReportMetric(float64(worst[f][0])/1000, "x-"+what+"-worst") // to reach: 3
		}
		b.ReportMetric(float64(p.Memory("VmHWM"))/(1<<20), "MiB-peak")
		b.ReportMetric(0, "ns/op") // says nothing here
		p.Stop()
	}
}

// figures are the times of a phase: of the bare client, of creations, of rotations.
type figures [3][]time.Duration

func (f figures) with(other figures) (sum figures) {
	for i := range f {
		sum[i] = append(append(sum[i], f[i]...), other[i]...)
	}
	return sum
}

// tenants is a world with normal and hostile namespaces.
type tenants struct {
	*world
	normal, hostile []string
	seen            *following
	phase           int
}

const benchLabel = "bench"

func newTenants(b *testing.B) *tenants {
	m := &tenants{world: newWorld(b)}
	m.Variables("shared")
	for i := range benchTenants {
		m.normal = append(m.normal, m.join())
		m.Variables(fmt.Sprintf("tenant/%d", i))
	}
	for range hostilities {
		m.hostile = append(m.hostile, m.join())
	}
	m.Env["NAMESPACE_ALLOWLIST"] = strings.Join(append(append([]string{m.namespace}, m.normal...), m.hostile...), ",")
	m.seen = m.follow("", benchLabel)
	for i, namespace := range m.normal {
		m.secretIn(namespace, fmt.Sprintf("rotated-%d", i), map[string]string{"v": fmt.Sprintf("tenant/%d", i)}, benched)
		m.secretIn(namespace, fmt.Sprintf("bare-%d", i), nil, func(s *corev1.Secret) { s.Labels = nil }, benched)
	}
	return m
}

func benched(s *corev1.Secret) {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[benchLabel] = "yes"
}

// measure measures one phase. In each round, each namespace gets a write that does not
// concern Syncer, and a new Secret. Then the variables of all namespaces rotate.
func (m *tenants) measure(rounds int) (f figures) {
	for range rounds {
		m.phase++
		for i, namespace := range m.normal {
			begin := time.Now()
			m.merge(m.Context(), namespace, fmt.Sprintf("bare-%d", i), fmt.Sprintf(`{"stringData":{"v":"%d"}}`, m.phase))
			f[0] = append(f[0], m.seen.await(m.TB, fmt.Sprintf("bare-%d", i), "v", strconv.Itoa(m.phase)).Sub(begin))

			name := fmt.Sprintf("created-%d-%d", m.phase, i)
			m.secretIn(namespace, name, map[string]string{"v": "shared"}, benched)
			begin = time.Now()
			f[1] = append(f[1], m.seen.await(m.TB, name, "v", m.Value["shared"]).Sub(begin))
		}
		begun := make([]time.Time, len(m.normal))
		for i := range m.normal {
			m.Renew(fmt.Sprintf("tenant/%d", i))
			begun[i] = time.Now()
		}
		for i := range m.normal {
			at := m.seen.await(m.TB, fmt.Sprintf("rotated-%d", i), "v", m.Value[fmt.Sprintf("tenant/%d", i)])
			f[2] = append(f[2], at.Sub(begun[i]))
		}
	}
	for _, namespace := range m.normal {
		m.clean(namespace, "created-")
	}
	return f
}

// clean deletes the Secrets of a namespace whose names have a prefix.
func (m *tenants) clean(namespace, prefix string) {
	m.Helper()
	list, err := plane.Core.Secrets(namespace).List(m.Context(), metav1.ListOptions{})
	if err != nil {
		m.Fatal(err)
	}
	for _, s := range list.Items {
		if !strings.HasPrefix(s.Name, prefix) {
			continue
		}
		if err := plane.Core.Secrets(namespace).Delete(m.Context(), s.Name, metav1.DeleteOptions{}); err != nil {
			m.Fatal(err)
		}
	}
}

// names creates Secrets whose annotation lists names of missing objects.
func (w *world) names(namespace, annotation, prefix string, secrets, each int, change func(*corev1.Secret)) {
	w.Helper()
	for i := range secrets {
		names := make([]string, each)
		for j := range names {
			names[j] = prefix + strconv.FormatInt(int64(each*i+j), 36)
		}
		w.secretIn(namespace, fmt.Sprintf("bad-%d-%d", each, i), map[string]string{"a": "shared"}, func(s *corev1.Secret) {
			s.Annotations[annotation] = strings.Join(names, ",")
			if change != nil {
				change(s)
			}
		})
	}
}

// merge patches a Secret as another client.
func (w *world) merge(ctx context.Context, namespace, name, patch string) {
	w.Helper()
	_, err := plane.Core.Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"})
	if err != nil && ctx.Err() == nil {
		w.Error(err)
	}
}

// each calls do at each tick until ctx ends.
func each(ctx context.Context, tick time.Duration, do func(i int)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
			do(i)
		case <-ctx.Done():
			return
		}
	}
}

// halfSend opens connections to the port of the probes, and sends a part of a request on
// each. It starts again when there are n.
func (w *world) halfSend(ctx context.Context, n int) {
	var open []net.Conn
	closeAll := func() {
		for _, c := range open {
			_ = c.Close()
		}
		open = nil
	}
	defer closeAll()
	for ctx.Err() == nil {
		var dialer net.Dialer
		if c, err := dialer.DialContext(ctx, "tcp", w.address); err == nil {
			open = append(open, c)
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
		}
		if len(open) == n {
			closeAll()
		}
	}
}
