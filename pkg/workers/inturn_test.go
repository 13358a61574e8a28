package workers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// hangs is a Sink that does not end a write in a namespace.
type hangs struct {
	many      // to read
	namespace string

	mu        sync.Mutex
	now, peak int
}

func (h *hangs) Apply(ctx context.Context, r records.Record, _ sinks.Changes) (records.Sight, error) {
	if r.Spec.Key.Namespace() != h.namespace {
		return records.Sight{}, nil
	}
	h.count(1)
	defer h.count(-1)
	<-ctx.Done()
	return r.Status.Sight, ctx.Err()
}

func (h *hangs) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.peak = max(h.peak, h.now)
}

// put defines Secrets in a namespace.
func (s *shop) put(namespace string, names int) (keys []targets.Key) {
	for i := range names {
		target := definitions.FromSecret(definitions.SecretDefinition{
			Namespace: namespace, Name: fmt.Sprint("s", i), HasMap: true, Map: "user: p/user", Annotations: map[string]string{},
		})
		s.set.Put(target)
		keys = append(keys, target.Key)
	}
	return keys
}

// Writes that hang in one namespace delay those of others by a second at most, which came
// at the same time, and not at all when these come later.
func TestANamespaceThatHangsDelaysNoOther(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, "user: p/user")
				s.give("p/user", "1")
				sink := &hangs{many: many{}, namespace: "bad"}
				s.syncer.Sink = sink
				var mu sync.Mutex
				served := map[targets.Key]bool{}
				q, _, end := s.running(workers.PoolConfig{Workers: n, Timeout: time.Hour, Listener: listener{func(queue.Item) {}, func(r workers.Outcome) {
					mu.Lock()
					defer mu.Unlock()
					if r.Err == nil {
						served[r.Key] = true
					}
				}}})
				serves := func(keys []targets.Key) {
					t.Helper()
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					for _, key := range keys {
						if !served[key] {
							t.Errorf("%s is not served", key)
						}
					}
				}
				bad, web, other := s.put("bad", 500), s.put("web", 40), s.put("other", 40)
				for i := range bad { // so that shares contain both
					q.Add(queue.Hint{}, bad[i])
					q.Add(queue.Hint{}, web[i*len(web)/len(bad)])
				}
				time.Sleep(time.Second)
				serves(web)
				q.Add(queue.Hint{}, other...) // while bad has all workers that it may have
				serves(other)
				end()
				if sink.peak > n {
					t.Errorf("%d writes at once in the namespace that hangs, want %d", sink.peak, n)
				}
			})
		})
	}
}

// A namespace with much work delays a Secret of another one by nothing. In order of
// arrival, it would take as long as the share of a worker.
func TestABurstDelaysNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, "user: p/user")
		s.give("p/user", "1")
		s.syncer.Sink = slow{}
		settled := make(chan time.Time, 1)
		q, _, end := s.running(workers.PoolConfig{Workers: 4, Listener: listener{func(queue.Item) {}, func(r workers.Outcome) {
			if r.Key.Namespace() == "other" {
				settled <- time.Now()
			}
		}}})
		defer end()
		other := s.put("other", 20)
		q.Add(queue.Hint{}, s.put("bad", 500)...)
		synctest.Wait()
		for _, key := range other {
			began := time.Now()
			q.Add(queue.Hint{}, key)
			if took := (<-settled).Sub(began); took != slowly {
				t.Errorf("%s took %v, want %v as without the others", key, took, slowly)
			}
		}
		if len(q.Waiting()) < 100 {
			t.Errorf("only %d keys wait, so nothing was compared", len(q.Waiting()))
		}
	})
}

// slow is a Sink whose writes take a while.
type slow struct{ many }

const slowly = 10 * time.Millisecond

func (slow) Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error) {
	time.Sleep(slowly)
	return records.Sight{}, nil
}

// The Secrets of many namespaces travel in few requests, as files do.
func TestManyNamespacesNeedFewFetches(t *testing.T) {
	for _, namespaces := range []int{1, 20, 400} {
		t.Run(fmt.Sprint(namespaces), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, "user: p/user")
				s.give("p/user", "1")
				s.syncer.Sink = &hangs{many: many{}}
				s.values.hook = func(context.Context) { time.Sleep(10 * time.Millisecond) }
				q, _, end := s.running(workers.PoolConfig{Workers: 4})
				var keys []targets.Key
				for i := range namespaces {
					keys = append(keys, s.put(fmt.Sprint("n", i), 400/namespaces)...)
				}
				q.Add(queue.Hint{}, keys...)
				if err := q.WaitDone(t.Context()); err != nil {
					t.Fatal(err)
				}
				end()
				if n := len(s.values.fetches); n > 15 {
					t.Errorf("%d fetches for 400 targets, want a dozen", n)
				}
			})
		})
	}
}
