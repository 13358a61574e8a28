package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
)

func TestOneShotDeliversAndEnds(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"init", "application"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oneShot(mode, 0)
			w.Group("db", "json", "db/password")
			w.Group("web", "bash", "web/password")
			p := w.start()
			p.Exit(0)
			if got, want := w.file("db.json"), fmt.Sprintf(`{"password":"%s"}`, w.Value["db/password"]); got != want {
				t.Errorf("db.json is %q, want %q", got, want)
			}
			if got, want := w.file("web.bash"), fmt.Sprintf(`export password="%s"`, w.Value["web/password"]); got != want {
				t.Errorf("web.bash is %q, want %q", got, want)
			}
			if !w.exists("status", notify.ProvidedFile) || w.exists("status", notify.UpdatedFile) {
				t.Errorf("want %s and no %s", notify.ProvidedFile, notify.UpdatedFile)
			}
			if n := w.Server.Counts().Authentications; n != 1 {
				t.Errorf("%d authentications", n)
			}
		})
	}
}

// TestOneShotNamesAllThatIsMissing has three variables without a value, in two
// groups, of a server that names one at most in each answer.
func TestOneShotNamesAllThatIsMissing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"init", "application"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			testMissing(t, mode, 1, conjurdtest.Strict())
		})
	}
}

func testMissing(t *testing.T, mode string, retries int, options ...conjurdtest.Option) {
	w := newWorld(t, options...)
	w.oneShot(mode, retries)
	w.Group("db", "json", "db/user", "db/password")
	w.Group("web", "json", "web/user", "web/password", "web/token")
	w.Group("good", "json", "good/password")
	missing := []string{"db/password", "web/user", "web/token"}
	w.Remove("db/password")
	w.Deny("web/user")
	w.Remove("web/token")
	w.Server.Policy("- !variable web/token\n")
	w.Permit("web/token") // there, but without a value
	p := w.start()
	p.Exit(1)
	last := p.Lines("were not delivered")
	if len(last) != 1 {
		t.Fatalf("%d lines tell what was not delivered, want 1", len(last))
	}
	for _, text := range append(missing, "2 of 3 targets", "file/db", "file/web") {
		if !strings.Contains(last[0], text) {
			t.Errorf("the last line lacks %q: %s", text, last[0])
		}
	}
	for _, text := range []string{"db/user", "web/password", "good"} {
		if strings.Contains(last[0], text) {
			t.Errorf("the last line blames %q: %s", text, last[0])
		}
	}
	w.await("good.json", w.Value["good/password"])
	if w.exists("secrets", "db.json") || w.exists("secrets", "web.json") || w.exists("status", notify.ProvidedFile) {
		t.Error("a file of which values are missing was written, or all is said to be provided")
	}
}

// TestInterruptedApplication has not done its job.
func TestInterruptedApplication(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oneShot("application", -1)
			w.Group("good", "json", "good/password")
			w.Group("db", "json", "db/password")
			w.Remove("db/password")
			p := w.start()
			w.await("good.json", w.Value["good/password"])
			p.Signal(s)
			p.Exit(1)
		})
	}
}

// TestOneShotThatCannotSaySoHasNotDoneItsJob: all is delivered, and the
// application would wait for ever.
func TestOneShotThatCannotSaySoHasNotDoneItsJob(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"init", "application"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oneShot(mode, 0)
			w.Group("db", "json", "db/password")
			if err := os.MkdirAll(w.Path("status", notify.ProvidedFile, "in the way"), 0o755); err != nil {
				t.Fatal(err)
			}
			p := w.start()
			p.Exit(1)
			w.await("db.json", w.Value["db/password"])
			if len(p.Lines("all is delivered, but the file "+notify.ProvidedFile+" could not be written")) != 1 {
				t.Error("the log does not say what is wrong")
			}
		})
	}
}
