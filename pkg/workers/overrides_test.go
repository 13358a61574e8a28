package workers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

const (
	general = "app/key"
	own     = "node/n1/app/key"
)

// node is a fixture with the target "file/a", in which a variable of this node's
// own may take the place of app/key.
type node struct {
	*wild
	format targets.Format
}

func newNode(t *testing.T, format targets.Format) *node {
	n := &node{&wild{fixture: newFixture(t)}, format}
	n.restart()
	n.values.set(general, "general")
	return n
}

// restart makes it a new process, which finds what the one before has written.
func (n *node) restart() {
	n.set = records.Lane{}
	target := &targets.Target{
		Key: "file/a", Group: "a", Format: n.format, File: targets.File{Path: "a.json", Mode: 0o640},
		Entries: []targets.Entry{{Alias: "key", Variable: general, Override: own, ContentType: targets.ContentText}},
	}
	n.wild.restart()
	n.set.Put(target)
}

// reads checks which variable the last fetch was about.
func (n *node) reads(want ...string) {
	n.t.Helper()
	if got := n.values.fetches[len(n.values.fetches)-1]; !slices.Equal(got, want) {
		n.t.Errorf("fetched %q, want %q", got, want)
	}
}

const (
	holdsGeneral = `{"key":"general"}`
	holdsOwn     = `{"key":"own"}`
)

func TestTheNodesOwnVariableWins(t *testing.T) {
	n := newNode(t, targets.FormatJSON)
	n.keeps("", "the list of variables is not known yet")
	n.list(general)
	n.delivers(holdsGeneral)
	n.reads(general)
	n.values.set(own, "own") // added later
	n.list(general, own)
	n.delivers(holdsOwn)
	n.reads(own)
	n.rests(holdsOwn)
}

func TestTheNodesOwnVariableGivesWayWhenItIsGone(t *testing.T) {
	n := newNode(t, targets.FormatJSON)
	n.values.set(own, "own")
	n.list(general, own)
	n.delivers(holdsOwn)
	for _, answer := range []error{
		errors.New("502"), &variables.SuspectError{Variable: own, Needed: 2},
		&variables.HeldError{Suspicion: &variables.SuspectError{Variable: own}},
	} {
		n.values.set(own, answer)
		if changes := n.set.Expand([]string{general}, nil); len(changes) > 0 {
			t.Errorf("a shorter list changes %v", changes)
		}
		n.keeps(holdsOwn, answer.Error())
		n.restart()
		n.list(general)
		n.keeps(holdsOwn, answer.Error())
	}
	n.gone(own)
	n.delivers(holdsGeneral)
	n.reads(general)
	n.rests(holdsGeneral)
	if text := fmt.Sprint(n.logs.FilterMessageSnippet("Using the general variable").All()); !strings.Contains(text, own) {
		t.Errorf("the log says %s", text)
	}
}

// With removal switched off too: nothing is taken away.
func TestFallingBackIsNoRemoval(t *testing.T) {
	n := newNode(t, targets.FormatJSON)
	n.syncer.Policy = workers.Policy{}
	n.values.set(own, "own")
	n.list(general, own)
	n.delivers(holdsOwn)
	n.gone(own)
	n.list(general)
	n.delivers(holdsGeneral)
}

// One that is listed and has no value, or may not be read, holds up nothing that
// never had it; and it is taken up when it can be.
func TestListedWithoutAValue(t *testing.T) {
	n := newNode(t, targets.FormatJSON)
	n.suspect(own)
	n.list(general, own)
	n.delivers(holdsGeneral)
	n.rests(holdsGeneral)
	n.reads(general, own)
	n.gone(own)
	n.rests(holdsGeneral)
	n.values.set(own, errors.New("502"))
	n.rests(holdsGeneral)
	n.values.set(own, "own")
	n.delivers(holdsOwn)
	n.rests(holdsOwn)
	n.reads(own)
	if keys := n.set.ByVariable(own); !slices.Equal(keys, []targets.Key{"file/a"}) {
		t.Errorf("a poll of %q wakes %q", own, keys)
	}
}

// One of which the list says that it has no value is not even asked for.
func TestListedAsUnset(t *testing.T) {
	n := newNode(t, targets.FormatJSON)
	n.set.Expand([]string{general, own}, map[string]bool{own: true})
	n.delivers(holdsGeneral)
	n.reads(general)
	n.values.set(own, "own")
	n.set.Expand([]string{general, own}, nil)
	n.delivers(holdsOwn)
}

func TestNeitherVariableIsThere(t *testing.T) {
	for what, set := range map[string]func(*node){
		"suspect": func(n *node) { n.suspect(general) },
		"gone":    func(n *node) { n.gone(general) },
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t, targets.FormatJSON)
			set(n)
			n.list("other")
			r := n.one()
			if r.Err == nil || !strings.Contains(r.Err.Error(), general) || !strings.Contains(r.Err.Error(), own) {
				t.Errorf("error %v, want both ids", r.Err)
			}
		})
	}
}

// Whatever the server says and however often the process ends, what the node had
// of its own gives way to the general variable only after a proof; and what is
// known settles it.
func TestNoDoubtBringsTheGeneralVariable(t *testing.T) {
	for _, format := range []targets.Format{targets.FormatJSON, targets.FormatDirectory} {
		t.Run(string(format), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { walk(t, rt, format) })
		})
	}
}

func walk(t *testing.T, rt *rapid.T, format targets.Format) {
	n := newNode(t, format)
	is, proven := false, false // whether there is one of its own; whether a proof was given since it was delivered
	n.suspect(own)
	content := func() string {
		name := map[bool]string{true: "a.json/key", false: "a.json"}[format == targets.FormatDirectory]
		text, _ := os.ReadFile(filepath.Join(n.dir, name))
		switch {
		case strings.Contains(string(text), "own"):
			return "own"
		case strings.Contains(string(text), "general"):
			return "general"
		}
		return ""
	}
	sync := func() {
		before := content()
		n.one()
		after := content()
		if before == "own" && after == "general" && !proven {
			rt.Fatalf("the general variable came without a proof")
		}
		if before != "" && after == "" {
			rt.Fatal("the file went")
		}
		proven = proven && after == "own"
	}
	truth := func() {
		if is {
			n.values.set(own, "own")
			return
		}
		n.gone(own)
		proven = true
	}
	list := func() {
		if is {
			n.list(general, own)
		} else {
			n.list(general)
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"add":        func(*rapid.T) { is = true; n.values.set(own, "own") },
		"delete":     func(*rapid.T) { is = false; n.suspect(own) },
		"prove":      func(*rapid.T) { truth(); sync() },
		"fail":       func(*rapid.T) { n.values.set(own, errors.New("502")); sync() },
		"lag":        func(*rapid.T) { n.suspect(own); sync() },
		"short list": func(*rapid.T) { n.list(general); sync() },
		"list":       func(*rapid.T) { list(); sync() },
		"restart":    func(*rapid.T) { n.restart(); n.syncer.Sink = sinks.NewFiles(n.dir, nil); n.syncer.Log = zap.NewNop() },
		"settle": func(rt *rapid.T) {
			list()
			truth()
			sync()
			if want := map[bool]string{true: "own", false: "general"}[is]; content() != want {
				rt.Fatalf("it holds %q, want %q", content(), want)
			}
		},
	})
}
