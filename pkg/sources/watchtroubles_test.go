package sources

import (
	"errors"
	"fmt"
	"testing"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// said is what a Remarker was called with.
type said []string

func (s *said) Report(subject string, err error) { s.say("report", subject, err) }
func (s *said) Remark(subject string, err error) { s.say("remark", subject, err) }

func (s *said) say(word, subject string, err error) {
	*s = append(*s, fmt.Sprint(word, " ", subject, ": ", err))
}

func TestManyTroublesAreOneUntilTheLastHasGone(t *testing.T) {
	var f watchTroubles
	var got said
	note := func(watch string, err error, limited bool) {
		f.recordTrouble(&got, "watches", watch, trouble{err, limited})
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

// noHints is a queue that wants none.
type noHints struct{ *testing.T }

func (t noHints) Enqueue(queue.Hint, ...targets.Key) { t.Error("a hint at what no worker was given") }

// The answer to a worker's question may be older than what the watch brought
// while it was on its way.
func TestAnAnswerThatAnEventOvertookIsNotGiven(t *testing.T) {
	c := ConfigMaps{Queue: noHints{t}}
	key := targets.ConfigMapKey{Namespace: "n", Name: "m", Key: "a"}
	older := templateText{there: true, text: "older"}
	_, _, events, _ := c.stored(key)
	c.saw(mapOf(key), nil)
	if c.give(key, older, events) {
		t.Error("the answer was given")
	}
	_, _, events, _ = c.stored(key)
	if !c.give(key, older, events) {
		t.Error("no answer was given")
	}
}
