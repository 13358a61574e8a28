package sinks

import (
	"fmt"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Of the Secrets that are gone only so many are remembered, the last ones; of
// those that are there, or are there again, all.
func TestRememberedRevisions(t *testing.T) {
	var r revisions
	key := func(i int) targets.Key { return targets.KubeSecretKey("ns", fmt.Sprint(i)) }
	note := func(i int) {
		r.note(key(i), map[string]string{targets.RevisionAnnotation: "7", "more": "x"}, nil)
	}
	known := func(i int) bool { return r.next(key(i), nil, nil, true, time.Now())[targets.RevisionAnnotation] == "7" }
	for i := range 2*mostGone + 2 {
		note(i)
	}
	r.leave(key(0))
	note(0)
	for i := range mostGone + 1 {
		r.leave(key(i + 1))
		r.leave(key(i + 1)) // told twice
	}
	if !known(0) || known(1) || !known(2) || !known(mostGone+1) || !known(2*mostGone+1) {
		t.Errorf("known: 0 %t, 1 %t, 2 %t, last that went %t, last %t", known(0), known(1), known(2), known(mostGone+1), known(2*mostGone+1))
	}
	if n := len(r.last); n != 2*mostGone+1 {
		t.Errorf("%d are remembered", n)
	}
	r.note(key(-1), map[string]string{"more": "x"}, nil)
	if known(-1) {
		t.Error("a Secret without a revision is remembered")
	}
}
