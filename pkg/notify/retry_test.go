package notify_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
)

// away takes a folder away; back brings it back.
func away(t *testing.T, dir string) (back func()) {
	t.Helper()
	must(t, os.Rename(dir, dir+".away"))
	return func() {
		t.Helper()
		must(t, os.Rename(dir+".away", dir))
	}
}

// retries has an application retry, and checks how that went.
func retries(t *testing.T, a *app, want map[string]bool) {
	t.Helper()
	went := map[string]bool{} // subject → well
	done := a.Retry(t.Context(), func(subject string, err error) { went[subject] = err == nil })
	left := false
	for subject, well := range want {
		left = left || !well
		if got, ok := went[subject]; !ok || got != well {
			t.Errorf("%s: tried %v, and well %v, want %v", subject, ok, got, well)
		}
	}
	if len(went) != len(want) || done == left {
		t.Errorf("done %v, having tried %v, want %v", done, went, want)
	}
}

func wasTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func failing(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error without the folder")
	}
}

func TestAnUpdateThatCouldNotBeToldIsToldLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, told := provided(t, dir)
	retries(t, a, nil)
	back := away(t, dir)
	_, err := a.Writing()
	failing(t, err)
	failing(t, a.Updated(t.Context()))
	retries(t, a, map[string]bool{notify.UpdatedFile: false})
	back()
	retries(t, a, map[string]bool{notify.UpdatedFile: true})
	retries(t, a, nil)
	wasTold(t, *told, notify.UpdatedFile)
}

func TestAnUpdateThatWasToldMeanwhileIsNotToldAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, told := provided(t, dir)
	back := away(t, dir)
	failing(t, a.Updated(t.Context()))
	back()
	must(t, a.Updated(t.Context()))
	retries(t, a, nil)
	wasTold(t, *told, notify.UpdatedFile)
}

func TestWhatTheFolderLackedAtTheStartComesLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	status, err := notify.NewStatus(dir)
	must(t, err)
	a, told := of(status, five[:1]...)
	back := away(t, dir)
	failing(t, status.InstallScripts())
	a.Delivered("file/a")
	failing(t, a.Provided())
	retries(t, a, map[string]bool{"scripts": false, notify.ProvidedFile: false})
	back()
	retries(t, a, map[string]bool{"scripts": true, notify.ProvidedFile: true})
	retries(t, a, nil)
	_, err = os.Stat(filepath.Join(dir, "conjur-secrets-unchanged.sh"))
	must(t, err)
	wasTold(t, *told, notify.ProvidedFile)
}

func TestWhatCouldNotBeRecoveredIsRecoveredLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, _ := provided(t, dir)
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	updated := filepath.Join(dir, notify.UpdatedFile)
	must(t, os.Mkdir(updated, 0o700)) // in the place of the file
	failing(t, a.Recover(t.Context()))
	must(t, os.Remove(updated))
	retries(t, a, map[string]bool{notify.UpdatedFile: true})
	retries(t, a, nil)
	a, _ = application(t, dir)
	must(t, a.Recover(t.Context()))
	wasTold(t, *told, notify.UpdatedFile)
}

func TestMarksThatCouldNotBeListedAreFoundLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, _ := provided(t, dir)
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	back := away(t, dir)
	failing(t, a.Recover(t.Context()))
	back()
	wrote := writing(t, a) // its mark is none of an earlier process
	retries(t, a, map[string]bool{notify.UpdatedFile: true})
	wasTold(t, *told, notify.UpdatedFile)
	wrote()

	a, told = application(t, dir)
	must(t, a.Recover(t.Context()))
	wasTold(t, *told, notify.UpdatedFile)
}

// A mark that could not be made is made for the next write.
func TestTheSecondWriteMakesTheMarkThatTheFirstCouldNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, _ := provided(t, dir)
	back := away(t, dir)
	_, err := a.Writing()
	failing(t, err)
	back()
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	wasTold(t, *told, notify.UpdatedFile)
}

func TestRoundsRetryUntilNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left, tried atomic.Int32
		r := &notify.Rounds{Announcer: announcer{
			announce: func(context.Context) { left.Store(3) },
			retry: func() bool {
				if left.Load() == 0 {
					return true
				}
				tried.Add(1)
				return left.Add(-1) == 0
			},
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		sync1(r, "file/a", true)
		time.Sleep(2 * notify.RetryEvery)
		assertCount(t, "tried", &tried, 3)
		time.Sleep(time.Hour)
		assertCount(t, "tried", &tried, 3)
		sync1(r, "file/a", true)
		synctest.Wait()
		before := tried.Load()
		cancel()
		wg.Wait()
		if n := tried.Load(); n != before+1 {
			t.Errorf("at the end it was tried %d times more, want once", n-before)
		}
	})
}
