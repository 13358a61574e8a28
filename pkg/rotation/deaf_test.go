package rotation

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// deaf is an outside that cannot say who uses a version.
type deaf struct {
	*outside
	is atomic.Bool
}

func (d *deaf) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	if d.is.Load() {
		return nil, errors.New("the service is away")
	}
	return d.outside.InUse(ctx, v)
}

// TestCommandsCountWhileNobodyKnowsWhoUsesAVersion: they do not hang on that question. The
// gate stays shut, and a look still says how far the set is.
func TestCommandsCountWhileNobodyKnowsWhoUsesAVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &deaf{outside: &outside{accepts: map[string]string{}, inUse: []string{"a session of shop"}}}
	set := s.logins(o.outside)
	set.Actuator = o
	r, heard := s.rotator(s.client, "me", set)
	run(t, r)
	first, _ := s.until("a first login", idleWith("")).Primary()
	s.command("now", versions.Command{})
	s.until("a second login", func(d *versions.Document) bool { return d.Stage() == "switch" })
	o.is.Store(true)
	for _, c := range []struct {
		command  versions.Command
		rejected bool
	}{
		{versions.Command{Verb: "abort"}, true},
		{versions.Command{Verb: "pause"}, false},
		{versions.Command{Verb: "resume"}, false},
		{versions.Command{Verb: "rollback"}, false},
	} {
		c.command.At = time.Now()
		_, err := Set{Conjur: s.reader, ID: "jwt"}.Command(t.Context(), c.command, time.Minute, nil)
		if errors.Is(err, ErrRejected) != c.rejected || err != nil && !c.rejected {
			t.Fatalf("%s: %v", c.command.Verb, err)
		}
	}
	back, _ := s.until("the way back", func(d *versions.Document) bool { p, _ := d.Primary(); return p.ID == first.ID }).Primary()
	proctest.Eventually(t, "why it waits", func() bool { return strings.Contains(heard.reasons(), "the service is away") })
	looker, _ := s.rotator(s.reader, "me", set)
	report := looker.Look(t.Context())[0]
	if !strings.Contains(report.Problem, "the service is away") || report.Stage != "switch" || report.Primary != back.ID || report.Since.IsZero() {
		t.Errorf("the look says %+v", report)
	}
	second := s.doc().Versions[0]
	forced := versions.Command{Verb: "retire", Version: second.ID, Reason: "leak", At: time.Now()}
	if _, err := (Set{Conjur: s.reader, ID: "jwt"}).Command(t.Context(), forced, time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	s.until("the second one is refused", func(d *versions.Document) bool { return d.Stage() == "idle" })
}
