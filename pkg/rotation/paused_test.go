package rotation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestAPausedSetAnswers what it does not do, so that "resume" can be sent.
func TestAPausedSetAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	run(t, r)
	s.until("a first key", idleWith(""))
	set := Set{Conjur: s.reader, ID: "jwt"}
	of := func(verb string) (c versions.Command) {
		if c = (versions.Command{Verb: verb, At: time.Now()}); verb == "retire" || verb == "promote" {
			c.Version, c.Reason = "x", "leak"
		}
		return c
	}
	const no = `"resume" it first`
	for _, c := range []struct{ verb, refused string }{
		{"pause", ""}, {"now", no}, {"abort", no}, {"rollback", no}, {"retire", no}, {"promote", no}, {"pause", ""}, {"resume", ""}, {"pause", ""},
	} {
		_, err := set.Command(t.Context(), of(c.verb), time.Minute, nil)
		if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), c.refused)) {
			t.Fatalf("%s: %v", c.verb, err)
		}
	}
	if err := set.SendCommand(t.Context(), of("now")); err != nil { // nobody waits for its answer
		t.Fatal(err)
	}
	if _, err := set.Command(t.Context(), of("resume"), time.Minute, nil); err != nil {
		t.Fatal(err)
	}
}
