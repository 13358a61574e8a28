package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/rotation"
)

// showProgress writes the progress of sets on a terminal, one line for each change, until
// it is stopped. It appends below the output of others and overwrites nothing.
func showProgress(out io.Writer, reports func() []rotation.Report) (stop func()) {
	if !terminal.New(out).Live() {
		return func() {}
	}
	said := map[string]string{}
	say := func() {
		for _, r := range reports() {
			if text := oneLine(fmt.Sprintf("%s: %s; waits for %s", r.Set, cmp.Or(r.Stage, "not begun"), cmp.Or(r.Problem, r.WaitsFor, "nothing"))); said[r.Set] != text {
				said[r.Set] = text
				_, _ = fmt.Fprintln(out, text)
			}
		}
	}
	end := terminal.EachSecond(say)
	return func() { end(); say() }
}
