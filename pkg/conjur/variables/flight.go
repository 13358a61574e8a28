package variables

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/secretsync/syncer/pkg/secret"
)

// flights merges calls of Fetch. Calls that arrive during a flight, or while the rate
// limit delays the next one, share the next one.
type flights struct {
	client *Client

	mu    sync.Mutex
	flies bool // some flight
	next  *flight
}

// flight is one merged fetch. Its callers own its goroutine. It ends when the work
// is done or when all callers have given up. The last one to give up waits for it.
type flight struct {
	ctx     context.Context
	cancel  context.CancelFunc
	ids     []string           // of all callers
	known   map[string]*source // of the only caller; nil if there are several
	callers int
	begun   bool // its goroutine runs
	done    chan struct{}
	answers map[string]Answer // set when done; the last caller wipes them
}

// fetch returns an answer for every id.
func (fs *flights) fetch(ctx context.Context, ids []string, known map[string]*source) map[string]Answer {
	f := fs.join(ctx, ids, known)
	select {
	case <-f.done:
	case <-ctx.Done():
		if last, flying := fs.giveUp(f); last && flying {
			<-f.done
			Wipe(f.answers)
		}
		return all(ids, unknown(ctx.Err()))
	}
	return fs.collect(f, ids)
}

func (fs *flights) join(ctx context.Context, ids []string, known map[string]*source) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.next
	if f == nil {
		f = &flight{known: known, done: make(chan struct{})}
		f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		fs.next = f
	} else {
		f.known = nil // only one caller has the values
	}
	f.callers++
	f.ids = append(f.ids, ids...)
	fs.start()
	return f
}

// start starts the next flight, unless one is in progress. The caller holds the
// lock.
func (fs *flights) start() {
	if fs.flies || fs.next == nil {
		return
	}
	fs.flies, fs.next.begun = true, true
	go fs.run(fs.next)
}

func (fs *flights) run(f *flight) {
	fs.client.conjur.AwaitRate(f.ctx)
	ids, known := fs.depart(f)
	answers := fs.client.load(f.ctx, ids, known)
	f.cancel()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.answers = answers
	fs.flies = false
	fs.start()
	close(f.done)
}

// depart returns the variables of a flight, which no call can join any more, and the
// sources that its caller knows.
func (fs *flights) depart(f *flight) ([]string, map[string]*source) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.next == f {
		fs.next = nil
	}
	slices.Sort(f.ids)
	return slices.Compact(f.ids), f.known
}

// giveUp removes a caller from a flight. The last one cancels it. A flight that has
// not started then never starts.
func (fs *flights) giveUp(f *flight) (last, flying bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.callers--
	if f.callers > 0 {
		return false, false
	}
	f.cancel()
	if fs.next == f {
		fs.next = nil
	}
	return true, f.begun
}

// collect returns a caller's answers. Their values are copies, unless nobody else has them.
func (fs *flights) collect(f *flight, ids []string) map[string]Answer {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.callers--
	if f.callers == 0 && len(f.answers) == len(ids) { // exactly this caller's
		return f.answers
	}
	mine := make(map[string]Answer, len(ids))
	for _, id := range ids {
		a := f.answers[id]
		if a.Verdict == Found {
			a.Value = secret.New(bytes.Clone(a.Value.Bytes()))
		}
		mine[id] = a
	}
	if f.callers == 0 {
		Wipe(f.answers)
	}
	return mine
}

// Wipe wipes the values of answers.
func Wipe(answers map[string]Answer) {
	for _, a := range answers {
		a.Value.Wipe()
	}
}

func all(ids []string, a Answer) map[string]Answer {
	answers := make(map[string]Answer, len(ids))
	for _, id := range ids {
		answers[id] = a
	}
	return answers
}
