package rotation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// showing is targets that show what the test says.
type showing struct {
	shown []Shown
	err   error
}

func (s *showing) Shown(context.Context, string) ([]Shown, error) { return s.shown, s.err }

func (s *showing) Since(context.Context, []string) (time.Time, error) { return time.Time{}, s.err }

// A set notes who shows it, and names those of them that cannot be followed later. Who
// was never noted is nobody's concern.
func TestASetNotesWhoShowsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, heard := s.rotator(s.client, "us", s.keys(nil))
	targets := &showing{err: errors.New("the Secrets are not all known yet")}
	r.config.Targets = targets
	report := func(steps int) Report {
		for range steps {
			r.Sync(t.Context(), "jwt")
		}
		return r.Reports()[0]
	}
	if got := report(1); got.Problem != "" || !strings.Contains(got.WaitsFor, "not all known") {
		t.Errorf("of a set that has not begun the status says %+v", got)
	}
	unread := Shown{Namespace: "other", Unread: "Syncer may not read its Secrets", Since: time.Now()}
	targets.shown, targets.err = []Shown{{Namespace: "shop", Name: "keys"}, unread}, nil
	if got := report(5); !slices.Equal(got.Shown, []string{"shop"}) || got.Unread != nil {
		t.Errorf("the set notes %q, and that it cannot follow %+v", got.Shown, got.Unread)
	}
	targets.shown[1] = Shown{Namespace: "other", Name: "keys"}
	before := s.doc().Step
	if got := report(3); !slices.Equal(got.Shown, []string{"other", "shop"}) || s.doc().Step != before+1 {
		t.Errorf("after %d writes the set notes %q", s.doc().Step-before, got.Shown)
	}
	targets.shown[1] = unread
	if got := report(3); len(got.Unread) != 1 || got.Unread[0].Namespace != "other" || !slices.Contains(got.Shown, "other") {
		t.Errorf("of a namespace that cannot be followed the status says %+v", got)
	}
	named := 0
	for _, e := range heard.all {
		if e.Warning && strings.Contains(e.Message, "namespace other") {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d Events name the namespace", named)
	}
}
