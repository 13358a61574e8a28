package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
)

// command runs a command line in this process and gives its error.
func command(t *testing.T, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	root := newCommand()
	root.SetArgs(args)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	return root.ExecuteContext(ctx)
}

func TestProbesAnswerFromTheStatusFolder(t *testing.T) {
	dir := t.TempDir()
	probe := func(name string) bool { return command(t, "probe", name, "--status-dir", dir) == nil }
	status := notify.OpenStatus(dir)

	for _, step := range []struct {
		what, probe string
		do          func() error
		want        bool
	}{
		{"nothing provided", "provided", nil, false},
		{"provided", "provided", status.SetProvided, true},
		{"provided lasts", "provided", nil, true},
		{"nothing updated", "unchanged", nil, true},
		{"updated", "unchanged", status.SetUpdated, false},
		{"an update counts once", "unchanged", nil, true},
		{"no beat", "alive", nil, false},
		{"a beat", "alive", func() error { _, err := status.Beat(); return err }, true},
		{"a beat counts once", "alive", nil, false},
	} {
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
		}
		if got := probe(step.probe); got != step.want {
			t.Errorf("%s: probe %s succeeds: %v, want %v", step.what, step.probe, got, step.want)
		}
	}
}

func TestAProbeThatThereIsNotFails(t *testing.T) {
	for _, args := range [][]string{{"probe"}, {"probe", "provded"}} {
		if err := command(t, args...); err == nil || !strings.Contains(err.Error(), "provided") {
			t.Errorf("%v: %v, want an error that names the probes", args, err)
		}
	}
}

func TestWaitEndsWhenTheSecretsAreProvided(t *testing.T) {
	dir := t.TempDir()
	err := command(t, "wait", "--status-dir", dir, "--timeout", "50ms", "--termination-log", filepath.Join(dir, "none"))
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, notify.ProvidedFile)) {
		t.Errorf("with nothing provided: %v, want an error that names the file", err)
	}
	done := make(chan error, 1)
	go func() { done <- command(t, "wait", "--status-dir", dir) }()
	if err := notify.OpenStatus(dir).SetProvided(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWaitLeavesATerminationMessage where there is a file for it, since the
// kubelet shows of a failed hook nothing else.
func TestWaitLeavesATerminationMessage(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "termination-log")
	if err := command(t, "wait", "--status-dir", dir, "--timeout", "1ms", "--termination-log", log); err == nil {
		t.Error("nothing was provided, and no error")
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("a file was made")
	}
	if err := os.WriteFile(log, []byte("an earlier message, which is longer than a path"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := command(t, "wait", "--status-dir", dir, "--timeout", "1ms", "--termination-log", log)
	if text, read := os.ReadFile(log); read != nil || err == nil || string(text) != err.Error()+"\n" {
		t.Errorf("the message is %q, %v; the error %v", text, read, err)
	}
}

func TestInstallCopiesTheBinary(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // over an earlier one too
		if err := command(t, "install", dir); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(filepath.Join(dir, "syncer"))
	if err != nil || got.Size() != want.Size() || got.Mode() != 0o755 {
		t.Errorf("installed %v, %v; want %d bytes and mode 0755", got, err, want.Size())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files in the folder, want one", len(entries))
	}
}
