package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/proctest"
)

// TestValuesAreNowhereElse leads a sidecar that logs all it can through faults,
// template errors and a removal, and then looks for values in everything that
// it left behind.
func TestValuesAreNowhereElse(t *testing.T) {
	t.Parallel()
	for format, options := range map[string][]conjurdtest.Option{"text": nil, "json": {conjurdtest.Strict()}} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			testSilence(t, format, options...)
		})
	}
}

func testSilence(t *testing.T, format string, options ...conjurdtest.Option) {
	w := newWorld(t, options...)
	w.Annotations["log-level"] = "debug"
	w.Annotations["log-format"] = format
	w.Annotations["exit-on-revoked"] = "false"
	w.Env["CONJUR_HTTP_TIMEOUT"] = "2"
	w.Group("db", "json", "db/user", "db/password")
	w.Group("web", "template", "web/user", "web/password")
	w.Group("encoded", "yaml", "encoded/password")
	w.Annotations["conjur-secrets.encoded"] = "- password: encoded/password\n  content-type: base64\n" // which it is not
	w.template("web", `{{ secret "password" }}`)
	p := w.start("--log-format", format)
	w.awaitProvided()

	w.misuseTemplates(p)
	w.misuseAnswers(p)
	w.Deny("db/password")
	eventually(t, "the file gone", func() bool { return !w.exists("secrets", "db.json") })
	w.Permit("db/password")
	w.await("db.json", w.Renew("db/password"))
	p.Stop()

	if len(p.Lines("request", "batch")) == 0 {
		t.Error("the log is not at the level debug")
	}
	if format == "json" {
		for line := range strings.Lines(p.Log()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("a line is not JSON: %s", line)
			}
		}
	}
	w.searchFiles("db.json", "web.out", "encoded.yaml")
}

// misuseTemplates edits the template so that rendering fails with the values
// at hand in every way that functions allow.
func (w *world) misuseTemplates(p *proctest.Process) {
	w.Helper()
	for i, action := range []string{
		`{{ secret "nobody" }}`, `{{ secret "password" | b64dec }}`, `{{ index (secret "password") 1000 }}`,
		`{{ template "x" }}`, `{{ (secret "password").Field }}`, `{{ secret (secret "password") }}`, `{{ fail (secret "password") }}`,
	} {
		w.template("web", action)
		eventually(w, "an error of "+action, func() bool { return len(p.Lines("Failing", "file/web")) == i+1 })
		value := w.Renew("web/password")
		w.template("web", fmt.Sprintf(`mended %d {{ secret "password" }}`, i))
		w.await("web.out", fmt.Sprintf("mended %d %s", i, value))
		eventually(w, "the end of that error", func() bool { return len(p.Lines("Recovered", "file/web")) == i+1 })
	}
}

// misuseAnswers has the server answer with values in the wrong places.
func (w *world) misuseAnswers(p *proctest.Process) {
	w.Helper()
	value := w.Value["db/password"]
	for _, spoilt := range []http.HandlerFunc{
		answer(500, asJSON, value), answer(404, asJSON, `{"error":{"code":"`+value+`","message":"`+value+`"}}`),
		answer(302, asHTML, value, "Location", "https://127.0.0.1:1/"+value), answer(200, asJSON, `{"dev:variable:db/password":"`+value),
		answer(200, value, `{"`+value+`":1}`, "Content-Encoding", value), hangUp(value + "\r\n\r\n"), hangUp("HTTP/1.1 " + value + "\r\n\r\n"),
		answer(429, asHTML, value, "Retry-After", value),
	} {
		var met atomic.Int64
		w.Server.Intercept(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				met.Add(1)
				spoilt(rw, r)
			})
		})
		eventually(w, "a spoilt answer", func() bool { return met.Load() > 0 })
		w.Server.Intercept(nil)
		w.await("db.json", w.Renew("db/user"))
	}
	if len(p.Lines("Failing", `"poll"`)) == 0 {
		w.Error("no poll failed")
	}
}

// searchFiles looks for values in all files but the targets.
func (w *world) searchFiles(targets ...string) {
	w.Helper()
	err := filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		for _, name := range targets {
			if path == w.Path("secrets", name) {
				return nil
			}
		}
		content, err := os.ReadFile(path)
		if found := w.Leak(string(content)); found != "" {
			w.Errorf("%s holds %s", path, found)
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// TestStartClearsWhatAKillLeft: temporary files go, what else is there stays.
func TestStartClearsWhatAKillLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("init", 0)
	w.Group("db", "json", "db/password")
	w.Group("deep", "json", "deep/password")
	w.Annotations["secret-file-path.deep"] = "a/b/deep.json"
	if err := os.MkdirAll(w.Path("secrets", "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	left := []string{".syncer-" + rand.Text(), "a/b/.syncer-" + rand.Text()}
	foreign := []string{".syncer-notes", "mine", "a/.syncer-" + rand.Text()} // no target is in that folder
	for _, name := range append(left, foreign...) {
		w.write(w.Path("secrets", name), "half of a value")
	}
	w.start().Exit(0)
	for _, name := range left {
		if w.exists("secrets", name) {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range foreign {
		if !w.exists("secrets", name) {
			t.Errorf("%s is gone, which is not ours", name)
		}
	}
}
