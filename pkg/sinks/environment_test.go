package sinks_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// environmentTarget is one of the environment.
func environmentTarget(group string) *targets.Target {
	return &targets.Target{Key: targets.FileKey(group), File: targets.File{Path: group, Mode: 0o640}}
}

// environmentParts makes parts of names and values, in turns, and the changes
// that set them all.
func environmentParts(pairs ...string) sinks.Changes {
	c := sinks.Changes{Parts: map[string]secret.Value{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Parts[pairs[i]] = secret.New([]byte(pairs[i+1]))
		c.Set = append(c.Set, pairs[i])
	}
	return c
}

func TestTheEnvironmentHoldsWhatWasApplied(t *testing.T) {
	variables := &sinks.Environment{}
	e := sinkstest.Keep(variables)
	db, web := environmentTarget("db"), environmentTarget("web")
	assert := func(want ...string) {
		t.Helper()
		if got := variables.Variables(); !slices.Equal(got, want) {
			t.Errorf("the environment is %q, want %q", got, want)
		}
	}
	assert()
	if state, err := e.Read(t.Context(), db); err != nil || state.Parts != nil {
		t.Errorf("before anything was applied: %v (%v)", state, err)
	}
	first := environmentParts("USER", "u", "PASSWORD", "one")
	if err := e.Apply(t.Context(), db, first); err != nil {
		t.Fatal(err)
	}
	for _, value := range first.Parts {
		value.Wipe() // as the giver does afterwards
	}
	if err := e.Apply(t.Context(), web, environmentParts("TOKEN", "a=b c")); err != nil {
		t.Fatal(err)
	}
	assert("PASSWORD=one", "TOKEN=a=b c", "USER=u")

	state, err := e.Read(t.Context(), db)
	if err != nil || len(state.Parts) != 2 || state.Mode != db.File.Mode || state.Stale {
		t.Errorf("what is there: %+v (%v)", state, err)
	}
	for _, value := range state.Parts {
		value.Wipe() // as the reader does
	}
	assert("PASSWORD=one", "TOKEN=a=b c", "USER=u")

	if err := e.Apply(t.Context(), db, environmentParts("PASSWORD", "two")); err != nil {
		t.Fatal(err)
	}
	assert("PASSWORD=two", "TOKEN=a=b c")
	if err := e.Apply(t.Context(), db, sinks.Changes{Remove: []string{"PASSWORD"}}); err != nil {
		t.Fatal(err)
	}
	assert("TOKEN=a=b c")
}

func TestWhatNoEnvironmentCanHoldChangesNothing(t *testing.T) {
	variables := &sinks.Environment{}
	e := sinkstest.Keep(variables)
	db := environmentTarget("db")
	if err := e.Apply(t.Context(), db, environmentParts("A", "one")); err != nil {
		t.Fatal(err)
	}
	err := e.Apply(t.Context(), db, environmentParts("A", "two", "B", "hidden\x00value", "C-D", "hidden"))
	if err == nil || !strings.Contains(err.Error(), `"B"`) || !strings.Contains(err.Error(), `"C-D"`) || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v, want one that names B and C-D and no value", err)
	}
	if got := variables.Variables(); !slices.Equal(got, []string{"A=one"}) {
		t.Errorf("the environment is %q", got)
	}
}

// What fits is just what the system takes.
func TestAVariableMayBeAsLongAsTheSystemLetsIt(t *testing.T) {
	e := sinkstest.Keep(&sinks.Environment{})
	for n := 32*4096 - len("A=") - 1; ; n++ {
		variable := "A=" + strings.Repeat("x", n)
		taken := e.Apply(t.Context(), environmentTarget("db"), environmentParts("A", variable[2:])) == nil
		run := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"", "-test.run=^$"}, Env: []string{variable}}
		if fits := run.Run() == nil; fits != taken {
			t.Errorf("%d bytes: taken is %v, and fits %v", n, taken, fits)
		}
		if !taken {
			return
		}
	}
}

func TestEnvironmentNames(t *testing.T) {
	for _, good := range []string{"A", "a", "_", "A1", "DB_PASSWORD"} {
		if err := sinks.CheckEnvironmentName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "1A", "a-b", "a.b", "a=b", "a b", "a\n", "ä", "a\x00"} {
		if sinks.CheckEnvironmentName(bad) == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}
