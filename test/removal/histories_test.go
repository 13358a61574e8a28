package removal

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/test/length"
)

var (
	histories = length.Flag("histories", usualHistories, min(usualHistories, 100), "how many random histories are lived through")
	seed      = flag.Uint64("seed", 0, "the one history to live through; 0: as many as there should be")
)

// TestHistories runs random histories of events at a server and a process, which a judge
// checks. For a history that fails, it reports the shortest beginning that fails too.
func TestHistories(t *testing.T) {
	t.Parallel()
	percent := debug.SetGCPercent(800) // there is much garbage and little else
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	if *seed != 0 {
		tryOut(t, *seed)
		return
	}
	var next atomic.Uint64
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1); n <= uint64(histories()) && tryOut(t, n); n = next.Add(1) {
			}
		})
	}
}

// tryOut runs one history. If it fails, tryOut logs what a developer needs to know.
func tryOut(t *testing.T, seed uint64) bool {
	live(t, seed, mostEvents)
	if t.Failed() {
		t.Logf("history %d failed; it alone runs with -args -seed=%[1]d", seed)
		shorten(t, seed)
	}
	return !t.Failed()
}

// shorten finds the least number of events with which a history fails.
func shorten(t *testing.T, seed uint64) {
	for n := 1; n < mostEvents; n++ {
		if !t.Run(fmt.Sprintf("%d events", n), func(t *testing.T) { live(t, seed, n) }) {
			return
		}
	}
}

// A history has 5 to 16 events.
const (
	fewestEvents = 5
	mostEvents   = 16
)

// history is one random history.
type history struct {
	*testing.T
	rand    *rand.Rand
	fate    *rand.Rand // random choices of the followers; nil: there are none
	own     bool       // the node may have node-specific variables
	ids     []string
	given   []*targets.Target
	set     records.Lane
	server  *model
	web     *web
	sink    *parts
	process *pipeline
	judge   *judge
	story   []string // the log of events, for developers
}

func live(t *testing.T, seed uint64, most int) {
	synctest.Test(t, func(t *testing.T) {
		h := begin(t, seed)
		defer func() {
			if t.Failed() {
				t.Logf("history %d:\n%s", seed, strings.Join(h.story, "\n"))
			}
		}()
		h.web.up()
		defer h.web.down()
		h.beginWithout()
		h.process.start(t.Context())
		defer func() { h.process.end() }()
		h.wait(2 * interval)
		for range min(fewestEvents+h.rand.IntN(mostEvents-fewestEvents+1), most) {
			h.happen()
			h.follow()
			h.wait(time.Duration(h.rand.Int64N(int64(4 * interval))))
			if t.Failed() {
				return
			}
		}
		h.end()
	})
}

func begin(t *testing.T, seed uint64) *history {
	h := &history{T: t, rand: rand.New(rand.NewPCG(seed, 0)), own: seed%3 == 1}
	if seed%3 == 0 {
		h.fate = rand.New(rand.NewPCG(seed, 1))
	}
	for i := range 2 + h.rand.IntN(8) {
		h.ids = append(h.ids, fmt.Sprintf("app/v%d", i))
	}
	for i := range 1 + h.rand.IntN(5) {
		target := (&files{}).target(fmt.Sprintf("t%d", i), h.some(1+h.rand.IntN(4))...)
		if h.own {
			h.mayHaveOwn(target)
		}
		h.given = append(h.given, target)
	}
	h.set.Replace(h.given)
	h.ids = ids(h.given...)
	h.server = newModel(h.ids)
	h.server.named = h.rand.IntN(2) == 0
	h.web = &web{handler: h.server}
	h.judge = &judge{history: h, began: time.Now(), settled: map[string]bool{}, last: map[targets.Key]string{}, replaced: map[targets.Key]map[string]time.Time{}}
	h.sink = &parts{removing: h.judge.removing, writing: h.judge.writing, content: map[targets.Key]map[string]string{}, members: map[targets.Key][]string{}, lost: map[targets.Key]bool{}}
	h.process = &pipeline{
		set: &h.set, sink: h.sink, dial: h.web, settled: h.judge.hears,
		grace: []time.Duration{0, 0, 3 * interval / 2}[h.rand.IntN(3)],
	}
	h.tell("%d variables, %d targets, naming all: %v, grace %v", len(h.ids), len(h.given), h.server.named, h.process.grace)
	return h
}

func (h *history) tell(format string, args ...any) {
	h.story = append(h.story, fmt.Sprintf("%8.3fs ", time.Since(h.judge.began).Seconds())+fmt.Sprintf(format, args...))
}

// some returns n of the variables, or all.
func (h *history) some(n int) []string {
	ids := slices.Clone(h.ids)
	h.rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(n, len(ids))]
}

func (h *history) wait(d time.Duration) {
	time.Sleep(d)
	h.judge.look()
}

// happen causes one event.
func (h *history) happen() {
	switch n := h.rand.IntN(100); {
	case n < 20:
		h.change("set", h.some(1+h.rand.IntN(2)), there, true)
	case n < 45:
		h.change("revoke", h.some(1+h.rand.IntN(2)), h.away(), false)
	case n < 58:
		h.change("restore", h.some(1+h.rand.IntN(3)), there, h.rand.IntN(2) == 0)
	case n < 63:
		h.change("lose most", h.some(max(len(h.ids)-h.rand.IntN(3), 1)), h.away(), false)
	case n < 70:
		h.change("restore all", h.ids, there, false)
	case n < 80:
		h.break_()
	case n < 86:
		h.restartProcess()
	case n < 91:
		h.restartServer()
	case n < 95:
		h.server.with(func() { h.server.noHost = !h.server.noHost })
		h.judge.mends()
		h.tell("the identity is deleted, or back")
	default:
		key := h.set.Keys()[h.rand.IntN(len(h.set.Keys()))]
		h.sink.drop(key)
		h.judge.mends()
		h.tell("somebody deletes %s", key)
	}
	h.judge.note()
}

func (h *history) away() state { return []state{missing, forbidden, invisible}[h.rand.IntN(3)] }

func (h *history) change(what string, ids []string, s state, renew bool) {
	values := map[string]string{}
	for _, id := range ids {
		values[id] = ""
		if renew {
			values[id] = fmt.Sprintf("%x of %s", h.rand.Uint64(), id)
		}
	}
	h.server.change(s, values)
	slices.Sort(ids)
	h.tell("%s %v (%s)", what, ids, s)
}

// break_ begins a fault, or ends the present one.
func (h *history) break_() {
	f := &faults[h.rand.IntN(len(faults))]
	h.server.with(func() {
		if h.server.fault != nil {
			f = nil
		}
		h.server.fault = f
	})
	if f != nil {
		h.tell("fault: %s", f.name)
	} else {
		h.tell("the fault is over")
	}
	h.judge.mends()
}

func (h *history) restartProcess() {
	h.process.end()
	gap := time.Duration(h.rand.Int64N(int64(2 * interval)))
	time.Sleep(gap)
	once := h.rand.IntN(3) == 0
	h.tell("the process starts anew, one that delivers once before it: %v", once)
	if h.own && h.rand.IntN(2) == 0 { // the new process knows nothing from the earlier one
		h.set = records.Lane{}
		h.set.Replace(h.given)
	}
	h.judge.starts()
	if once {
		h.process.once(h.Context())
		h.judge.starts()
	}
	h.process.start(h.Context())
	h.judge.mends()
}

func (h *history) restartServer() {
	h.web.down()
	time.Sleep(time.Duration(h.rand.Int64N(int64(2 * interval))))
	if h.rand.IntN(2) == 0 {
		h.server.with(func() { clear(h.server.tokens) })
	}
	h.web.up()
	h.tell("the server is back")
	h.judge.mends()
}

// end ends all faults. Then the targets must match Conjur within the longest permitted time.
func (h *history) end() {
	h.server.with(func() { h.server.fault, h.server.noHost = nil, false })
	h.server.lag(false)
	h.judge.lags = false
	h.judge.mends()
	h.judge.note()
	h.tell("all is well")
	well, _ := h.judge.healthy()
	limit := h.judge.deadline(well).Add(interval)
	for !h.judge.content() && time.Now().Before(limit) {
		h.wait(interval)
	}
	h.wait(interval)
	h.judge.compareAll("in the end")
}
