//go:build !race

// The race detector has sync.Pool drop buffers at random, so that it would be
// measured and not Syncer.

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// copies counts how often a value, or its base64, is in the memory of a process.
func copies(t *testing.T, pid int, value []byte) (raw, encoded int) {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	text := []byte(base64.StdEncoding.EncodeToString(value))
	text = text[:len(text)-4] // its end depends on what follows
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); n != 3 || !strings.HasPrefix(rights, "rw") {
			continue
		}
		chunk := make([]byte, to-from)
		if n, _ := memory.ReadAt(chunk, from); n > 0 {
			raw += bytes.Count(chunk[:n], value)
			encoded += bytes.Count(chunk[:n], text)
		}
	}
	return raw, encoded
}

// mostCopies is how often the value of an idle set may be in the memory of its
// engine: in buffers of Go's TLS, HTTP, JSON and hash packages, which nobody can
// clear. SECURITY.md has what was measured.
const mostCopies = 14

// TestWhatAnIdleEngineHasInMemory searches its memory for the primary, as it is and
// in base64, while it looks on.
func TestWhatAnIdleEngineHasInMemory(t *testing.T) {
	t.Parallel()
	r := newRotates(t, "  sets: [{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 0s}, publish: {plain: key}}]\n")
	p := spawn(t, proctest.Environ(r.Env("rotates")), "rotate", "run", "--config", r.config)
	first := r.begun()
	r.run("now", "jwt")(0)
	primary := r.until("a second key, alone", func(d *versions.Document, primary versions.Version) bool {
		return primary.ID != first.ID && d.Stage() == "idle"
	})
	looks := func(n int64) {
		t.Helper()
		before := r.Counts().NotModified
		eventually(t, "looks that found nothing new", func() bool { return r.Counts().NotModified >= before+n })
	}
	looks(2)
	raw, encoded := copies(t, p.PID(), primary.Parts["key"].Bytes())
	t.Logf("%d times as it is, %d times in base64", raw, encoded)
	if raw+encoded > mostCopies {
		t.Errorf("the primary is there %d times, and %d times in base64", raw, encoded)
	}
	looks(3)
	if now, text := copies(t, p.PID(), primary.Parts["key"].Bytes()); now+text > raw+encoded {
		t.Errorf("after more looks it is there %d times, and %d times in base64", now, text)
	}
}
