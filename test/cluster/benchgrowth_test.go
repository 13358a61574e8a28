//go:build long

package cluster

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

const (
	growthMost = 1.15 // the greatest exponent
	growthMany = 8000 // a size of which few runs are enough
)

// growths are the paths that are measured. make prepares a size, and returns one run of it.
var growths = []struct {
	what  string
	sizes [3]int
	make  func(b *testing.B, n int) (run func() costs)
	limit string
}{
	{"variables in a group: start of a sidecar", [3]int{100, 1000, 10_000}, variables, "8,000 bytes of ids per request; 50 requests per second after the first 200"},
	{"the same through a template", [3]int{100, 1000, 10_000}, calls, "the same; the limited work of a template"},
	{"groups: start of a sidecar", [3]int{100, 1000, 10_000}, groups, "the same, with 100 groups per request"},
	{"entries of a map: start after all have changed", [3]int{80, 800, 8000}, entries, "8,000 entries and 1 MiB per Secret; 1 GET, 1 PATCH"},
	{"namespaces: start after a Secret in each has changed", [3]int{10, 100, 1000}, namespaces, "1 watch per namespace; 1 GET, 1 PATCH and 1 Event per Secret"},
	{"Secrets that share a variable: change of it", [3]int{100, 1000, 10_000}, sharers, "4 writes at a time; 1 PATCH per Secret; `namespaceMemory`"},
}

// BenchmarkGrowth measures what ten times as much costs, and fails if a cost grows faster
// than it may. Other processes of the machine matter little, because the kernel's clock of
// the process counts only its own CPU time. The table goes to the standard output.
func BenchmarkGrowth(b *testing.B) {
	var table strings.Builder
	for _, g := range growths {
		least := measureGrowth(b, g.what, 1, g.make)
		least[1], least[2] = 0, 0 // requests are few, and exact
		var at [3]costs
		for i, n := range g.sizes {
			at[i] = measureGrowth(b, g.what, n, g.make)
		}
		fmt.Fprintf(&table, "| %s | %d, %d, %d |", g.what, g.sizes[0], g.sizes[1], g.sizes[2])
		for c, digits := range [...]int{3, 0, 0, 2} {
			const noise = 0.01 // of a start
			cost := func(i int) float64 { return max(at[i][c]-least[c], noise) }
			last, both := math.Log10(cost(2)/cost(1)), math.Log10(cost(2)/cost(0))/2
			if at[2][c] == 0 {
				table.WriteString(" |")
				continue
			}
			fmt.Fprintf(&table, " %.[6]*[1]f, %.[6]*[2]f, %.[6]*[3]f; **%.2[4]f**, %.2[5]f |", at[0][c], at[1][c], at[2][c], last, both, digits)
			if max(last, both) > growthMost {
				b.Errorf("%s: column %d grows with the exponent %.2f in the last step, and %.2f in both", g.what, c+3, last, both)
			}
		}
		fmt.Fprintf(&table, " %s |\n", g.limit)
	}
	fmt.Printf("| what grows | n | CPU in s | requests to Conjur | requests to the API server | MB read and written | limit |\n|---|---|---|---|---|---|---|\n%s", table.String())
}

// costs are seconds of CPU, requests to Conjur and to the API server, and megabytes that
// the process has read and written.
type costs [4]float64

// measureGrowth returns the run with the least CPU time: others can only add to it.
func measureGrowth(b *testing.B, what string, n int, prepare func(*testing.B, int) func() costs) (best costs) {
	b.Run(fmt.Sprintf("%s/n=%d", what, n), func(b *testing.B) {
		for b.Loop() {
			run, runs := prepare(b, n), 5
			if n >= growthMany {
				runs = 3
			}
			best = run()
			for range runs - 1 {
				best = slices.MinFunc([]costs{best, run()}, func(a, b costs) int { return cmp.Compare(a[0], b[0]) })
			}
		}
		b.ReportMetric(best[0], "cpu-s")
		b.ReportMetric(0, "ns/op") // says nothing here
	})
	return best
}

// spent is what a process has cost since its start, and its requests since begin. The
// server's counts are since their reset.
func spent(c *shared.Conjur, p *proctest.Process, user string, begin time.Time) costs {
	seconds, megabytes, n := p.CPU().Seconds(), float64(p.Bytes())/1e6, c.Server.Counts()
	var calls []kubetest.Call
	if user != "" {
		calls = plane.Calls(c, kubetest.ByUser(user), kubetest.Since(begin), func(c kubetest.Call) bool { return c.Resource != "leases" })
	}
	return costs{seconds, float64(n.Data + n.Authentications + n.WhoAmI + n.Checks + n.Other), float64(len(calls)), megabytes}
}

func grownNames(n int) (names, ids []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("v%05d", i))
		ids = append(ids, "app/"+names[i])
	}
	return names, ids
}

func items(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "- %s: app/%[1]s\n", name)
	}
	return text.String()
}

func variables(b *testing.B, n int) func() costs {
	return starting(b, n, func(p *shared.Pod, names []string) { p.Annotations["conjur-secrets.g"] = items(names...) })
}

func calls(b *testing.B, n int) func() costs {
	return starting(b, n, func(p *shared.Pod, names []string) {
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "{{ secret %q }}\n", name)
		}
		p.Annotations["conjur-secrets.g"], p.Annotations["secret-file-format.g"] = items(names...), "template"
		p.Annotations["secret-file-template.g"] = text.String()
	})
}

func groups(b *testing.B, n int) func() costs {
	return starting(b, n, func(p *shared.Pod, names []string) {
		for _, name := range names {
			p.Annotations["conjur-secrets."+name] = items(name)
		}
	})
}

// starting measures starts of a sidecar with empty folders.
func starting(b *testing.B, n int, annotate func(p *shared.Pod, names []string)) func() costs {
	c := shared.New(b)
	names, ids := grownNames(n)
	c.Variables(ids...)
	return func() costs {
		pod := c.Pod(map[string]string{"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": "1h"})
		annotate(pod, names)
		pod.Annotate()
		c.Server.ResetCounts()
		p := pod.Spawn(binary, pod.Environ("TMPDIR="+pod.Path("tmp")), append([]string{"run"}, pod.Flags()...)...)
		eventually(b, "all files", func() bool {
			p.MustRun()
			_, err := os.Stat(pod.Path("status", "CONJUR_SECRETS_PROVIDED"))
			return err == nil
		})
		cost := spent(c, p, "", time.Time{})
		p.Stop()
		return cost
	}
}

// restarting measures starts of a Deployment after all variables have changed.
func (w *world) restarting(ids []string, await func()) func() costs {
	w.settings[0] = "refresh: {interval: 1h}"
	run := func() costs {
		w.Renew(ids...)
		w.Server.ResetCounts()
		begin := time.Now()
		p := w.start()
		await()
		cost := spent(w.Conjur, p, w.user(), begin)
		p.Stop()
		return cost
	}
	run() // fills
	return run
}

func entries(b *testing.B, n int) func() costs {
	w := newWorld(b)
	names, ids := grownNames(n)
	w.Variables(ids...)
	conjurMap := map[string]string{}
	for i, name := range names {
		conjurMap[name] = ids[i]
	}
	w.secret("map", conjurMap)
	return w.restarting(ids, func() { w.awaitData("map", map[string]string{names[n-1]: w.Value[ids[n-1]]}) })
}

// eachAtOnce calls do for each of n, some at a time.
func eachAtOnce(n int, do func(i int)) {
	var makers sync.WaitGroup
	const atOnce = 8
	for first := range atOnce {
		makers.Go(func() {
			for i := first; i < n; i += atOnce {
				do(i)
			}
		})
	}
	makers.Wait()
}

func namespaces(b *testing.B, n int) func() costs {
	w := newWorld(b)
	names, ids := grownNames(n)
	w.Variables(ids...)
	spaces := make([]string, n)
	eachAtOnce(n, func(i int) {
		spaces[i] = w.join()
		w.secretIn(spaces[i], names[i], map[string]string{"v": ids[i]}, benched)
	})
	w.Env["NAMESPACE_ALLOWLIST"] = strings.Join(spaces, ",")
	seen := w.follow("", benchLabel)
	return w.restarting(ids, func() {
		for i, name := range names {
			seen.await(b, name, "v", w.Value[ids[i]])
		}
	})
}

// sharers measures until all Secrets have the new value, which includes the wait for the
// next refresh.
func sharers(b *testing.B, n int) func() costs {
	w := newWorld(b)
	w.settings = append(w.settings, "namespaceMemory: 1024")
	w.Variables("shared")
	names, _ := grownNames(n)
	eachAtOnce(n, func(i int) { w.secret(names[i], map[string]string{"v": "shared"}) })
	seen := w.follow(w.namespace, "")
	p := w.start()
	await := func() {
		for _, name := range names {
			seen.await(b, name, "v", w.Value["shared"])
		}
	}
	await()
	return func() costs {
		w.Server.ResetCounts()
		begin := time.Now()
		before := spent(w.Conjur, p, "", begin)
		w.Renew("shared")
		await()
		cost := spent(w.Conjur, p, w.user(), begin)
		cost[0], cost[3] = cost[0]-before[0], cost[3]-before[3]
		return cost
	}
}
