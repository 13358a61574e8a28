package workers_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/workers"
)

// A rotation waits for one costly template at most, and not for all that a
// neighbour has.
func TestCostlyTemplatesComeAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, "user: p/user")
		s.give("p/user", "1")
		sink := many{}
		s.syncer.Sink = sink
		var costly []targets.Key
		for i := range 30 {
			def := definitions.SecretDefinition{Namespace: "busy", Name: fmt.Sprint("s", i), Annotations: map[string]string{
				"conjur.org/conjur-secrets.x":       "- u: p/user",
				"conjur.org/secret-file-template.x": `{{$much := repeat 1100000 "x"}}{{secret "u"}}`,
			}}
			target := definitions.FromSecret(def)
			s.set.Put(target)
			costly = append(costly, target.Key)
		}

		most, before := 0, 0 // work of a costly target; done before the other's turn
		hinted, settled := false, false
		var q *queue.Queue
		q, _, end := s.running(workers.PoolConfig{Workers: 1, Listener: listener{func(queue.Item) {}, func(r workers.Outcome) {
			most = max(most, r.Work)
			switch {
			case r.Err != nil:
				t.Error(r.Err)
			case !hinted && sink[r.Key]["x"] == "2": // the first of the second round
				hinted = true
				q.Add(queue.Hint{Wakes: true}, db)
			case r.Key == db:
				settled = true
			case hinted && !settled:
				before += r.Work
			}
		}}})
		defer end()
		q.Add(queue.Hint{Wakes: true}, costly...)
		if err := q.WaitSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.give("p/user", "2")
		q.Add(queue.Hint{Wakes: true}, costly...)
		if err := q.WaitSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !settled || before > most || most == 0 {
			t.Errorf("settled %v, after %d units of work; a costly target takes %d", settled, before, most)
		}
	})
}
