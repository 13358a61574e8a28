package versions

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/test/length"
)

var histories = length.Flag("histories", usualHistories, 1_000, "how many random histories are lived through")

// TestHistories draws long histories of what the model walks to the end for
// three versions only: more versions, every command, both engines.
func TestHistories(t *testing.T) {
	const together = 1000 // histories that share what they have asked Next
	var acts, next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := next.Add(together) - together; seed < int64(histories()) && !t.Failed(); seed = next.Add(together) - together {
				r := rand.New(rand.NewPCG(uint64(seed), 29))
				m := newModel(rules{outside: r.IntN(2) == 0, compare: r.IntN(2) == 0, commands: []uint8{1, 2, 5}, ids: 12})
				if m.late = m.compare; !m.compare {
					m.lease, m.passes = true, 1
				}
				m.dice = r
				for i := range min(together, histories()-int(seed)) {
					n, wrong := m.history(r)
					acts.Add(int64(n))
					if wrong != "" {
						t.Errorf("history %d of seed %d, %+v: %s", i, seed, m.rules, wrong)
						return
					}
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d histories, %d acts", histories(), acts.Load())
}

// history lives through one, and returns how many acts it had and what went wrong.
func (m *model) history(r *rand.Rand) (acts int, wrong string) {
	w := m.start()
	var names [120]string
	var worlds [120]world
	var buf []act
	tell := func(wrong string) string {
		var story strings.Builder
		for i, name := range names[:acts] {
			fmt.Fprintf(&story, "\n%s\n\t%s", name, m.describe(worlds[i]))
		}
		return wrong + ":" + story.String()
	}
	for range names {
		buf = m.acts(w, buf[:0])
		if len(buf) == 0 {
			continue
		}
		a := buf[r.IntN(len(buf))]
		if a.name == "crashes, or its request is lost" && r.IntN(4) != 0 {
			continue
		}
		w = a.to
		names[acts], worlds[acts] = a.name, w
		acts++
		if wrong := m.judge(w); wrong != "" {
			return acts, tell(wrong)
		}
	}
	if wrong := m.recovers(w, map[world]bool{}); wrong != "" {
		return acts, tell(wrong)
	}
	return acts, ""
}
