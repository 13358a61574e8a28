package sources_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/test/proctest"
)

// requesting watches a folder for the file "request" until the test ends, and
// gives what comes of it: a nil for each request, or the error of a look.
func requesting(t *testing.T, dir string, interval time.Duration) <-chan error {
	t.Helper()
	got := make(chan error, 100)
	r := &sources.Requests{
		Folder: dir, Interval: interval,
		Application: application{dir, got},
		Reporter: reportFunc(func(_ string, err error) {
			if err != nil {
				got <- err
			}
		}),
	}
	running(t, r.Run)
	return got
}

// application asks by a file in a folder.
type application struct {
	dir string
	got chan<- error
}

func (a application) TakeRequested() (bool, error) {
	err := os.Remove(filepath.Join(a.dir, "request"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (a application) Requested() { a.got <- nil }

func awaitRequest(t *testing.T, got <-chan error) {
	t.Helper()
	select {
	case err := <-got:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(deadline):
		t.Fatal("the request was not seen")
	}
}

func TestARequestIsTakenUpWhenItCameBeforeTheWatchAndAfter(t *testing.T) {
	for name, interval := range map[string]time.Duration{"by event": time.Hour, "by looking": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "request"), "")
			got := requesting(t, dir, interval)
			for range 3 {
				awaitRequest(t, got)
				if _, err := os.Stat(filepath.Join(dir, "request")); err == nil {
					t.Error("the request is still there")
				}
				write(t, filepath.Join(dir, "request"), "")
			}
			awaitRequest(t, got)
			if len(got) > 0 {
				t.Error("a request was taken up twice")
			}
		})
	}
}

func TestARequestThatCannotBeTakenAwayIsReportedAndNotTakenUp(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "request", "file"), "") // a folder that is not empty
	got := requesting(t, dir, 10*time.Millisecond)
	for range 4 {
		select {
		case err := <-got:
			if err == nil {
				t.Error("it was taken up")
			}
		case <-time.After(deadline):
			t.Fatal("it was not reported")
		}
	}
}

// An application that asks in a loop is looked at once a second.
func TestRequestsInALoopAreTakenUpOnceASecond(t *testing.T) {
	dir := t.TempDir()
	begin := time.Now()
	got := requesting(t, dir, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			_ = os.WriteFile(filepath.Join(dir, "request"), nil, 0o600)
		}
	})
	for range 4 {
		awaitRequest(t, got)
	}
	took := time.Since(begin)
	cancel()
	asking.Wait()
	if took < 2*time.Second { // the first look may have been in vain
		t.Errorf("4 requests were taken up within %v", took)
	}
}

// counted counts the looks for a request.
type counted struct {
	application
	looks *atomic.Int32
}

func (c counted) TakeRequested() (bool, error) { c.looks.Add(1); return false, nil }

func TestEventsInTheFolderAreToldAndLooksAreNot(t *testing.T) {
	dir := t.TempDir()
	var changed wake.Wake
	var looks atomic.Int32
	r := &sources.Requests{
		Folder: dir, Interval: time.Millisecond, Application: counted{looks: &looks}, Changed: &changed,
		Reporter: reportFunc(func(string, error) {}),
	}
	running(t, r.Run)
	proctest.Eventually(t, "some looks", func() bool { return looks.Load() > 10 })
	select {
	case <-changed.C():
		t.Error("a look was told as an event")
	default:
	}
	write(t, filepath.Join(dir, "file"), "")
	select {
	case <-changed.C():
	case <-time.After(deadline):
		t.Fatal("the event was not told")
	}
}
