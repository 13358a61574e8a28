package kube

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// said returns which Events wait to be sent, and takes them.
func said(r *Recorder) (all []string) {
	for len(r.waiting) > 0 {
		e := <-r.waiting
		all = append(all, e.InvolvedObject.Name+" "+e.Reason+" "+e.Message)
	}
	return all
}

func TestTheSameWarningIsSaidAgainWhenItIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&Client{}).NewRecorder("syncer", nil)
		db, web := SecretReference("n", "db", "1"), SecretReference("n", "web", "2")
		say := func(o corev1.ObjectReference, reason, message string, want int) {
			t.Helper()
			r.Event(o, corev1.EventTypeWarning, reason, message)
			if got := said(r); len(got) != want {
				t.Errorf("%s %s %s: said %q, want %d", o.Name, reason, message, got, want)
			}
		}
		say(db, "Synced", "2 keys", 1)
		say(db, "Synced", "2 keys", 0)
		say(web, "Synced", "2 keys", 1)
		say(db, "Synced", "3 keys", 1)
		say(db, "SyncFailed", "3 keys", 1)
		say(db, "Synced", "3 keys", 1)
		say(SecretReference("n", "db", "3"), "Synced", "3 keys", 1) // made anew
		time.Sleep(time.Hour - time.Second)
		say(db, "Synced", "3 keys", 0)
		time.Sleep(time.Second)
		say(db, "Synced", "3 keys", 1)
	})
}

// A second rotation of the same keys is said in the same words.
func TestWhatHappensIsSaidEachTime(t *testing.T) {
	r := (&Client{}).NewRecorder("syncer", nil)
	db := SecretReference("n", "db", "1")
	for range 3 {
		r.Event(db, corev1.EventTypeNormal, "Synced", "Wrote password")
	}
	if got := said(r); len(got) != 3 {
		t.Errorf("said %q, want it three times", got)
	}
}

// A flood of good news is cut off for each namespace and for all together. It cuts off
// neither other reasons nor warnings, and the budget fills again.
func TestGoodNewsHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&Client{}).NewRecorder("syncer", nil)
		flood := func(kind, reason string, namespaces, each, want int) {
			t.Helper()
			for i := range namespaces * each {
				r.Event(SecretReference(fmt.Sprint(i%namespaces), fmt.Sprint(i), ""), kind, reason, "x")
			}
			if got := len(said(r)); got != want {
				t.Errorf("%d of %d Events %s in %d namespaces, want %d", got, namespaces*each, reason, namespaces, want)
			}
		}
		flood(corev1.EventTypeNormal, "Synced", 1, 500, namespaceAtOnce)
		flood(corev1.EventTypeNormal, "Synced", 20, 20, eventsAtOnce-namespaceAtOnce)
		flood(corev1.EventTypeNormal, "Restarted", 1, 1, 1)
		flood(corev1.EventTypeWarning, "SyncFailed", 1, 500, 500)
		time.Sleep(3 * time.Second)
		flood(corev1.EventTypeNormal, "Synced", 1, 20, 3*namespacePerSecond)
		time.Sleep(repeatAfter)
		flood(corev1.EventTypeNormal, "Synced", 1, 500, namespaceAtOnce)
		if n := len(r.budget.namespaces); n != 1 {
			t.Errorf("%d budgets are kept", n)
		}
	})
}

// A dropped message is news all the same: the warning before it may be repeated.
func TestAWarningAfterDroppedGoodNewsIsNews(t *testing.T) {
	r := (&Client{}).NewRecorder("syncer", nil)
	db := SecretReference("n", "db", "1")
	for range 2 * namespaceAtOnce {
		r.Event(db, corev1.EventTypeWarning, "SyncFailed", "no route to host")
		r.Event(db, corev1.EventTypeNormal, "Synced", "Wrote password")
	}
	if got := len(said(r)); got != 3*namespaceAtOnce {
		t.Errorf("said %d, want all %d warnings and %d others", got, 2*namespaceAtOnce, namespaceAtOnce)
	}
}

func TestWhatWasSaidIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&Client{}).NewRecorder("syncer", nil)
		for i := range 1000 {
			r.Event(SecretReference("n", fmt.Sprint(i), ""), corev1.EventTypeWarning, "Synced", "x")
			said(r)
			time.Sleep(time.Minute)
		}
		if n := len(r.said); n > 100 {
			t.Errorf("%d are remembered, want those of about an hour", n)
		}
	})
}

func TestAnEventNeverWaits(t *testing.T) {
	r := (&Client{}).NewRecorder("syncer", nil)
	for range 3 { // what was lost can be said again
		for i := range maxWaiting + 500 {
			r.Event(SecretReference("n", fmt.Sprint(i), ""), corev1.EventTypeWarning, "Synced", "x")
		}
	}
	if got := len(r.waiting); got != maxWaiting {
		t.Errorf("%d wait, want %d", got, maxWaiting)
	}
	if got := r.lost.Load(); got != 3*500 {
		t.Errorf("%d are counted as lost, want %d", got, 3*500)
	}
}
