package sources

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// following plays a watch in virtual time.
type following struct {
	err                  error         // why a try fails
	lasts                time.Duration // how long it does; then a watch stands until it is to end
	tries, looks, failed int
	stands               chan struct{}
}

// run follows for a while, or until the watch stands.
func (f *following) run(t *testing.T, interval time.Duration, named bool, while time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	f.stands = make(chan struct{})
	begin := time.Now()
	w := &follow{
		interval: interval,
		watch: func(ctx context.Context) error {
			f.tries++
			if time.Since(begin) < f.lasts {
				return f.err
			}
			close(f.stands)
			<-ctx.Done()
			return ctx.Err()
		},
		failed: func(error) { f.failed++ },
	}
	if named {
		w.look = func(context.Context) error { f.looks++; return nil }
	}
	ended := make(chan struct{})
	go func() { defer close(ended); w.run(ctx) }()
	select {
	case <-f.stands:
	case <-ctx.Done():
	}
	cancel()
	<-ended
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil)

// One that was just started knows no roles yet.
func TestAnAPIServerThatRefusesForAMomentIsTriedAgainSoon(t *testing.T) {
	for _, err := range []error{forbidden, errors.New("connection refused")} {
		synctest.Test(t, func(t *testing.T) {
			f, begin := following{err: err, lasts: 10 * time.Second}, time.Now()
			f.run(t, time.Hour, false, time.Hour)
			if took := time.Since(begin); took > 10*time.Second+2*longestPause || f.failed == 0 {
				t.Errorf("%v: it took %v, and %d failures were told", err, took, f.failed)
			}
		})
	}
}

func TestARefusalThatLastsMakesFewRequests(t *testing.T) {
	const day = 24 * time.Hour
	for _, interval := range []time.Duration{0, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			every := min(interval, longestInterval)
			if every == 0 {
				every = longestInterval
			}
			label, names := following{err: forbidden, lasts: day}, following{err: forbidden, lasts: day}
			label.run(t, interval, false, day)
			if want := int(day / every); label.tries < want-5 || label.tries > want+10 {
				t.Errorf("interval %v: %d tries a day, want %d", interval, label.tries, want)
			}
			names.run(t, interval, true, day)
			if want := int(day / every); names.looks < want-5 || names.looks > want+10 {
				t.Errorf("interval %v: %d looks a day, want %d", interval, names.looks, want)
			}
			if want := int(day / every / looksPerTry); names.tries < want-5 || names.tries > want+10 {
				t.Errorf("interval %v: %d tries beside looks a day, want %d", interval, names.tries, want)
			}
		})
	}
}

// An ordinary end of a watch, such as a history that is gone, is no trouble;
// but should there be nothing else, it must not become a busy loop.
func TestAWatchThatEndsAgainAndAgainIsNotTriedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		tries := 0
		w := &follow{interval: time.Minute, failed: func(err error) { t.Error(err) }, watch: func(context.Context) error { tries++; return nil }}
		w.run(ctx)
		if most := 2 * int(time.Hour/longestPause); tries > most || tries < most/4 {
			t.Errorf("%d tries an hour", tries)
		}
	})
}
