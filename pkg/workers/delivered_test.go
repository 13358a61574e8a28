package workers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// delivering is a fixture with file/a delivered, that remembers deliveries.
func delivering(t *testing.T, keep bool) *fixture {
	t.Helper()
	f := newFixture(t, group("a", "x"))
	f.syncer.Policy.KeepDeleted = keep
	f.values.set("x", "1")
	if r := f.syncA(); r.Err != nil || !r.Wrote || r.Restored {
		t.Fatalf("the first sync: %+v", r)
	}
	return f
}

func (f *fixture) syncA() workers.Result { return f.sync("file/a")["file/a"] }

func (f *fixture) delete(name string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

// assertA syncs file/a and checks what came of it.
func (f *fixture) assertA(what string, wrote, restored bool, content string) {
	f.t.Helper()
	r := f.syncA()
	if r.Err != nil || r.Wrote != wrote || r.Restored != restored {
		f.t.Errorf("%s: %+v, want wrote %v and restored %v", what, r, wrote, restored)
	}
	f.assertFile("a.json", content)
}

func TestWhatWasDeletedIsRestoredWithoutBeingNews(t *testing.T) {
	f := delivering(t, false)
	written := 0
	f.syncer.Sink = counting{f.syncer.Sink, &written}
	f.delete("a.json")
	f.assertA("deleted", true, true, `{"x":"1"}`)
	if written > 0 {
		t.Error("a restored file is to be told of")
	}
	f.values.set("x", "2")
	f.delete("a.json")
	f.assertA("deleted and changed", true, false, `{"x":"2"}`)
	if err := os.WriteFile(filepath.Join(f.dir, "a.json"), []byte("other"), 0o640); err != nil {
		t.Fatal(err)
	}
	f.assertA("overwritten", true, false, `{"x":"2"}`)
	if written != 2 {
		t.Errorf("%d writes are to be told of, want 2", written)
	}
}

func TestWhatWasDeletedStaysAwayUntilItChangesOrIsRequested(t *testing.T) {
	f := delivering(t, true)
	f.delete("a.json")
	for range 2 {
		f.assertA("deleted", false, false, "")
	}
	f.values.set("x", "2")
	f.assertA("changed", true, false, `{"x":"2"}`)
	f.delete("a.json")
	f.assertA("deleted again", false, false, "")
	f.set.Ask("file/a")
	f.assertA("requested", true, true, `{"x":"2"}`)
	f.delete("a.json")
	f.assertA("deleted after the request", false, false, "")
}

func TestARequestOfWhatIsThereIsForgotten(t *testing.T) {
	f := delivering(t, true)
	f.set.Ask("file/a")
	f.assertA("requested while there", false, false, `{"x":"1"}`)
	f.delete("a.json")
	f.assertA("deleted after that", false, false, "")
}

func TestAnotherPathOrModeIsNoDeletion(t *testing.T) {
	f := delivering(t, true)
	f.delete("a.json")
	moved := group("a", "x")
	moved.File.Path = "b.json"
	f.set.Replace([]*targets.Target{moved})
	if r := f.syncA(); r.Err != nil || !r.Wrote || r.Restored {
		t.Errorf("the target with another path: %+v", r)
	}
	f.assertFile("b.json", `{"x":"1"}`)
	f.delete("b.json")
	opened := group("a", "x")
	opened.File = targets.File{Path: "b.json", Mode: 0o644}
	f.set.Replace([]*targets.Target{opened})
	if r := f.syncA(); r.Err != nil || !r.Wrote || r.Restored {
		t.Errorf("the target with another mode: %+v", r)
	}
}

func TestWhatIsLeftOfAFolderIsMended(t *testing.T) {
	f := newFixture(t, &targets.Target{
		Key: "file/a", Group: "a", Format: targets.FormatDirectory, File: targets.File{Path: "d", Mode: 0o640},
		Entries: []targets.Entry{{Alias: "x", Variable: "x"}, {Alias: "y", Variable: "y"}},
	})
	f.syncer.Policy.KeepDeleted = true
	f.values.set("x", "1")
	f.values.set("y", "2")
	f.syncA()
	f.delete("d/x")
	if r := f.syncA(); r.Err != nil || !r.Wrote || !r.Restored {
		t.Errorf("one file deleted: %+v", r)
	}
	f.assertFile("d/x", "1")
	f.delete("d")
	if r := f.syncA(); r.Err != nil || r.Wrote {
		t.Errorf("the folder deleted: %+v", r)
	}
}

func TestWhatWasRevokedIsNewsWhenItComesBack(t *testing.T) {
	f := delivering(t, true)
	f.values.set("x", &variables.GoneError{})
	if r := f.syncA(); !r.Wrote || !r.Removed || r.Restored {
		t.Fatalf("revoked: %+v", r)
	}
	f.values.set("x", "1") // the old value
	f.assertA("granted again", true, false, `{"x":"1"}`)

	f.delete("a.json") // deleted first, then revoked
	f.values.set("x", &variables.GoneError{})
	f.syncA()
	f.values.set("x", "1")
	f.assertA("granted again after a deletion", true, false, `{"x":"1"}`)
}

// counting is a sink that counts the writes that are to be told of.
type counting struct {
	workers.Sink
	written *int
}

func (s counting) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if !c.Empty() && !c.Restores {
		*s.written++
	}
	return s.Sink.Apply(ctx, r, c)
}

// effective is a sink whose changes are made, and then reported to have failed.
type effective struct{ workers.Sink }

func (e effective) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	left, err := e.Sink.Apply(ctx, r, c)
	return left, errors.Join(errors.New("the last step failed"), err)
}

func TestAChangeThatSeemedToFailIsNewsWhenItIsFoundMade(t *testing.T) {
	f := delivering(t, false)
	whole := f.syncer.Sink
	f.syncer.Sink = effective{whole}
	f.values.set("x", "2")
	if r := f.syncA(); r.Err == nil || r.Wrote {
		t.Fatalf("the failed write: %+v", r)
	}
	f.syncer.Sink = whole
	f.assertA("found written", true, false, `{"x":"2"}`)
	f.assertA("after that", false, false, `{"x":"2"}`)

	f.syncer.Sink = effective{whole}
	f.values.set("x", "3")
	f.syncA()
	f.syncer.Sink = whole
	f.delete("a.json") // having read 3
	f.values.set("x", "2")
	f.assertA("what was there before a change that seemed to fail", true, false, `{"x":"2"}`)

	f.syncer.Sink = effective{whole}
	f.values.set("x", &variables.GoneError{})
	f.syncA()
	f.syncer.Sink = whole
	if r := f.syncA(); !r.Wrote || !r.Removed || !r.After.RevokedRemoved {
		t.Errorf("found removed: %+v", r)
	}
	if r := f.syncA(); r.Wrote || r.Removed {
		t.Errorf("after that: %+v", r)
	}
}
