//go:build long

package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/test/proctest"
)

// The size of the benchmark of tenants.
const (
	benchTenants = 20 // namespaces of normal tenants
	benchRounds  = 5  // of one creation and one rotation in each namespace
)

// BenchmarkTenants measures the effect of a hostile tenant on 20 normal ones: the time from
// the creation of a Secret to its data, and from a rotation in Conjur to its delivery. The
// process has the memory of the chart's container. Undisturbed phases and attacks alternate;
// an attack is compared with the phases before and after it. Meanwhile the bare program of
// BenchmarkScale fills Secrets of the same namespaces. It shares only the machine with the
// attack.
func BenchmarkTenants(b *testing.B) {
	for b.Loop() {
		m := newTenants(b)
		p := m.startWithin(binary)
		bare := proctest.Spawn(b, bareBinary, proctest.Environ(nil), "-kubeconfig", plane.Kubeconfig(), "-selector", "bare", "-value", bareValue)
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
		fmt.Printf("p99 in ms, undisturbed | attacked | ratio; of bare, created, rotated; and CPU of the attack in s:\n%s", table.String())
		for f, what := range []string{"bare", "created", "rotated"} {
			b.ReportMetric(float64(worst[f][0])/1000, "x-"+what+"-worst") // to reach: 1.5
		}
		b.ReportMetric(float64(p.Memory("VmHWM"))/(1<<20), "MiB-peak")
		b.ReportMetric(0, "ns/op") // says nothing here
		p.Stop()
		bare.Stop()
	}
}

// figures are the times of a phase: of creations for the bare program, of creations for
// Syncer, of rotations.
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

const (
	benchLabel = "bench"
	bareValue  = "of the bare program"
)

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
	}
	return m
}

func benched(s *corev1.Secret) {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[benchLabel] = "yes"
}

// measure measures one phase. In each round, each namespace gets a Secret for the bare
// program and one for Syncer. Then the variables of all namespaces rotate.
func (m *tenants) measure(rounds int) (f figures) {
	for range rounds {
		m.phase++
		for i, namespace := range m.normal {
			name := fmt.Sprintf("created-bare-%d-%d", m.phase, i)
			m.secretIn(namespace, name, nil, func(s *corev1.Secret) { s.Labels = map[string]string{"bare": "yes"} }, benched)
			begin := time.Now()
			f[0] = append(f[0], m.seen.await(m.TB, name, "value", bareValue).Sub(begin))

			name = fmt.Sprintf("created-%d-%d", m.phase, i)
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

// merge patches a Secret as another client.
func (w *world) merge(ctx context.Context, namespace, name, patch string) {
	w.Helper()
	_, err := plane.Core.Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"})
	if err != nil && ctx.Err() == nil {
		w.Error(err)
	}
}
