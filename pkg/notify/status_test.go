package notify_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// application makes one with two targets over dir, and the list of what it
// was told.
// app is an application, and what is known of its targets.
type app struct {
	*notify.Application
	set       *records.Lane
	notifiers []notify.Notifier
}

// Delivered has a sync of a target end well, and Failed for a reason.
func (a *app) Delivered(key targets.Key) { a.Failed(key, nil) }
func (a *app) Failed(key targets.Key, why error) {
	r, _ := a.set.Begin(key)
	r.Status.Err = why
	a.set.Settle(r)
}

// sentinels is a log that collects the sentinel files that are written.
type sentinels struct {
	zapcore.LevelEnabler
	told *[]string
}

func (s sentinels) With([]zapcore.Field) zapcore.Core { return s }
func (s sentinels) Sync() error                       { return nil }

func (s sentinels) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, s)
}

func (s sentinels) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	*s.told = append(*s.told, fields[0].String)
	return nil
}

func application(t *testing.T, dir string) (*app, *[]string) {
	t.Helper()
	status, err := notify.NewStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	return of(status, five[:2]...)
}

// of makes the application of a status folder with these targets.
func of(status *notify.Status, keys ...targets.Key) (*app, *[]string) {
	var told []string
	set := &records.Lane{}
	for _, key := range keys {
		set.Put(&targets.Target{Key: key})
	}
	return &app{Application: notify.NewApplication(status, set, zap.New(sentinels{zapcore.DebugLevel, &told})), set: set}, &told
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestProvidedWhenEveryTargetWasDeliveredAndUpdatedOnlyAfter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	a, told := application(t, dir)
	a.Delivered("file/a")
	must(t, a.Updated(t.Context())) // the first writes are no update
	must(t, a.Provided())
	if len(*told) != 0 {
		t.Fatalf("told %v with one of two targets delivered", *told)
	}
	a.Delivered("file/b")
	must(t, a.Updated(t.Context()))
	must(t, a.Provided())
	must(t, a.Provided())
	must(t, a.Updated(t.Context()))
	if want := []string{notify.ProvidedFile, notify.UpdatedFile}; !slices.Equal(*told, want) {
		t.Errorf("told %v, want %v", *told, want)
	}
}

func TestAWriteAfterARestartIsAnUpdate(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())

	a, told := application(t, dir) // the next process, same folder
	must(t, a.Updated(context.Background()))
	if want := []string{notify.UpdatedFile}; !slices.Equal(*told, want) {
		t.Errorf("told %v, want %v", *told, want)
	}
}

// startMachine makes a status folder on a disk look as after a start of the machine.
func startMachine(t *testing.T, dir string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, ".boot"), []byte("another"), 0o600))
}

// scriptSucceeds reports whether the script for a hook succeeds without waiting.
func scriptSucceeds(t *testing.T, dir string) bool {
	t.Helper()
	script, err := os.ReadFile("scripts/conjur-secrets-provided.sh")
	must(t, err)
	return exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(string(script), "left=120", "left=0", 1), "script", dir).Run() == nil
}

// TestNothingIsProvidedWhenTheMachineStarts: a folder on a disk keeps the sentinel files, but
// memory keeps no secret. The probe must not succeed before Syncer has removed them.
func TestNothingIsProvidedWhenTheMachineStarts(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	must(t, notify.OpenStatus(dir).SetProvided()) // by a version that knew no start of the machine
	must(t, a.Recover(t.Context()))
	must(t, a.Updated(t.Context()))
	a, _ = application(t, dir)
	must(t, a.Recover(t.Context()))
	if err := notify.Provided(dir); err != nil || !scriptSucceeds(t, dir) {
		t.Errorf("after another start of the process: %v", err)
	}
	startMachine(t, dir)
	if err := notify.Provided(dir); err == nil || scriptSucceeds(t, dir) {
		t.Error("the probe succeeds before the process has started")
	}
	a, told := application(t, dir)
	must(t, a.Recover(t.Context()))
	for _, name := range []string{notify.ProvidedFile, notify.UpdatedFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	must(t, a.Updated(t.Context()))
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())
	if err := notify.Provided(dir); err != nil || !slices.Equal(*told, []string{notify.ProvidedFile}) {
		t.Errorf("after the delivery: %v, told %v", err, *told)
	}
}

func TestSentinelFilesAreEmptyAndOpenToAll(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "status")
	status, err := notify.NewStatus(dir)
	must(t, err)
	a, _ := of(status, "file/a")
	a.Failed("file/a", errors.New("no"))
	must(t, a.SayMissing())
	info, err := os.Stat(filepath.Join(dir, notify.MissingFile))
	must(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("the names of missing targets have mode %v, want 0644", info.Mode())
	}
	must(t, status.SetProvided())
	must(t, status.SetUpdated())
	if given, err := status.Beat(); !given || err != nil {
		t.Errorf("the first beat: %v, %v", given, err)
	}
	for _, name := range []string{notify.ProvidedFile, notify.UpdatedFile, notify.AliveFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Size() != 0 || info.Mode() != 0o666 {
			t.Errorf("%s has %d bytes and mode %v, want 0 and 0666", name, info.Size(), info.Mode())
		}
	}
	info, err = os.Stat(dir)
	must(t, err)
	if info.Mode() != fs.ModeDir|0o777 {
		t.Errorf("the folder has mode %v, want 0777", info.Mode())
	}
}

func TestUpdatedGetsANewTimestampAndABeatDoesNotTouchWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.SetUpdated())
	if given, err := status.Beat(); !given || err != nil {
		t.Errorf("the first beat: %v, %v", given, err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{notify.UpdatedFile, notify.AliveFile} {
		must(t, os.Chtimes(filepath.Join(dir, name), long, long))
	}
	must(t, status.SetUpdated())
	if given, err := status.Beat(); given || err != nil {
		t.Errorf("a beat that is there already: %v, %v", given, err)
	}
	if info, _ := os.Stat(filepath.Join(dir, notify.UpdatedFile)); !info.ModTime().After(long.Add(time.Minute)) {
		t.Error("a second update left the timestamp as it was")
	}
	if info, _ := os.Stat(filepath.Join(dir, notify.AliveFile)); !info.ModTime().Equal(long) {
		t.Error("a beat touched the file that was there")
	}
}

func TestAStatusFolderThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := notify.NewStatus(filepath.Join(file, "status")); err == nil {
		t.Error("no error for a folder below a file")
	}
}
