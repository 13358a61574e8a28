package main

import (
	"bufio"
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/rotation"
)

func TestRotateOnceShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[[]rotation.Report]
	now.Store(&[]rotation.Report{{Set: "aes", Problem: "no answer\nat all"}, {Set: "jwt"}})
	reports := func() []rotation.Report { return *now.Load() }

	var plain bytes.Buffer
	showProgress(&plain, reports)()
	if plain.Len() > 0 {
		t.Errorf("it shows where there is no terminal: %s", &plain)
	}

	outside, inside := newTerminal(t)
	lines := bufio.NewScanner(outside)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || strings.TrimSpace(lines.Text()) != want {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
	}
	stop := showProgress(inside, reports)
	next("aes: not begun; waits for no answer; at all")
	next("jwt: not begun; waits for nothing")
	now.Store(&[]rotation.Report{(*now.Load())[0], {Set: "jwt", Stage: "introduce", WaitsFor: "2 of 5 Pods"}})
	stop()
	_ = inside.Close() // the end of what there is to read
	next("jwt: introduce; waits for 2 of 5 Pods")
}
