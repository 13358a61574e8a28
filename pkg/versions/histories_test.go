package versions

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var histories = flag.Int("histories", usualHistories, "how many random histories are lived through")

// TestHistories draws long histories of what the model walks to the end for
// three versions only: more versions, every command, both engines.
func TestHistories(t *testing.T) {
	const together = 250 // histories that share what they have asked Next
	acts := 0
	for seed := 0; seed < *histories; seed += together {
		r := rand.New(rand.NewPCG(uint64(seed), 29))
		m := newModel(rules{outside: r.IntN(2) == 0, compare: r.IntN(2) == 0, commands: []uint8{1, 2, 5}, ids: 12})
		if m.late = m.compare; !m.compare {
			m.lease, m.passes = true, 1
		}
		for i := range together {
			acts += m.history(t, r)
			if t.Failed() {
				t.Fatalf("history %d of seed %d, %+v", i, seed, m.rules)
			}
		}
	}
	t.Logf("%d histories, %d acts", *histories, acts)
}

func (m *model) history(t *testing.T, r *rand.Rand) (acts int) {
	w := m.start()
	var story []string
	var buf []act
	for acts = range 120 {
		buf = m.acts(w, buf[:0])
		a := buf[r.IntN(len(buf))]
		if a.name == "crashes, or its request is lost" && r.IntN(4) != 0 {
			continue
		}
		w = a.to
		story = append(story, a.name+"\n\t"+fmt.Sprint(w))
		if wrong := m.judge(w); wrong != "" {
			t.Errorf("%s:\n%s\n%s", wrong, strings.Join(story, "\n"), m.describe(w))
			return acts
		}
	}
	if wrong := m.recovers(w, map[world]bool{}); wrong != "" {
		t.Errorf("%s:\n%s\n%s", wrong, strings.Join(story, "\n"), m.describe(w))
	}
	return acts
}
