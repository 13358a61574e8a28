package workers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/workers"
)

func TestPermanent(t *testing.T) {
	render, invalid := &workers.RenderError{Err: errors.New("x")}, &workers.InvalidError{Faults: []string{"x"}}
	revoked, unknown := &workers.RevokedError{Errs: []error{errors.New("x")}}, &workers.UnknownError{Errs: []error{render}}
	refused := &sinks.RefusedError{}
	for _, c := range []struct {
		err             error
		polled, unasked bool // with revoked, and without
	}{
		{nil, false, false},
		{errors.New("status 503"), false, false},
		{render, true, true},
		{invalid, true, true},
		{refused, true, true},
		{fmt.Errorf("writing secret/a/b: %w", refused), true, true},
		{&sinks.MissingError{}, false, false},
		{revoked, true, false},
		{unknown, false, false}, // whatever it wraps
		{errors.Join(render, invalid), true, true},
		{errors.Join(render, revoked), true, false},
		{errors.Join(render, unknown), false, false},
		{errors.Join(revoked, errors.New("status 503")), false, false},
	} {
		if got := [2]bool{workers.Permanent(c.err, true), workers.Permanent(c.err, false)}; got != [2]bool{c.polled, c.unasked} {
			t.Errorf("%v: %v, want %v and %v", c.err, got, c.polled, c.unasked)
		}
	}
}

// TestBoundsOfTheStart: a variable that is missing for a minute awaits the poll.
func TestBoundsOfTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for less := time.Duration(-1); less <= 1; less++ {
			since := time.Now().Add(-time.Minute - less)
			seen, unseen := &variables.SuspectError{Observations: 1, FirstSeen: since}, &variables.SuspectError{FirstSeen: since}
			if workers.AwaitsPoll(seen) != (less >= 0) || workers.AwaitsPoll(unseen) {
				t.Errorf("the bound%+d: awaits the poll %t, and unseen %t", less, workers.AwaitsPoll(seen), workers.AwaitsPoll(unseen))
			}
			if all := errors.Join(seen, seen); workers.AwaitsPoll(all) != (less >= 0) || workers.AwaitsPoll(errors.Join(seen, unseen)) {
				t.Errorf("the bound%+d: several await the poll %t", less, workers.AwaitsPoll(all))
			}
		}
	})
}

func TestErrorsShowAFewOfMany(t *testing.T) {
	var names []string
	var errs []error
	for i := range 1000 {
		names, errs = append(names, fmt.Sprint("name", i)), append(errs, fmt.Errorf("error %d", i))
	}
	for _, err := range []error{
		&workers.UnknownError{Key: "k", Errs: errs},
		&workers.RevokedError{Key: "k", Parts: names, Errs: errs},
		&workers.InvalidError{Key: "k", Faults: names},
	} {
		if text := err.Error(); len(text) > 300 || !strings.Contains(text, "and 995 more") {
			t.Errorf("%T says %.400q", err, text)
		}
	}
}
