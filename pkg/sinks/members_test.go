package sinks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// withMembers adds what is to be remembered.
func withMembers(c Changes, ids ...string) Changes {
	c.Members = append([]string{}, ids...)
	return c
}

// Whatever call fails, what is remembered has all that is in the file, and a
// repetition has just that.
func TestMembersAreNeverTooFew(t *testing.T) {
	target := fileTarget("app/a.conf", 0o640)
	run := func(t *testing.T, f *faults) []string {
		dir := memoryDir(t)
		apply(t, newKeeper(dir, nil), target, withMembers(rewrite(WholeFile, "old"), "a", "b"))
		c := withMembers(rewrite(WholeFile, "new"), "b", "c")
		sink := f.files(dir, nil)
		err := sink.Apply(t.Context(), target, c)
		if err != nil && !errors.Is(err, errFault) {
			t.Errorf("Apply: %v", err)
		}
		calls := f.calls
		f.fail = 0

		next := newKeeper(dir, nil)
		state := read(t, next, target)
		held := map[string][]string{"old": {"a", "b"}, "new": {"b", "c"}}[plaintext(state)[WholeFile]]
		for _, id := range held {
			if !slices.Contains(state.Members, id) {
				t.Errorf("the file is %q and the members are %q", plaintext(state), state.Members)
			}
		}
		if plaintext(state)[WholeFile] == "new" {
			c.Set = nil
		}
		apply(t, next, target, c)
		if state := read(t, next, target); !slices.Equal(state.Members, []string{"b", "c"}) || plaintext(state)[WholeFile] != "new" {
			t.Errorf("after a repetition the file is %q and the members are %q", plaintext(state), state.Members)
		}
		if left := tree(t, dir); len(left) != 3 { // the folder, the file and the record
			t.Errorf("the folder holds\n%s", strings.Join(left, "\n"))
		}
		return calls
	}
	for i, call := range run(t, &faults{}) {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%02d %s after=%t", i+1, call, after), func(t *testing.T) {
				run(t, &faults{fail: i + 1, after: after, err: &os.PathError{Op: call, Path: "x", Err: errFault}})
			})
		}
	}
}

func TestMembersGoWithTheFile(t *testing.T) {
	dir := memoryDir(t)
	f, target := newKeeper(dir, nil), fileTarget("a.conf", 0o400)
	apply(t, f, target, withMembers(rewrite(WholeFile, "1"), "x", "ü/y z"))
	before := read(t, f, target)
	if !slices.Equal(before.Members, []string{"x", "ü/y z"}) {
		t.Errorf("members %q", before.Members)
	}
	apply(t, f, target, Changes{Parts: before.Parts, Members: []string{}})
	expectTree(t, dir, "-r-------- a.conf")
	apply(t, f, target, withMembers(rewrite(WholeFile, "2"), "x"))
	apply(t, f, target, removal(WholeFile))
	expectTree(t, dir)
	apply(t, f, target, withMembers(rewrite(WholeFile, "3"), "x"))
	if err := os.Remove(filepath.Join(dir, "a.conf")); err != nil {
		t.Fatal(err)
	}
	if state := read(t, f, target); state.Parts != nil || state.Members != nil {
		t.Errorf("state %+v of no file", state)
	}
}

// The same of a folder of files, whose record is in it.
func TestMembersOfAFolderAreNeverTooFew(t *testing.T) {
	target := directoryTarget("app/keys", 0o640)
	run := func(t *testing.T, f *faults) []string {
		dir := memoryDir(t)
		apply(t, newKeeper(dir, nil), target, withMembers(rewrite("part", "old"), "a"))
		sink := f.files(dir, nil)
		if err := sink.Apply(t.Context(), target, withMembers(rewrite("part", "new"), "b")); err != nil && !errors.Is(err, errFault) {
			t.Errorf("Apply: %v", err)
		}
		calls := f.calls
		f.fail = 0

		next := newKeeper(dir, nil)
		state := read(t, next, target)
		if held := map[string]string{"old": "a", "new": "b"}[plaintext(state)["part"]]; !slices.Contains(state.Members, held) {
			t.Errorf("the folder has %q and the members are %q", plaintext(state), state.Members)
		}
		apply(t, next, target, removal("part"))
		if state := read(t, next, target); len(state.Parts) > 0 || len(state.Members) > 0 {
			t.Errorf("after a removal the folder has %q and the members are %q", plaintext(state), state.Members)
		}
		return calls
	}
	for i, call := range run(t, &faults{}) {
		t.Run(fmt.Sprintf("%02d %s", i+1, call), func(t *testing.T) {
			run(t, &faults{fail: i + 1, err: &os.PathError{Op: call, Path: "x", Err: errFault}})
		})
	}
}

// A later process knows at which step a set was delivered.
func TestSetsAreRememberedWithTheContent(t *testing.T) {
	for name, target := range map[string]*targets.Target{"file": fileTarget("app/a.conf", 0o640), "folder": directoryTarget("app/keys", 0o640)} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			part := WholeFile
			if name == "folder" {
				part = "part"
			}
			at := func(step uint64) map[string]targets.DeliveredSet {
				return map[string]targets.DeliveredSet{"shop/jwt": {Step: step, Stage: "idle", Primary: "r1", IDs: []string{"r1"}}}
			}
			held := func() map[string]targets.DeliveredSet { return read(t, newKeeper(dir, nil), target).Sets }
			c, sets := rewrite(part, "1"), at(7)
			c.Sets = &sets
			apply(t, newKeeper(dir, nil), target, c)
			if got := held(); !reflect.DeepEqual(got, at(7)) {
				t.Errorf("remembered %v", got)
			}
			sets = at(8) // of the same content
			apply(t, newKeeper(dir, nil), target, Changes{Parts: c.Parts, Sets: &sets})
			if got := held(); !reflect.DeepEqual(got, at(8)) {
				t.Errorf("remembered %v", got)
			}
			sets = nil
			apply(t, newKeeper(dir, nil), target, Changes{Parts: c.Parts, Sets: &sets})
			if got := held(); got != nil {
				t.Errorf("remembered %v of no set", got)
			}
			sets = at(9)
			apply(t, newKeeper(dir, nil), target, Changes{Parts: c.Parts, Sets: &sets})
			apply(t, newKeeper(dir, nil), target, removal(part))
			if left := tree(t, dir); strings.Contains(strings.Join(left, "\n"), "sets-") {
				t.Errorf("after the removal the folder holds %q", left)
			}
		})
	}
}

// The folder is the application's too: whatever it puts in the place of the record
// says nothing, and is replaced with the next content.
func TestARecordOfOthersSaysNothing(t *testing.T) {
	for name, put := range map[string]func(record, other string) error{
		"nothing":     func(record, _ string) error { return os.Remove(record) },
		"garbage":     func(record, _ string) error { return os.WriteFile(record, []byte("\x00["), 0o600) },
		"a link":      func(record, other string) error { return errors.Join(os.Remove(record), os.Symlink(other, record)) },
		"a FIFO":      func(record, _ string) error { return errors.Join(os.Remove(record), syscall.Mkfifo(record, 0o600)) },
		"a huge file": func(record, _ string) error { return os.Truncate(record, 1<<40) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			target := fileTarget("a.conf", 0o640)
			apply(t, newKeeper(dir, nil), target, withMembers(rewrite(WholeFile, "1"), "a"))
			other := filepath.Join(t.TempDir(), "other")
			must(t, os.WriteFile(other, []byte(`["stranger"]`), 0o600))
			records, _ := filepath.Glob(filepath.Join(dir, ".syncer-variables-*"))
			if len(records) != 1 {
				t.Fatalf("records %q, want one", records)
			}
			must(t, put(records[0], other))
			files := newKeeper(dir, nil)
			if state := read(t, files, target); len(state.Members) > 0 || plaintext(state)[WholeFile] != "1" {
				t.Errorf("state %+v", state)
			}
			apply(t, files, target, withMembers(rewrite(WholeFile, "2"), "b"))
			if state := read(t, newKeeper(dir, nil), target); !slices.Equal(state.Members, []string{"b"}) {
				t.Errorf("afterwards the members are %q", state.Members)
			}
			if text, err := os.ReadFile(other); err != nil || string(text) != `["stranger"]` {
				t.Errorf("another file holds %q, %v", text, err)
			}
		})
	}
}
