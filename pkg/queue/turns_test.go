package queue_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// keysOf makes keys of "namespace/name" for Secrets, and of names for files. A "!" after
// a name says that the key is costly.
func keysOf(q *queue.Queue, names string) (keys []targets.Key) {
	for name := range strings.FieldsSeq(names) {
		name, costly := strings.CutSuffix(name, "!")
		key := targets.FileKey(name)
		if strings.Contains(name, "/") {
			key = targets.Key("secret/" + name)
		}
		if costly {
			q.Costly(key, true)
		}
		keys = append(keys, key)
	}
	return keys
}

// TestWhatAShareContains: others hold keys, some wait, and a worker takes up to four.
// Nothing is taken means that it waits, until all that the others hold is done.
func TestWhatAShareContains(t *testing.T) {
	for name, test := range map[string]struct {
		held, waiting string
		last          bool // no other worker is free
		want          string
	}{
		"a burst comes behind what came later":           {"", "bad/1 bad/2 bad/3 bad/4 shop/1 web/1", false, "bad/1 shop/1 web/1 bad/2"},
		"one namespace, in order of arrival":             {"", "bad/1 bad/2 bad/3 bad/4 bad/5", false, "bad/1 bad/2 bad/3 bad/4"},
		"a namespace without a worker comes first":       {"bad/0", "bad/1 bad/2 shop/1 shop/2", false, "shop/1 shop/2 bad/1 bad/2"},
		"a namespace with a worker gets another one":     {"bad/0", "bad/1 bad/2", false, "bad/1 bad/2"},
		"the last worker only serves others":             {"bad/0", "bad/1 bad/2 shop/1 shop/2", true, "shop/1 shop/2"},
		"the last worker serves several others":          {"bad/0 web/0", "bad/1 shop/1 shop/2 web/1 db/1", true, "shop/1 db/1 shop/2"},
		"the last worker waits for another namespace":    {"bad/0", "bad/1 bad/2", true, ""},
		"the only worker of all takes everything":        {"", "bad/1 bad/2 shop/1", true, "bad/1 shop/1 bad/2"},
		"files are like one namespace":                   {"a", "b c shop/1 d", false, "shop/1 b c d"},
		"files, in order of arrival":                     {"a", "b c d e f", false, "b c d e"},
		"files do not get the last worker":               {"a", "b c", true, ""},
		"a costly key is the last one":                   {"", "bad/1! bad/2! bad/3 shop/1 web/1!", false, "bad/3 shop/1 bad/1!"},
		"costly keys take turns too":                     {"bad/1!", "bad/2! web/1!", false, "web/1!"},
		"a costly key comes after those with a worker":   {"bad/0", "web/1! bad/1", false, "bad/1 web/1!"},
		"the last worker takes costly keys of others":    {"bad/0", "bad/1 web/1! bad/2", true, "web/1!"},
		"the last worker takes no costly key of the bad": {"bad/0", "bad/1! web/1", true, "web/1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *queue.Queue) {
				for _, key := range keysOf(q, test.held) {
					q.Add(change, key)
					takeOne(t, q, key)
				}
				if !test.last {
					q.AnotherIsFree()
				}
				q.Add(change, keysOf(q, test.waiting)...)
				taken := make(chan []targets.Key, 1)
				go func() {
					var keys []targets.Key
					for _, item := range q.Take(upTo(4)) {
						keys = append(keys, item.Key)
					}
					taken <- keys
				}()
				synctest.Wait()
				if len(taken) > 0 || test.want != "" {
					if got, want := <-taken, keysOf(q, test.want); !slices.Equal(got, want) {
						t.Errorf("took %v, want %v", got, want)
					}
					return
				}
				for _, key := range keysOf(q, test.held) {
					q.Done(key, nil)
				}
				if got, want := <-taken, keysOf(q, test.waiting); !slices.Equal(got, want) {
					t.Errorf("took %v in the end, want %v", got, want)
				}
			})
		})
	}
}

// The worker that waits for another namespace takes its key at once when it comes, and
// any key when another worker is free again.
func TestTheLastWorkerWaitsNoLongerThanItMust(t *testing.T) {
	for name, event := range map[string]struct {
		do   func(*queue.Queue)
		want string
	}{
		"another namespace has work": {func(q *queue.Queue) { q.Add(change, "secret/shop/1") }, "secret/shop/1"},
		"another worker is free":     {func(q *queue.Queue) { q.AnotherIsFree() }, "secret/bad/1"},
		"the other share is done":    {func(q *queue.Queue) { q.Done("secret/bad/0", nil) }, "secret/bad/1"},
		"the queue is shut down":     {(*queue.Queue).ShutDown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *queue.Queue) {
				q.Add(change, "secret/bad/0")
				takeOne(t, q, "secret/bad/0")
				q.Add(change, "secret/bad/1")
				began := time.Now()
				time.AfterFunc(time.Minute, func() { event.do(q) })
				var got targets.Key
				if items := q.Take(upTo(1)); items != nil {
					got = items[0].Key
				}
				if waited := time.Since(began); string(got) != event.want || waited != time.Minute {
					t.Errorf("took %q after %v, want %q after a minute", got, waited, event.want)
				}
			})
		})
	}
}
