package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/notify/process"
)

// TestRestartWaitsUntilTheCommandCanStart: until then, the command keeps running.
func TestRestartWaitsUntilTheCommandCanStart(t *testing.T) {
	const script = "#!/bin/sh\necho $NAME >> $LOG\nexec sleep 1000\n"
	for what, test := range map[string]struct {
		more   []string // of the environment
		damage func(path string) error
		want   string // in the log
	}{
		"a variable of 128 KiB":       {more: []string{"BIG=" + strings.Repeat("x", 128<<10)}, want: "BIG, its longest variable, 131076"},
		"an environment of 10 MB":     {more: slices.Repeat([]string{"BIG=" + strings.Repeat("x", 100_000)}, 100), want: "the environment has 1000"},
		"a NUL in a variable":         {more: []string{"BIG=\x00"}, want: "invalid argument"},
		"a program that is gone":      {damage: os.Remove, want: "no such file"},
		"a program without the right": {damage: func(path string) error { return os.Chmod(path, 0o600) }, want: "permission denied"},
		"a program that is none":      {damage: replaceBy("nothing"), want: "exec format error"},
		"a program without its shell": {damage: replaceBy("#!/no/such/shell\n"), want: "no such file"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			program, log := filepath.Join(dir, "program"), filepath.Join(dir, "log")
			write := func() {
				if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(program, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write()
			var mu sync.Mutex
			environ := []string{"PATH=" + os.Getenv("PATH"), "LOG=" + log, "NAME=first"}
			core, logged := observer.New(zapcore.InfoLevel)
			r := process.NewRunner(process.RunnerConfig{
				Args: []string{program}, Signals: make(chan os.Signal), OnChange: process.Reaction{Restart: true},
				StopTimeout: time.Minute, Log: zap.New(core),
				Environ: func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(environ) },
			})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _, _ = r.Run(ctx) })
			defer running.Wait()
			defer cancel()
			started := func() string {
				text, _ := os.ReadFile(log)
				return string(text)
			}
			await(t, "the first start", func() bool { return started() == "first\n" })

			mu.Lock()
			environ = append(environ, test.more...)
			mu.Unlock()
			if test.damage != nil {
				if err := test.damage(program); err != nil {
					t.Fatal(err)
				}
			}
			_ = r.Notify(t.Context())
			why := func() string {
				for _, e := range logged.FilterMessageSnippet("keeps its former secrets").All() {
					return fmt.Sprint(e.ContextMap()["error"])
				}
				return ""
			}
			await(t, "an error", func() bool { return why() != "" })
			if !strings.Contains(why(), test.want) || strings.Contains(why(), "xxx") {
				t.Errorf("the error is %.200q, want %q in it", why(), test.want)
			}
			if logged.FilterMessageSnippet("Restarting the command").Len() > 0 || started() != "first\n" {
				t.Error("the command was stopped")
			}

			mu.Lock()
			environ = []string{environ[0], environ[1], "NAME=second"}
			mu.Unlock()
			if err := os.RemoveAll(program); err != nil {
				t.Fatal(err)
			}
			write()
			await(t, "the restart, without another change", func() bool { return started() == "first\nsecond\n" })
		})
	}
}

func replaceBy(text string) func(path string) error {
	return func(path string) error {
		if err := os.Remove(path); err != nil { // the shell may still read it
			return err
		}
		return os.WriteFile(path, []byte(text), 0o700)
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
	}
}
