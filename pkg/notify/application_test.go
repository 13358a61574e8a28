package notify_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
)

// telling adds a teller to an application that notes in told when it was
// called, and gives an error.
func telling(a *app, told *[]string, name string, err error) {
	a.notifiers = append(a.notifiers, func(context.Context) error {
		*told = append(*told, name)
		return err
	})
	a.SetNotifiers(a.notifiers...)
}

func TestFurtherWaysComeAfterTheSentinelFileEachTime(t *testing.T) {
	dir := t.TempDir()
	a, told := application(t, dir)
	telling(a, told, "signal", nil)
	telling(a, told, "command", nil)
	writing(t, a)()
	must(t, a.Updated(t.Context())) // not provided for yet
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())
	for range 2 {
		writing(t, a)()
		must(t, a.Updated(t.Context()))
	}
	want := []string{notify.ProvidedFile, notify.UpdatedFile, "signal", "command", notify.UpdatedFile, "signal", "command"}
	if !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
}

func TestWhatAProcessDidNotLiveToTellIsToldInFurtherWaysToo(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	telling(a, told, "signal", nil)
	must(t, a.Recover(t.Context()))
	if want := []string{notify.UpdatedFile, "signal"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
}

func TestAWayThatFailsIsReportedAndDoesNotStopTheOthers(t *testing.T) {
	dir := t.TempDir()
	a, told := provided(t, dir)
	broken := errors.New("nobody to signal")
	telling(a, told, "broken", broken)
	telling(a, told, "signal", nil)
	writing(t, a)()
	if err := a.Updated(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if want := []string{notify.UpdatedFile, "broken", "signal"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}

	// It would fail at each start: nothing is told again for it.
	a, told = application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) > 0 {
		t.Errorf("told %q once more", *told)
	}
}

func TestWhatFailedInRecoveryIsNotToldForEver(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	writing(t, a)()
	a, told := application(t, dir)
	broken := errors.New("nobody to signal")
	telling(a, told, "broken", broken)
	if err := a.Recover(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	a, told = application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) > 0 {
		t.Errorf("told %q once more", *told)
	}
}

func TestARequestIsTakenOnce(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	take := func(want bool) {
		t.Helper()
		if got, err := status.TakeRequested(); err != nil || got != want {
			t.Errorf("there is a request: %v (%v), want %v", got, err, want)
		}
	}
	take(false)
	must(t, os.WriteFile(filepath.Join(dir, notify.RequestedFile), nil, 0o644))
	take(true)
	take(false)
}
