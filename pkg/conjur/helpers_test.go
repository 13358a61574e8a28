package conjur_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// names makes n ids.
func names(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("app/v%04d", i)
	}
	return ids
}

// fill gives the variables values.
func (d *double) fill(ids []string) {
	for _, id := range ids {
		d.set(id, "value of "+id)
	}
}

// fetch fetches one variable.
func fetch(t *testing.T, c *conjur.Client, id string) conjur.Answer {
	t.Helper()
	return c.Fetch(t.Context(), []string{id})[id]
}

func wantFound(t *testing.T, a conjur.Answer, value string) {
	t.Helper()
	if a.Verdict != conjur.Found || a.Err != nil || string(a.Value.Bytes()) != value {
		t.Errorf("got %v %q (%v), want %q", a.Verdict, a.Value.Bytes(), a.Err, value)
	}
}

func wantUnknown(t *testing.T, a conjur.Answer) {
	t.Helper()
	if a.Verdict != conjur.Unknown || a.Err == nil || a.Value.Len() != 0 {
		t.Errorf("got %v (%v), want unknown and an error", a.Verdict, a.Err)
	}
}

func wantSuspect(t *testing.T, a conjur.Answer) {
	t.Helper()
	wantUnknown(t, a)
	if _, ok := errors.AsType[*conjur.SuspectError](a.Err); !ok {
		t.Errorf("got %v, want a suspicion", a.Err)
	}
}

func wantGone(t *testing.T, a conjur.Answer, reason conjur.Reason) {
	t.Helper()
	gone, ok := errors.AsType[*conjur.GoneError](a.Err)
	if a.Verdict != conjur.Gone || !ok || gone.Reason != reason {
		t.Errorf("got %v (%v), want gone, %s", a.Verdict, a.Err, reason)
	}
}

// poll checks which variables a poll reports.
func poll(t *testing.T, c *conjur.Client, ids []string, want ...string) {
	t.Helper()
	got, err := c.Changed(t.Context(), ids)
	if err != nil {
		t.Errorf("poll: %v", err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
}

// wantLog checks how many requests of each kind the server got.
func wantLog(t *testing.T, d *double, want map[conjur.Kind]int) {
	t.Helper()
	log := d.log()
	got := map[conjur.Kind]int{}
	for _, a := range log {
		got[a.kind]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

func containsID(r *http.Request, id string) bool {
	return slices.Contains(strings.Split(r.URL.Query().Get("variable_ids"), ","), account+":variable:"+id)
}
