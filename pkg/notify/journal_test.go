package notify_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
)

// provided is an application that has been provided for.
func provided(t *testing.T, dir string) (*app, *[]string) {
	t.Helper()
	a, told := application(t, dir)
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())
	*told = nil
	return a, told
}

// writing starts a write.
func writing(t *testing.T, a *app) (wrote func()) {
	t.Helper()
	wrote, err := a.Writing()
	must(t, err)
	return wrote
}

func TestWhatAProcessDidNotLiveToTellTheNextOneTells(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if want := []string{notify.UpdatedFile}; !slices.Equal(*told, want) {
		t.Errorf("the next process told %v, want %v", *told, want)
	}
	a, told = application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("the one after it told %v again", *told)
	}
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	writing(t, a)()
	writing(t, a)()
	must(t, a.Updated(t.Context()))

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("told %v again", *told)
	}
}

func TestAWriteThatBeginsAfterAnAnnouncementHasItsOwnMark(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	writing(t, a)()
	must(t, a.Updated(t.Context()))
	writing(t, a) // and here it dies

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 1 {
		t.Errorf("the next process told %v, want the update", *told)
	}
}

// Two writes, each in a round of its own or both in one, at all times relative to each
// other. The process may die at any moment.
func TestWhatWasWrittenIsToldWheneverTheProcessDies(t *testing.T) {
	for _, together := range []bool{false, true} {
		for start := range 9 {
			for _, first := range []time.Duration{1, 3, 6} {
				for _, second := range []time.Duration{1, 3, 6} {
					writes := [2]pairedWrite{{five[0], 0, first}, {five[1], time.Duration(start), second}}
					t.Run(fmt.Sprint(together, writes), func(t *testing.T) { dieAnywhere(t, together, writes) })
				}
			}
		}
	}
}

// pairedWrite is a write. All times are in seconds.
type pairedWrite struct {
	key         targets.Key
	start, last time.Duration
}

// dieAnywhere makes writes, and looks at each moment at what happens if the process dies.
// Each write changes its target half a second before it ends, and its sync settles a
// second later. An announcement takes one and a half seconds.
func dieAnywhere(t *testing.T, together bool, writes [2]pairedWrite) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, _ := provided(t, dir)
		var written, known atomic.Int32
		a.SetNotifiers(func(context.Context) error {
			known.Store(written.Load())
			time.Sleep(1500 * time.Millisecond)
			return nil
		})
		r := &notify.Rounds{Announcer: announcer{announce: func(ctx context.Context) { must(t, a.Updated(ctx)) }}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { r.Run(ctx) })
		if together {
			r.Begin(five[:2])
		}
		for _, w := range writes {
			all.Go(func() {
				time.Sleep(w.start * time.Second)
				r.Started(w.key)
				wrote := writing(t, a)
				time.Sleep(w.last*time.Second - 500*time.Millisecond)
				written.Add(1)
				time.Sleep(500 * time.Millisecond)
				wrote()
				time.Sleep(time.Second)
				r.Settled(w.key, true)
			})
		}
		for range 4 * 25 {
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			marks, err := filepath.Glob(filepath.Join(dir, ".untold-*"))
			must(t, err)
			if len(marks) == 0 && written.Load() != known.Load() {
				t.Fatal("a death now would leave the application without an announcement")
			}
		}
		if marks, _ := filepath.Glob(filepath.Join(dir, ".untold-*")); len(marks) > 0 || known.Load() != 2 {
			t.Errorf("at the end there are the marks %q, and %d of 2 writes are known", marks, known.Load())
		}
	})
}

func TestTheSecondOfTwoWritesWaitsForTheMark(t *testing.T) {
	dir := t.TempDir()
	a, _ := provided(t, dir)
	for range 300 {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				wrote, err := a.Writing()
				if marks, _ := filepath.Glob(filepath.Join(dir, ".untold-*")); err != nil || len(marks) != 1 {
					t.Errorf("while it writes there are the marks %q (%v)", marks, err)
				}
				wrote()
			})
		}
		both.Wait()
		must(t, a.Updated(t.Context()))
	}
}

func TestTheFirstDeliveryIsNoUpdateAlsoAfterADeath(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	writing(t, a)()

	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	if len(*told) != 0 {
		t.Errorf("told %v before the application was provided for", *told)
	}
}

func TestScriptsDoWhatProbesAndHooksNeed(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.InstallScripts())
	unchanged := filepath.Join(dir, "conjur-secrets-unchanged.sh")

	must(t, exec.Command(unchanged).Run())
	must(t, status.SetUpdated())
	if err := exec.Command(unchanged).Run(); err == nil {
		t.Error("the probe succeeds right after an update")
	}
	must(t, exec.Command(unchanged).Run()) // once is enough

	hook := exec.Command(filepath.Join(dir, "conjur-secrets-provided.sh"), dir)
	must(t, hook.Start())
	must(t, status.SetProvided())
	must(t, hook.Wait())
}

func TestScriptsThatAreThereAreNotTouched(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.InstallScripts())
	path := filepath.Join(dir, "conjur-secrets-unchanged.sh")
	before, err := os.Stat(path)
	must(t, err)
	must(t, status.InstallScripts())
	after, err := os.Stat(path)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("an unchanged script was replaced")
	}
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o755)) // in its place
	if err := status.InstallScripts(); err == nil {
		t.Error("a folder was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	must(t, status.InstallScripts())
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 || info.Size() != before.Size() {
		t.Errorf("an old script was not replaced: %v", err)
	}
}
