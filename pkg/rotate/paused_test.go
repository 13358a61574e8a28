package rotate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/versions"
)

// TestAPausedSetAnswers what it does not do, so that "resume" can be sent.
func TestAPausedSetAnswers(t *testing.T) {
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	run(t, r)
	s.until("a first key", idleWith(""))
	command := func(verb string) error {
		_, err := Set{Conjur: s.reader, ID: "jwt"}.Command(t.Context(), versions.Command{Verb: verb, At: time.Now()}, time.Minute)
		return err
	}
	for _, c := range []struct{ verb, refused string }{{"pause", ""}, {"now", `"resume" it first`}, {"pause", ""}, {"resume", ""}, {"now", ""}} {
		err := command(c.verb)
		if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), c.refused)) {
			t.Fatalf("%s: %v", c.verb, err)
		}
	}
}
