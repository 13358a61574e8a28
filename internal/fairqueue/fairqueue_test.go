package fairqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/internal/fairqueue"
)

func TestNamespacesTakeTurns(t *testing.T) {
	var due fairqueue.Delayed[string]
	now := time.Now()
	for i := range 5 {
		due.Put("a", fmt.Sprint("a", i), now.Add(-time.Duration(i)*time.Second))
	}
	due.Put("b", "b0", now)
	due.Put("b", "b1", now.Add(time.Minute))
	due.Put("c", "c0", now.Add(time.Hour))
	due.Put("c", "c0", now) // sooner
	due.Put("a", "a4", now) // later
	var taken []string
	for {
		key, wait, ok := due.Take(now)
		if !ok {
			if wait != time.Minute {
				t.Errorf("the next is due in %v", wait)
			}
			break
		}
		taken = append(taken, key)
	}
	slices.Sort(taken[4:6]) // due at one time
	if got := strings.Join(taken, " "); got != "a3 b0 c0 a2 a1 a0 a4" && got != "a3 b0 c0 a2 a0 a1 a4" {
		t.Errorf("taken %s", got)
	}
	if due.Due("b", now) || !due.Due("b", now.Add(time.Minute)) || due.Due("a", now) {
		t.Error("not what is due is said to be")
	}
	if key, _, ok := due.Take(now.Add(time.Minute)); !ok || key != "b1" {
		t.Errorf("%q is due, want b1", key)
	}
	due.Put("b", "b2", now.Add(2*time.Hour))
	due.Put("b", "b1", now.Add(time.Hour)) // again, as after a failure
	if _, wait, ok := due.Take(now); ok || wait != time.Hour {
		t.Errorf("the next is due in %v", wait)
	}
	due.Put("b", "b2", now)
	for _, want := range []string{"b2", "b1"} {
		if key, _, ok := due.Take(now.Add(time.Hour)); !ok || key != want {
			t.Errorf("%q is due, want %s", key, want)
		}
	}
	due.Put("b", "b1", now.Add(time.Hour))
	if _, _, ok := due.Take(now.Add(time.Hour)); !ok {
		t.Error("b1 is not due")
	}
	if _, wait, ok := due.Take(now); ok || wait >= 0 {
		t.Error("there is something left")
	}
}
