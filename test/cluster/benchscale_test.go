//go:build long

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// The size of BenchmarkScale, besides that of BenchmarkCluster.
const (
	scaleTemplated = 1000 // Secrets with a template
	scaleEdits     = 5    // of the template
	scaleIdle      = 30 * time.Second
	scaleTick      = 1.0 / 3 // ms of CPU a second: one tick of the kernel's clock in that time
)

// BenchmarkScale compares Syncer with a bare client-go program that writes as many
// Secrets with as many requests at a time, in another namespace of the same API server
// (test/cluster/bare). Both are processes. They take turns, or are idle together.
//
// The tables go to the standard output, because go test shortens the log of a benchmark.
func BenchmarkScale(b *testing.B) {
	for b.Loop() {
		syncer, bare, watching, reading := newSides(b)
		var table strings.Builder
		row := func(what string, syncer, bare float64) {
			fmt.Fprintf(&table, "| %s | %.4g | %.4g | %.2f |\n", what, syncer, bare, syncer/bare)
		}
		for _, s := range []*side{syncer, bare, watching} {
			s.run()
			s.base = s.process.Memory("VmHWM")
			s.process.Stop()
		}
		size := float64(benchSize(b))
		syncer.fill()
		bare.fill()
		for _, s := range []*side{bare, syncer} {
			s.seen = s.follow(s.namespace, "")
			s.seconds = s.timeFill()
		}
		row("s to fill", syncer.seconds, bare.seconds)
		watching.run()
		rowsOfIdle(row, syncer, bare, watching)
		peak := func(s *side) float64 { return float64(s.process.Memory("VmHWM")) }
		row("peak RSS in MiB", peak(syncer)/(1<<20), peak(watching)/(1<<20))
		perSecret := func(s *side) float64 { return (peak(s) - float64(s.base)) / 1024 / size }
		row("KiB for each Secret", perSecret(syncer), perSecret(watching))
		row("KiB for each Secret; the bare program fills too", perSecret(syncer), perSecret(bare))
		watching.process.Stop()
		rowsOfEdits(row, syncer, bare, reading)
		fmt.Printf("%.0f Secrets, base of Syncer %d KiB, of the bare program %d KiB\n| | Syncer | bare | ratio |\n|---|---|---|---|\n%s", size, syncer.base>>10, watching.base>>10, table.String())
		syncer.restart(bare)
		syncer.handOver()
		b.ReportMetric(0, "ns/op") // says nothing here
	}
}

// rowsOfIdle measures sides that have nothing to do, and then Secrets that are created one
// after the other.
func rowsOfIdle(row func(what string, syncer, bare float64), syncer, bare, watching *side) {
	usual, made := syncer.settings[0], 0
	for _, interval := range []string{"1s", "5m"} {
		syncer.settings[0] = fmt.Sprintf("refresh: {interval: %s}", interval)
		syncer.configure()
		idle := cpuOf(syncer, watching)
		row("ms of CPU a second, idle, refresh.interval "+interval, idle[0], max(idle[1], scaleTick))
		var created [2][]time.Duration
		for range benchCreated {
			made++
			for i, s := range []*side{syncer, bare} {
				created[i] = append(created[i], s.timeCreation(made))
			}
		}
		for _, share := range []float64{0.5, 0.99} {
			row(fmt.Sprintf("ms created → filled, p%.0f, refresh.interval %s", 100*share, interval), percentile(created[0], share), percentile(created[1], share))
		}
	}
	syncer.settings[0] = usual
	syncer.configure()
}

// rowsOfEdits measures edits of the template and changes of values, and ends the bare
// program.
func rowsOfEdits(row func(what string, syncer, bare float64), syncer, bare, reading *side) {
	var edited [3][]time.Duration
	var changed []time.Duration
	for i := range scaleEdits {
		for j, s := range []*side{syncer, bare} {
			edited[j] = append(edited[j], s.timeEdit(i))
		}
		changed = append(changed, syncer.timeChange())
	}
	bare.process.Stop()
	reading.seen = bare.seen
	reading.run()
	for i := range scaleEdits {
		edited[2] = append(edited[2], reading.timeEdit(scaleEdits+i))
	}
	reading.process.Stop()
	median := func(i int) float64 { return percentile(edited[i], 0.5) }
	row(fmt.Sprintf("ms until the %d Secrets of a template are written, median", scaleTemplated), median(0), median(1))
	row("the same; the bare program reads each Secret first", median(0), median(2))
	row("ms from the first to the last of them with a changed value; the bare program as before", percentile(changed, 0.5), median(1))
}

// side is one of the programs that are compared, with a namespace that only it serves.
type side struct {
	*world
	start   func() // starts the process
	ready   func() bool
	want    func(i int) string
	process *proctest.Process
	base    int64 // memory without Secrets
	seen    *following
	seconds float64
}

func newSides(b *testing.B) (syncer, bare, watching, reading *side) {
	w := newWorld(b)
	w.settings = append(w.settings, "namespaceMemory: 1024")
	ids := make([]string, benchSize(b))
	for i := range ids {
		ids[i] = fmt.Sprintf("app/var%05d", i)
	}
	w.Variables(append(ids, "new")...)
	syncer = &side{world: w, want: func(i int) string {
		if i < 0 {
			return w.Value["new"]
		}
		return w.Value[ids[i]]
	}}
	syncer.start, syncer.ready = func() { syncer.process = w.start() }, w.ready
	other := *w
	other.namespace = plane.Namespace(b)
	for _, s := range []**side{&bare, &watching, &reading} {
		value := w.Value["new"] // as long as the others
		if s == &watching {
			value = ""
		}
		*s = &side{world: &other, want: func(int) string { return value }}
		(*s).start = func() {
			(*s).process = proctest.Spawn(b, bareBinary, proctest.Environ(nil), "-kubeconfig", plane.Kubeconfig(),
				"-namespace", other.namespace, "-value", value, "-templated", scaleName(min(scaleTemplated, len(ids))), fmt.Sprintf("-read=%t", s == &reading))
		}
		(*s).ready = func() bool { return (*s).process.Log() != "" }
	}
	return syncer, bare, watching, reading
}

// run starts the process, and returns when it knows the Secrets.
func (s *side) run() {
	s.start()
	eventually(s, "ready", s.ready)
}

func scaleName(i int) string { return fmt.Sprintf("s%05d", i) }

// fill makes the Secrets, and the template of the first of them.
func (s *side) fill() {
	s.template("layout", "t", "0")
	eachAtOnce(benchSize(s.TB), func(i int) {
		id := fmt.Sprintf("app/var%05d", i)
		s.secret(scaleName(i), map[string]string{"value": id}, func(secret *corev1.Secret) {
			if i < scaleTemplated {
				secret.Annotations["conjur.org/conjur-secrets.out"] = "- v: " + id + "\n"
				secret.Annotations["conjur.org/secret-file-template-configmap.out"] = "layout/t"
			}
		})
	})
}

// timeFill is from before the start of the process until all Secrets are filled.
func (s *side) timeFill() (seconds float64) {
	begin := time.Now()
	s.start()
	for i := range benchSize(s.TB) {
		s.seen.await(s.TB, scaleName(i), "value", s.want(i))
	}
	return time.Since(begin).Seconds()
}

func (s *side) timeCreation(i int) time.Duration {
	name := fmt.Sprintf("t%d", i) // after those with the template
	s.secret(name, map[string]string{"value": "new"})
	begin := time.Now()
	return s.seen.await(s.TB, name, "value", s.want(-1)).Sub(begin)
}

// timeEdit is until the last of the Secrets with the template is written.
func (s *side) timeEdit(i int) time.Duration {
	text := strconv.Itoa(i + 1)
	s.template("layout", "t", text)
	begin := time.Now()
	var last time.Time
	for j := range min(scaleTemplated, benchSize(s.TB)) {
		last = slices.MaxFunc([]time.Time{last, s.seen.await(s.TB, scaleName(j), "out", text)}, time.Time.Compare)
	}
	return last.Sub(begin)
}

// timeChange is from the first to the last of the same Secrets with a new value.
func (s *side) timeChange() time.Duration {
	var ids []string
	for i := range min(scaleTemplated, benchSize(s.TB)) {
		ids = append(ids, fmt.Sprintf("app/var%05d", i))
	}
	s.Renew(ids...)
	var times []time.Time
	for i := range ids {
		times = append(times, s.seen.await(s.TB, scaleName(i), "value", s.want(i)))
	}
	return slices.MaxFunc(times, time.Time.Compare).Sub(slices.MinFunc(times, time.Time.Compare))
}

// cpuOf measures sides that have nothing to do, at the same time, in milliseconds a second.
func cpuOf(sides ...*side) (idle []float64) {
	for _, s := range sides {
		idle = append(idle, -s.process.CPU().Seconds())
	}
	time.Sleep(scaleIdle) // what is measured is what happens meanwhile
	for i, s := range sides {
		idle[i] = (idle[i] + s.process.CPU().Seconds()) * 1000 / scaleIdle.Seconds()
	}
	return idle
}

// restart measures a start of Syncer when all Secrets are up to date, and one of the
// bare program, which then only lists.
func (s *side) restart(bare *side) {
	s.process.Stop()
	begin := time.Now()
	bare.run()
	listed := time.Since(begin)
	bare.process.Stop()
	s.count("restart", func() { s.run() }, fmt.Sprintf("; the bare program listed them in %.2f s", listed.Seconds()))
}

// handOver measures a change of the leader when all Secrets are up to date.
func (s *side) handOver() {
	first := s.process
	s.process = s.standby()
	s.count("change of leader", func() {
		first.Stop()
		eventually(s, "the second to lead", func() bool {
			_, metrics := s.get("/metrics")
			return strings.Contains(metrics, "\nsyncer_leader 1\n")
		})
		eventually(s, "all proven", s.ready)
	}, "")
	s.process.Stop()
}

// count prints the time and the requests until all Secrets are proven.
func (s *side) count(what string, do func(), more string) {
	begin, before := time.Now(), s.Server.Counts()
	do()
	took, after := time.Since(begin), s.Server.Counts()
	verbs := map[string]int{}
	for _, c := range plane.Calls(s, kubetest.ByUser(s.user()), kubetest.Since(begin)) {
		if c.Resource != "leases" {
			verbs[c.Verb+" "+c.Resource]++
		}
	}
	var list []string
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		list = append(list, fmt.Sprintf("%d %s", verbs[verb], verb))
	}
	fmt.Printf("%s: %.2f s until all are proven; to the API server: %s; to Conjur: %d reads, %d log-ins%s\n", what, took.Seconds(),
		strings.Join(list, ", "), after.Data-before.Data, after.Authentications-before.Authentications, more)
}
