package records

import (
	"fmt"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// Of the Secrets that are gone only so many are remembered, the last ones; of
// those that are there, or are there again, all.
func TestRememberedRevisions(t *testing.T) {
	var set Set
	lane := set.Lane("")
	secret := func(i int) *targets.Target { return kube(fmt.Sprint(i), nil) }
	note := func(i int, revision Revision) {
		lane.Put(secret(i))
		r, _ := lane.Begin(secret(i).Key)
		r.Status.Revision = revision
		lane.Settle(r)
	}
	leave := func(i int) { lane.Delete(secret(i).Key) }
	known := func(i int) bool {
		lane.Put(secret(i))
		r, _ := lane.Begin(secret(i).Key)
		lane.Settle(r)
		return r.Status.Revision.Stamp.Number == "7"
	}
	seven := Revision{Stamp: Stamp{Number: "7"}}
	for i := range 2*mostLeft + 2 {
		note(i, seven)
	}
	leave(0)
	note(0, seven)
	for i := range mostLeft + 1 {
		leave(i + 1)
		leave(i + 1) // told twice
	}
	if n := len(set.left.byKey); n != mostLeft || len(set.left.order) != n {
		t.Errorf("%d are remembered", n)
	}
	if !known(0) || known(1) || !known(2) || !known(mostLeft+1) || !known(2*mostLeft+1) {
		t.Errorf("known: 0 %t, 1 %t, 2 %t, last that went %t, last %t", known(0), known(1), known(2), known(mostLeft+1), known(2*mostLeft+1))
	}
	note(-1, Revision{})
	leave(-1)
	if known(-1) {
		t.Error("a Secret without a revision is remembered")
	}
}
