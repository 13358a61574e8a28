package removal

import (
	"fmt"
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// compare checks that a target matches Conjur.
func (j *judge) compare(t *targets.Target, when string) {
	if got, want := j.history.sink.whole(t.Key), j.wanted(t); got != want {
		j.history.Errorf("%s, %s holds %q, want %q: %s", when, t.Key, got, want, j.facts(t))
	}
}

func (j *judge) compareAll(when string) {
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	for _, t := range j.history.given {
		j.compare(t, when)
	}
}

// content reports whether all targets match Conjur.
func (j *judge) content() bool {
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	return !slices.ContainsFunc(j.history.given, func(t *targets.Target) bool {
		return j.history.sink.whole(t.Key) != j.wanted(t)
	})
}

// wanted is the correct content of a target: nothing, or its variables as JSON.
func (j *judge) wanted(t *targets.Target) string {
	text := "{"
	for i, e := range t.Entries {
		v := j.reads(e)
		if v.state != there {
			return ""
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q:%q", e.Alias, v.value)
	}
	return text + "}"
}

// reads returns the variable that an entry should read.
func (j *judge) reads(e targets.Entry) *truth {
	if own := j.history.server.vars[e.Override]; own != nil && own.state == there {
		return own
	}
	return j.history.server.vars[e.Variable]
}
