package variables

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func tenBytes(string) int { return 10 }

// However ids come and go, the plan asks for each exactly once, in chunks that
// fit, of which most stay as they are.
func TestPlanCoversEachIDOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p plan
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("v%02d", rapid.IntRange(0, 60).Draw(t, "n")) })
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			shared := rapid.SliceOfDistinct(id, rapid.ID).Draw(t, "shared")
			single := rapid.SliceOfNDistinct(id, 0, 3, rapid.ID).Draw(t, "single")
			shared = slices.DeleteFunc(shared, func(id string) bool { return slices.Contains(single, id) })
			slices.Sort(shared)
			room := rapid.SampledFrom([]int{50, 100, 200}).Draw(t, "room")
			p.update(asking(shared, single), room, tenBytes)
			var got []string
			for _, ch := range p.chunks {
				got = append(got, ch.IDs...)
				if !slices.IsSorted(ch.IDs) || ch.size != 10*len(ch.IDs) || len(ch.IDs) == 0 {
					t.Fatalf("chunk %+v", ch)
				}
				if ch.single && (len(ch.IDs) != 1 || !slices.Contains(single, ch.IDs[0]) && !ch.sick) {
					t.Fatalf("single chunk %+v", ch)
				}
			}
			want := slices.Concat(shared, single)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("asks for %v, want %v", got, want)
			}
			// What a poll may do: find trouble, and split.
			var next []*chunk
			for _, ch := range p.chunks {
				ch.sick = rapid.Bool().Draw(t, "sick")
				if len(ch.IDs) > 1 && rapid.Bool().Draw(t, "split") {
					a, b := ch.halves(tenBytes)
					next = append(next, a, b)
					continue
				}
				next = append(next, ch)
			}
			p.replace(next)
		}
	})
}

func TestPlanKeepsETagsOfUntouchedChunks(t *testing.T) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("v%03d", i)
	}
	var p plan
	p.update(asking(ids, nil), 100, tenBytes)
	for _, ch := range p.chunks {
		ch.etag = "x"
	}
	known := func() (n int) {
		for _, ch := range p.chunks {
			if ch.etag != "" {
				n++
			}
		}
		return n
	}
	p.replace(p.chunks)
	for _, step := range []struct {
		ids  []string
		want int
	}{
		{ids, 10},
		{slices.Delete(slices.Clone(ids), 55, 56), 9},
		{ids, 9}, // back to where there is room
		{append(slices.Clone(ids), "w"), 9},
		{ids[10:], 8},
	} {
		p.update(asking(step.ids, nil), 100, tenBytes)
		if known() < step.want {
			t.Errorf("%d chunks are known, want %d", known(), step.want)
		}
	}
}

func TestLineLimit(t *testing.T) {
	l := newLineLimit(8000)
	for _, step := range []struct {
		length, now int
		halved      bool
	}{{7900, 3950, true}, {7900, 3950, true}, {3900, 1950, true}, {1900, 1000, true}, {1000, 1000, false}} {
		if halved := l.refused(step.length); halved != step.halved || l.get() != step.now {
			t.Errorf("after %d bytes: %v, %d; want %v, %d", step.length, halved, l.get(), step.halved, step.now)
		}
	}
	l.restore()
	if l.get() != 8000 {
		t.Errorf("restored to %d", l.get())
	}
}

// asking is a question about variables that were found before.
func asking(shared, single []string) (q question) {
	q.shared[proven], q.single[proven] = shared, single
	return q
}
