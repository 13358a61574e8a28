package rotation

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestAHundredSetsThatAreDueAtOnce are rotated as many in an hour as the budget
// says, by whichever process, until all were.
func TestAHundredSetsThatAreDueAtOnce(t *testing.T) {
	t.Parallel()
	const n, perHour = 100, 50
	var ahead atomic.Int64
	s := newSite(t, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	var policy strings.Builder
	policy.WriteString("- !group all\n- !grant { role: !group all, member: !host rotates }\n")
	for i := range n {
		fmt.Fprintf(&policy, "- !variable s%[1]d\n- !variable s%[1]d/control\n- !permit { role: !group all, privileges: [read, execute, update], resources: [!variable s%[1]d, !variable s%[1]d/control] }\n", i)
	}
	s.Policy(policy.String())
	const old = "20260101t000000"
	by := versions.Entry{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	encoded, err := versions.New("me").Make(old, parts("x"), false, by).Promote(old, by).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var sets []Plan
	for i := range n {
		set := s.keys(nil)
		set.ID, set.Schedule.Every = fmt.Sprintf("s%d", i), 30*24*time.Hour
		s.Set(set.ID, string(encoded))
		s.Set(versions.ControlOf(set.ID), noCommand)
		sets = append(sets, set)
	}
	for hour := 1; hour <= n/perHour; hour++ {
		for range 2 { // the second one knows nothing of the first
			r, _ := s.rotator(s.as("rotates"), "me", sets...)
			r.startLimiter.perHour = perHour
			if err := r.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		rotated := 0
		for _, set := range sets {
			held, err := Set{Conjur: s.reader, ID: set.ID}.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if primary, _ := held.Primary(); primary.ID != old && held.Stage() == "idle" {
				rotated++
			}
		}
		if rotated != hour*perHour {
			t.Fatalf("after %d hours %d sets were rotated", hour, rotated)
		}
		ahead.Add(int64(time.Hour + time.Minute))
	}
}

// TestALateReadGivesNoBudgetBack that the set's own step has used since.
func TestALateReadGivesNoBudgetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	by := versions.Entry{At: now.Add(-24 * time.Hour)}
	doc := versions.New("me").Make("r1", parts("x"), false, by).Promote("r1", by)
	l := startLimiter{perHour: 1, begun: map[string][]time.Time{}}
	l.recordBegun("a", doc, now, false)
	if why := l.barred(&Plan{ID: "a"}, doc, now, true); why != "" {
		t.Fatal(why)
	}
	l.recordBegun("a", doc, now, true) // another set read it before
	if l.barred(&Plan{ID: "b"}, doc, now, true) == "" {
		t.Error("a second version begins within the hour")
	}
}

// TestASetThatCannotBeReadHoldsTheBudget until Conjur has answered.
func TestASetThatCannotBeReadHoldsTheBudget(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Policy("- !variable others\n- !permit { role: !host rotates, privileges: [read, execute], resource: !variable others }\n")
	l := startLimiter{begun: map[string][]time.Time{}}
	for _, id := range []string{"undeclared", "others"} {
		l.sets = append(l.sets, Set{Conjur: s.reader, ID: id})
	}
	s.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/others") {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if err := l.readOthers(t.Context(), time.Now()); err == nil || l.knows("others") || !l.knows("undeclared") {
		t.Errorf("%v, known: others %v, undeclared %v", err, l.knows("others"), l.knows("undeclared"))
	}
	s.Intercept(nil)
	if err := l.readOthers(t.Context(), time.Now()); err != nil || !l.knows("others") {
		t.Errorf("after an answer: %v", err)
	}
}
