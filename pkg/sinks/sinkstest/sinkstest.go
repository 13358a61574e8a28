// Package sinkstest tests the contract that every sink must satisfy.
package sinkstest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// Fixture is a sink and a target that does not exist yet.
type Fixture struct {
	Sink   Sink
	Target *targets.Target
	// Names are the parts that the target may have, at least one.
	Names []string
	// Version distinguishes stored content from earlier stored content, even if
	// both are equal: an inode, a resource version.
	Version func() string

	keeper *Keeper
}

// Run tests the sink. It calls fixture once for each test.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	tests := []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"nothing is there", testNothing},
		{"applied content is read", testRoundTrip},
		{"any bytes are kept", testAnyBytes},
		{"unchanged is untouched", testUnchanged},
		{"a changed part", testChange},
		{"a part that goes", testRemovePart},
		{"a target that goes", testRemove},
		{"values stay their owner's", testOwnership},
		{"an ended context", testContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := fixture(t)
			f.keeper = Keep(f.Sink)
			test.run(t, f)
		})
	}
}

// Plan is a minimal planner. It returns the changes from state to the wanted parts
// and the mode. A nil want removes the target.
func Plan(state sinks.State, want map[string]string, mode fs.FileMode) sinks.Changes {
	var c sinks.Changes
	if want != nil {
		c.Parts = map[string]secret.Value{}
	}
	rewrite := state.Stale || state.Mode != mode
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c.Parts[name] = secret.New([]byte(want[name]))
		there, ok := state.Parts[name]
		if rewrite || !ok || !there.Equal(c.Parts[name]) {
			c.Set = append(c.Set, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state.Parts)) {
		if _, ok := want[name]; !ok {
			c.Remove = append(c.Remove, name)
		}
	}
	return c
}

// values gives each name a distinct value, which also depends on version.
func (f Fixture) values(version string) map[string]string {
	values := map[string]string{}
	for _, name := range f.Names {
		values[name] = "the value of " + name + ", " + version
	}
	return values
}

// sync reads, plans and applies, and returns the changes.
func (f Fixture) sync(t *testing.T, want map[string]string) sinks.Changes {
	t.Helper()
	c := Plan(f.read(t), want, f.Target.File.Mode)
	if err := f.keeper.Apply(t.Context(), f.Target, c); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return c
}

func (f Fixture) read(t *testing.T) sinks.State {
	t.Helper()
	state, err := f.keeper.Read(t.Context(), f.Target)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return state
}

// expect compares the current parts with the wanted ones.
func (f Fixture) expect(t *testing.T, want map[string]string) {
	t.Helper()
	state := f.read(t)
	if (state.Parts == nil) != (want == nil) || len(state.Parts) != len(want) {
		t.Fatalf("Read has the parts %q, want %q", slices.Sorted(maps.Keys(state.Parts)), slices.Sorted(maps.Keys(want)))
	}
	for name, value := range want {
		if got, ok := state.Parts[name]; !ok || string(got.Bytes()) != value {
			t.Errorf("the part %q is there: %t, with %q, want %q", name, ok, got.Bytes(), value)
		}
	}
	if state.Stale {
		t.Error("Read says the target is stale")
	}
	if want != nil && state.Mode != f.Target.File.Mode {
		t.Errorf("Read has the mode %v, want %v", state.Mode, f.Target.File.Mode)
	}
}

func testNothing(t *testing.T, f Fixture) {
	f.expect(t, nil)
	if c := f.sync(t, nil); !c.Empty() {
		t.Errorf("the plan for nothing from nothing is %+v", c)
	}
	f.expect(t, nil)
}

func testRoundTrip(t *testing.T, f Fixture) {
	f.sync(t, f.values("first"))
	f.expect(t, f.values("first"))
}

func testAnyBytes(t *testing.T, f Fixture) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, value := range []string{"", "\n", string(all), string(bytes.Repeat(all, 400))} {
		want := f.values("other")
		want[f.Names[0]] = value
		f.sync(t, want)
		f.expect(t, want)
	}
}

func testUnchanged(t *testing.T, f Fixture) {
	f.sync(t, f.values("first"))
	before := f.Version()
	if c := f.sync(t, f.values("first")); !c.Empty() {
		t.Errorf("the second sync of the same content sets %q and removes %q", c.Set, c.Remove)
	}
	empty := sinks.Changes{Parts: map[string]secret.Value{f.Names[0]: secret.New([]byte("other"))}}
	for _, c := range []sinks.Changes{{}, empty} {
		if err := f.keeper.Apply(t.Context(), f.Target, c); err != nil {
			t.Errorf("Apply of empty changes: %v", err)
		}
	}
	if after := f.Version(); after != before {
		t.Errorf("the version was %s and is %s", before, after)
	}
	f.expect(t, f.values("first"))
}

func testChange(t *testing.T, f Fixture) {
	want := f.values("first")
	f.sync(t, want)
	before := f.Version()
	want[f.Names[0]] = "rotated"
	f.sync(t, want)
	f.expect(t, want)
	if f.Version() == before {
		t.Error("Version does not show a change")
	}
}

// testRemovePart does nothing for targets that have only one part.
func testRemovePart(t *testing.T, f Fixture) {
	want := f.values("first")
	f.sync(t, want)
	for _, name := range f.Names[1:] {
		delete(want, name)
		f.sync(t, want)
		f.expect(t, want)
	}
}

func testRemove(t *testing.T, f Fixture) {
	f.sync(t, f.values("first"))
	remove := f.sync(t, nil)
	f.expect(t, nil)
	if err := f.keeper.Apply(t.Context(), f.Target, remove); err != nil {
		t.Errorf("removing an absent target: %v", err)
	}
	f.expect(t, nil)
	f.sync(t, f.values("second"))
	f.expect(t, f.values("second"))
}

func testOwnership(t *testing.T, f Fixture) {
	want := f.values("first")
	c := f.sync(t, want)
	for name, value := range want {
		if got := c.Parts[name].Bytes(); string(got) != value {
			t.Errorf("after Apply the value of %q is %q, want %q", name, got, value)
		}
	}
	secret.Wipe(c.Parts)
	f.expect(t, want)
	secret.Wipe(f.read(t).Parts)
	f.expect(t, want)
}

func testContext(t *testing.T, f Fixture) {
	f.sync(t, f.values("first"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.keeper.Read(ended, f.Target); !errors.Is(err, context.Canceled) {
		t.Errorf("Read says %v, want %v", err, context.Canceled)
	}
	for _, want := range []map[string]string{f.values("second"), nil} {
		c := Plan(f.read(t), want, f.Target.File.Mode)
		if err := f.keeper.Apply(ended, f.Target, c); !errors.Is(err, context.Canceled) {
			t.Errorf("Apply says %v, want %v", err, context.Canceled)
		}
	}
	f.expect(t, f.values("first"))
}
