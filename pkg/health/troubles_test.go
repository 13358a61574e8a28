package health_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/health"
)

func TestALastingErrorIsLoggedWhenItBeginsHourlyAndWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		troubles := health.NewTroubles(zap.New(core))
		for range 3*3600 - 1 { // each second for just under three hours
			troubles.Report("poll", errors.New("no route to host"))
			time.Sleep(time.Second)
		}
		if n := logs.FilterMessage("Failing").Len(); n != 3 {
			t.Errorf("logged %d times in three hours, want 3", n)
		}
		troubles.Report("poll", nil)
		troubles.Report("poll", nil)
		if n := logs.FilterMessage("Recovered").Len(); n != 1 {
			t.Errorf("the end was logged %d times, want once", n)
		}
		troubles.Report("poll", errors.New("no route to host"))
		if n := logs.FilterMessage("Failing").Len(); n != 4 {
			t.Errorf("a new beginning was not logged: %d", n)
		}
	})
}

// A template that is invalid is not tried again before it changes, so its next error
// has only one chance to be logged.
func TestAnotherErrorIsLoggedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		troubles := health.NewTroubles(zap.New(core))
		for _, text := range []string{"no function one", "no function two", "no function two", "no function three"} {
			troubles.Report("file/a", errors.New(text))
			time.Sleep(time.Second)
		}
		var got []any
		for _, entry := range logs.All() {
			got = append(got, entry.ContextMap()["error"])
		}
		if want := "[no function one no function two no function three]"; fmt.Sprint(got) != want {
			t.Errorf("logged %v, want %v", got, want)
		}
	})
}

func TestAnErrorThatKeepsChangingIsLoggedThreeTimesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		troubles := health.NewTroubles(zap.New(core))
		for i := range 120 {
			troubles.Report("file/a", errors.New([]string{"time-out", "reset"}[i%2]))
			time.Sleep(time.Second)
		}
		if n := logs.Len(); n != 6 {
			t.Errorf("logged %d times in two minutes, want 6", n)
		}
	})
}

// What works is no failure, and a day of it is one line.
func TestARemarkIsOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		troubles := health.NewTroubles(zap.New(core))
		lines := func(want string) {
			t.Helper()
			var got []string
			for _, entry := range logs.TakeAll() {
				got = append(got, entry.Level.String()+" "+entry.Message)
			}
			if fmt.Sprint(got) != want {
				t.Errorf("logged %v, want %s", got, want)
			}
		}
		for range 24 * 60 {
			troubles.Remark("watch", errors.New("grant the verb watch"))
			time.Sleep(time.Minute)
		}
		lines("[warn Limited]")
		troubles.Report("watch", errors.New("refused"))
		lines("[error Failing]")
		troubles.Remark("watch", errors.New("grant the verb watch"))
		lines("[warn Limited]")
		troubles.Report("watch", nil)
		lines("[info Recovered]")
	})
}

func TestSubjectsAreKeptApart(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	troubles := health.NewTroubles(zap.New(core))
	troubles.Report("file/a", errors.New("x"))
	troubles.Report("file/b", errors.New("x"))
	troubles.Report("file/c", nil)
	troubles.Forget("file/b")
	troubles.Report("file/b", nil)
	if n := logs.Len(); n != 2 {
		t.Errorf("logged %d lines, want those of a and b", n)
	}
}
