package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown matches a call of syncer in a page, at the beginning of a line, of code or of
// a shell's command.
var shown = regexp.MustCompile("(?m)(?:^ *|`|[-|(;&] |\\()(?:bin/|/)?syncer ([a-z][^`|;)>#\n]*)")

// TestCommandsOfThePagesExist: each call of syncer in the documentation names a command
// and flags that exist.
func TestCommandsOfThePagesExist(t *testing.T) {
	root := newCommand()
	found := 0
	check := func(page, call string) {
		words := strings.Fields(call)
		cmd, _, err := root.Find(words)
		if err != nil || cmd == root {
			t.Errorf("%s: there is no command %q", page, call)
			return
		}
		found++
		for _, word := range words {
			name, ok := strings.CutPrefix(word, "--")
			if !ok || name == "" {
				continue
			}
			name, _, _ = strings.Cut(strings.TrimRight(name, ",."), "=")
			if cmd.Flag(name) == nil {
				t.Errorf("%s: %q has no flag --%s", page, call, name)
			}
		}
	}
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "decisions") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, call := range shown.FindAllStringSubmatch(string(text), -1) {
			check(path, call[1])
		}
		return err
	}
	for _, path := range []string{"../../README.md", "../../docs"} {
		if err := filepath.WalkDir(path, visit); err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("found %d calls", found)
	}
}
