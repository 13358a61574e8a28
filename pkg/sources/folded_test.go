package sources

import (
	"errors"
	"fmt"
	"testing"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestManyTroublesAreOneUntilTheLastHasGone(t *testing.T) {
	var f folded
	var got []string
	say := func(word string) Report {
		return func(subject string, err error) { got = append(got, fmt.Sprint(word, " ", subject, ": ", err)) }
	}
	note := func(watch string, err error, limited bool) {
		f.note(say("report"), say("remark"), "watches", watch, trouble{err, limited})
	}
	refused, forbidden := errors.New("refused"), errors.New("forbidden")
	note("b", refused, false)
	note("a", forbidden, true)
	note("0", refused, false)
	note("0", nil, false)
	note("b", nil, false)
	note("c", forbidden, true)
	note("a", nil, false)
	note("c", nil, false)
	note("", forbidden, true)
	want := []string{
		"report watches: b: refused", "report watches: b: refused", "report watches: 0: refused", "report watches: b: refused",
		"remark watches: a: forbidden", "remark watches: a: forbidden", "remark watches: c: forbidden", "report watches: <nil>",
		"remark watches: forbidden",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The answer to a worker's question may be older than what the watch brought
// while it was on its way.
func TestAnAnswerThatAnEventOvertookIsNotGiven(t *testing.T) {
	c := ConfigMaps{Enqueue: func(queue.Hint, ...targets.Key) { t.Error("a hint at what no worker was given") }}
	key := targets.ConfigMapKey{Namespace: "n", Name: "m", Key: "a"}
	older := templateText{there: true, text: "older"}
	_, _, events := c.stored(key)
	c.saw(mapOf(key), nil)
	if c.give(key, older, events) {
		t.Error("the answer was given")
	}
	_, _, events = c.stored(key)
	if !c.give(key, older, events) {
		t.Error("no answer was given")
	}
}
