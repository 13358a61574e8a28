package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/test/proctest"
)

// keyReader is a program that reads a key set from a folder.
type keyReader struct {
	folder string
	url    string

	mu    sync.Mutex
	bytes map[string]string // all keys that it ever saw, by id
}

// read returns the keys and the primary, all of one moment, and false while there
// are none.
func (c *keyReader) read() (ids []string, primary string, ok bool) {
	root, err := filepath.EvalSymlinks(filepath.Join(c.folder, "..data"))
	if err != nil {
		return nil, "", false
	}
	files, err := os.ReadDir(root)
	if err != nil {
		return nil, "", false
	}
	seen := map[string]string{}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(root, f.Name()))
		if err != nil {
			return nil, "", false // exchanged meanwhile
		}
		id, rest, _ := strings.Cut(f.Name(), ".")
		if seen[id] = string(content); rest == "key.primary" {
			primary = id
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.bytes, seen)
	return slices.Collect(maps.Keys(seen)), primary, primary != ""
}

// serve answers which keys there are, as keyset's handler does.
func (c *keyReader) serve(t *testing.T) {
	c.bytes = map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ids, primary, ok := c.read()
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ids": ids, "primary": primary})
	}))
	t.Cleanup(server.Close)
	c.url = server.URL + "/keys"
}

// knows reports whether it has a key, which takes two looks where files were
// exchanged in between.
func (c *keyReader) knows(id string) bool {
	for range 20 {
		if ids, _, ok := c.read(); ok && slices.Contains(ids, id) {
			return true
		}
	}
	return false
}

// signAndCheck has each reader sign and the others check, until stop is closed.
// It returns how often that was done, and what was rejected.
func signAndCheck(readers []*keyReader, stop <-chan struct{}) (n int, rejected []string) {
	for {
		for _, signer := range readers {
			_, primary, ok := signer.read()
			if !ok {
				continue
			}
			for _, checker := range readers {
				if n++; !checker.knows(primary) {
					rejected = append(rejected, fmt.Sprintf("%s does not know %s", checker.folder, primary))
				}
			}
		}
		select {
		case <-stop:
			return n, rejected
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// rotating is a world with a key set that "syncer rotate run" rotates, and two
// readers of it.
type rotating struct {
	*world
	readers []*keyReader
	config  string
	set     rotation.Manual
}

func newRotating(t *testing.T, options ...conjurdtest.Option) *rotating {
	w := newWorld(t, options...)
	w.Server.Policy(`
- !variable jwt
- !variable jwt/control
- !variable plain
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control, !variable plain] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable jwt }
`)
	r := &rotating{world: w, config: w.Path("syncer.yaml"), set: rotation.Manual{Set: rotation.Set{Conjur: judge(t, w.Server), ID: "jwt"}}}
	var ask []string
	for _, name := range []string{"one", "two"} {
		w.Annotations["conjur-secrets."+name] = `- "*": {keys: jwt}`
		w.Annotations["secret-file-format."+name] = "directory"
		reader := &keyReader{folder: w.Path("secrets", name)}
		reader.serve(t)
		r.readers, ask = append(r.readers, reader), append(ask, reader.url)
	}
	w.write(r.config, fmt.Sprintf(`
conjur: {httpTimeoutSeconds: 3}
rotation:
  interval: 1s
  perHour: 1000
  sets:
  - set: jwt
    generate: {random: 32}
    keep: 0s
    confirm: {ask: [%s]}
    publish: {plain: key}
`, strings.Join(ask, ", ")))
	return r
}

func (r *rotating) rotate(args ...string) *proctest.Process {
	r.Helper()
	return spawn(r, proctest.Environ(r.Server.Env("rotates")), append([]string{"rotate"}, args...)...)
}

// idleWith waits until the set is idle with another primary than that.
func (r *rotating) idleWith(not string) rotation.Report {
	r.Helper()
	var report rotation.Report
	eventually(r, "a set that is idle with a new primary", func() bool {
		report = r.set.Status(r.Context())
		return report.Stage == "idle" && report.Primary != "" && report.Primary != not
	})
	return report
}

func TestRotateRun(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"compares": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotating(t, options...)
			engine := r.rotate("run", "--config", r.config)
			first := r.idleWith("")
			r.start()
			eventually(t, "keys in both folders", func() bool {
				return r.readers[0].knows(first.Primary) && r.readers[1].knows(first.Primary)
			})
			stop, done := make(chan struct{}), make(chan struct{})
			var n int
			var rejected []string
			go func() { defer close(done); n, rejected = signAndCheck(r.readers, stop) }()

			r.rotate("now", "jwt").Exit(0)
			second := r.idleWith(first.Primary)
			r.rotate("now", "jwt").Exit(0)
			third := r.idleWith(second.Primary)
			eventually(t, "the third key in both folders, alone", func() bool {
				for _, reader := range r.readers {
					if ids, primary, ok := reader.read(); !ok || len(ids) != 1 || primary != third.Primary {
						return false
					}
				}
				return true
			})
			close(stop)
			<-done
			if len(rejected) > 0 || n == 0 {
				t.Errorf("of %d tokens %d were rejected: %v", n, len(rejected), rejected)
			}
			if retired := third.Versions[len(third.Versions)-1]; retired.State != "retired" || retired.Parts != nil {
				t.Errorf("the first key is %+v", retired)
			}
			assertValue(t, r.Server, "plain", r.readers[0].bytes[third.Primary])

			engine.Signal(os.Interrupt)
			engine.Exit(0)
			for _, reader := range r.readers {
				for id, key := range reader.bytes {
					if strings.Contains(engine.Log(), key) {
						t.Errorf("the log has the key %s", id)
					}
				}
			}
			if warns := strings.Contains(engine.Log(), "let only this process rotate"); warns != (name == "genuine") {
				t.Errorf("it warns of a server that does not compare: %v", warns)
			}
			for _, line := range []string{"RotationStarted", "RotationPromoted", "RotationDone"} {
				if !strings.Contains(engine.Log(), line) {
					t.Errorf("the log has no %s:\n%s", line, engine.Log())
				}
			}
		})
	}
}

func TestRotateRunOnce(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	once := func() { r.rotate("run", "--once", "--config", r.config).Exit(0) }
	once()
	first := r.set.Status(t.Context())
	if first.Primary == "" || first.Stage != "idle" {
		t.Fatalf("after the first time it is %+v", first)
	}
	r.rotate("now", "jwt", "--no-wait").Exit(0)
	once()
	if held := r.set.Status(t.Context()); held.Primary != first.Primary || held.Stage != "introduce" {
		t.Fatalf("while the readers have nothing it is %+v", held)
	}
	r.start()
	eventually(t, "two rounds", func() bool {
		once()
		return r.set.Status(t.Context()).Stage == "idle"
	})
	if last := r.set.Status(t.Context()); last.Primary == first.Primary {
		t.Errorf("in the end it is %+v", last)
	}
}

// TestRotateRunOnceTellsOfAFailedStep by its exit status, so that a script notices.
func TestRotateRunOnceTellsOfAFailedStep(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.Server.Set("jwt", "of another program")
	p := r.rotate("run", "--once", "--config", r.config)
	if p.Exit(1); !strings.Contains(p.Log(), "A step of some sets failed") {
		t.Errorf("the log is\n%s", p.Log())
	}
}

func TestRotateStatusAndCheckOfAFile(t *testing.T) {
	r := newRotating(t)
	for name, value := range r.Server.Env("rotates") {
		t.Setenv(name, value)
	}
	out, err := rotateBy(t, "check", "--config", r.config)
	if err != nil || out != "all sets can be rotated\n" {
		t.Errorf("before the set begins check says %s (%v)", out, err)
	}
	r.rotate("run", "--once", "--config", r.config).Exit(0)
	r.rotate("now", "jwt", "--no-wait").Exit(0)
	r.rotate("run", "--once", "--config", r.config).Exit(0)
	out, err = rotateBy(t, "status", "--config", r.config)
	if err != nil || !strings.Contains(out, "jwt  introduce") || !strings.Contains(out, r.readers[0].url) {
		t.Errorf("the status is\n%s(%v)", out, err)
	}
	r.Server.Policy("- !deny { role: !host rotates, privileges: [update], resources: [!variable jwt, !variable plain] }\n- !delete { record: !variable jwt/control }\n")
	out, err = rotateBy(t, "check", "--config", r.config)
	for _, want := range []string{`lacks "update" on "jwt"`, `lacks "update" on "plain"`, `"jwt/control" is not declared`, r.readers[0].url} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("check does not say %s:\n%s", want, out)
		}
	}
}

// TestACommandSaysWhatBecameOfIt waits for the answer of who rotates the set, for a
// while, and takes the place of no other command.
func TestACommandSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"compares": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotating(t, options...)
			says := func(status int, text string, args ...string) {
				t.Helper()
				p := r.rotate(args...)
				if p.Exit(status); !strings.Contains(p.Log(), text) {
					t.Errorf("%q says\n%s", args, p.Log())
				}
			}
			r.rotate("run", "--once", "--config", r.config).Exit(0)
			says(1, "nobody answered the command", "now", "jwt", "--timeout", "1s")
			says(1, "another command is pending", "pause", "jwt", "--no-wait")
			says(1, "another command is pending", "pause", "jwt", "--timeout", "1s")
			says(0, "withdrawn: now", "pause", "jwt", "--no-wait", "--replace")
			engine := r.rotate("run", "--config", r.config)
			says(0, "obeyed: resumed", "resume", "jwt") // after the pause was
			says(1, "the command was rejected", "rollback", "jwt")
			says(1, "at most 256 are kept", "retire", "jwt", "none", "--force", "--reason", strings.Repeat("x", 300))
			says(1, "the command was rejected", "retire", "jwt", "none", "--force", "--reason", "a test")
			if log := r.set.Status(t.Context()); log.Stage != "idle" {
				t.Errorf("the set is at %s", log.Stage)
			}
			engine.Signal(os.Interrupt)
			engine.Exit(0)
		})
	}
}
