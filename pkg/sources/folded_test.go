package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestManyTroublesAreOneUntilTheLastHasGone(t *testing.T) {
	var f folded
	var got []string
	note := func(watch string, err error) {
		f.note(func(subject string, err error) { got = append(got, fmt.Sprint(subject, ": ", err)) }, "watches", watch, err)
	}
	note("b", errors.New("refused"))
	note("a", fs.ErrPermission)
	note("b", errors.New("refused"))
	if !f.any(func(err error) bool { return errors.Is(err, fs.ErrPermission) }) {
		t.Error("the kind of a trouble is not found")
	}
	note("a", nil)
	note("b", nil)
	note("c", nil)
	note("", errors.New("closed"))
	want := []string{"watches: b: refused", "watches: a: permission denied", "watches: a: permission denied", "watches: b: refused", "watches: <nil>", "watches: <nil>", "watches: closed"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	if f.any(func(err error) bool { return errors.Is(err, fs.ErrPermission) }) {
		t.Error("a trouble that has gone is found")
	}
}

// The answer to a worker's question may be older than what the watch brought
// while it was on its way.
func TestAnAnswerThatTheWatchOvertookIsNotKept(t *testing.T) {
	var c ConfigMaps
	key := targets.ConfigMapKey{Namespace: "n", Name: "m", Key: "a"}
	older, newer := templateText{there: true, text: "older"}, templateText{there: true, text: "newer"}
	if got := c.keep(key, older); got != older {
		t.Errorf("kept %v", got)
	}
	c.watched(mapOf(key), true)
	c.set(key, newer)
	if got := c.keep(key, older); got != newer || c.texts[key] != newer {
		t.Errorf("kept %v and gave %v, want what the watch brought", c.texts[key], got)
	}
}
