package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/health/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is what a Handler looks at.
type source struct {
	mu sync.Mutex
	s  status.Status
}

func (s *source) look() status.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

func (s *source) set(next status.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s = next
}

// oneLane is of targets that are all in one lane.
func oneLane(polled time.Time, ts ...status.Target) status.Status {
	for i := range ts {
		ts[i].Lane = "default"
	}
	return status.Status{Mode: "sidecar", Lanes: []status.Lane{{Name: "default", Targets: len(ts), Polled: polled}}, Targets: ts}
}

// ask returns the answer to a request from an address for a host.
func ask(h http.Handler, method, path, from, host, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	r.RemoteAddr = from
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:40000"

func TestWithoutATokenOnlyThisMachineIsServed(t *testing.T) {
	h := &status.Handler{Look: (&source{}).look}
	for _, c := range []struct {
		from, host string
		want       int
	}{
		{here, "localhost:8080", 200},
		{here, "127.0.0.1:8080", 200},
		{here, "127.0.0.1", 200},
		{"[::1]:40000", "[::1]:8080", 200},
		{"[::ffff:127.0.0.1]:40000", "localhost", 200},
		{"10.1.2.3:40000", "localhost:8080", 403},
		{here, "evil.example.com", 403}, // whose name leads to this machine
		{here, "10.1.2.3:8080", 403},
		{here, "localhost.example.com", 403},
	} {
		for _, path := range []string{"/status", "/status.json", "/status/status.js"} {
			if got := ask(h, "GET", path, c.from, c.host, "").Code; got != c.want {
				t.Errorf("%s from %s for %s: %d, want %d", path, c.from, c.host, got, c.want)
			}
		}
	}
}

func TestWithATokenOnlyItsBearersSeeData(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	h := &status.Handler{Look: (&source{}).look, TokenFile: file}
	data := func(token string) int { return ask(h, "GET", "/status.json", "10.1.2.3:4", "syncer", token).Code }
	if got := data("Bearer "); got != http.StatusServiceUnavailable {
		t.Errorf("without a file: %d", got)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\n")
	if got := data("Bearer "); got != http.StatusServiceUnavailable {
		t.Errorf("with an empty file: %d", got)
	}
	write("open-sesame\n")
	for token, want := range map[string]int{"Bearer open-sesame": 200, "": 401, "Bearer open": 401, "open-sesame": 401, "Basic open-sesame": 401} {
		if got := data(token); got != want {
			t.Errorf("%q: %d, want %d", token, got, want)
		}
	}
	if got := ask(h, "GET", "/status/events", here, "localhost", "").Code; got != 401 {
		t.Errorf("the stream without a token, from here: %d", got)
	}
	write("another\n")
	if data("Bearer open-sesame") != 401 || data("Bearer another") != 200 {
		t.Error("a token that has changed is not taken up")
	}
	if w := ask(h, "GET", "/status", "10.1.2.3:4", "syncer", ""); w.Code != 200 || strings.Contains(w.Body.String(), "file/") {
		t.Errorf("the page, which asks for the token: %d", w.Code)
	}
}

func TestABrowserMayRunNothingElse(t *testing.T) {
	h := &status.Handler{Look: (&source{}).look}
	for path, kind := range map[string]string{
		"/status": "text/html", "/status/status.css": "text/css", "/status/status.js": "text/javascript", "/status.json": "application/json", "/status/other": "text/plain",
	} {
		header := ask(h, "GET", path, here, "localhost", "").Header()
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(header.Get("Content-Type"), kind) {
			t.Errorf("%s: %v", path, header)
		}
	}
	html := ask(h, "GET", "/status", here, "localhost", "").Body.String()
	for _, inline := range []string{"<style", " style=", "onclick", "http://", "https://", "//cdn"} {
		if strings.Contains(html, inline) {
			t.Errorf("the page has %q", inline)
		}
	}
	if got := ask(h, "POST", "/status.json", here, "localhost", "").Code; got != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", got)
	}
}

func TestTheRootLeadsToThePage(t *testing.T) {
	h := &status.Handler{Look: (&source{}).look}
	if w := ask(h, "GET", "/", here, "localhost", ""); w.Code != http.StatusFound || w.Header().Get("Location") != "/status" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := ask(h, "GET", "/", "10.1.2.3:4", "localhost", ""); w.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", w.Code)
	}
}

// TestThePageIsSmallAndComplete: one short script, and nothing from another server.
func TestThePageIsSmallAndComplete(t *testing.T) {
	h := &status.Handler{Look: (&source{}).look}
	script := ask(h, "GET", "/status/status.js", here, "localhost", "").Body.String()
	if lines := strings.Count(script, "\n"); lines >= 400 {
		t.Errorf("the script has %d lines", lines)
	}
	page := ask(h, "GET", "/status", here, "localhost", "").Body.String()
	if strings.Count(page, "<script") != 1 || strings.Count(page, "src=") != 1 || strings.Contains(script, "import ") {
		t.Error("there is more than one script")
	}
	if strings.Count(script, "fetch(") != 1 || !strings.Contains(script, `fetch("/status/events"`) || strings.Contains(script, "innerHTML") {
		t.Error("the script asks for more than the stream, or writes HTML")
	}
}

// TestTheStreamSendsASignOfLifeEachSecond, also if nothing changes, so that a page knows
// when the process is gone.
func TestTheStreamSendsASignOfLifeEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &status.Handler{Look: (&source{}).look}
		ctx, stop := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/status/events", nil)
		r.RemoteAddr = here
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { defer close(done); h.ServeHTTP(w, r) }()
		time.Sleep(5500 * time.Millisecond)
		stop()
		<-done
		if got := strings.Count(w.Body.String(), ": all is as before"); got != 5 {
			t.Errorf("%d signs of life in five seconds", got)
		}
	})
}

// serve runs a Handler on an address of this machine.
func serve(t *testing.T, h http.Handler) status.Client {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return status.Client{URL: s.URL}
}

func TestGetReturnsWhatIsKnown(t *testing.T) {
	now := time.Now().UTC()
	hostile := status.Target{Name: `file/<script>alert("x")</script>`, State: status.Failing, Error: "</script>\n\n\x1b[2J", Next: now}
	src := &source{s: oneLane(now, hostile)}
	client := serve(t, &status.Handler{Look: src.look})
	got, err := client.Get(t.Context())
	if err != nil || len(got.Targets) != 1 || got.Targets[0].Name != hostile.Name || got.Targets[0].Error != hostile.Error || !errors.Is(got.Verdict(), status.ErrNotFresh) {
		t.Errorf("got %+v, %v", got, err)
	}
	text := ask(&status.Handler{Look: src.look}, "GET", "/status.json", here, "localhost", "").Body.String()
	if strings.ContainsAny(text, "<>\x1b") || !json.Valid([]byte(text)) {
		t.Errorf("not escaped: %s", text)
	}
	if !strings.HasPrefix(text, "{\n  \"at\": ") {
		t.Errorf("not indented: %s", text)
	}
	if _, err := (status.Client{URL: serve(t, http.NotFoundHandler()).URL}).Get(t.Context()); err == nil || !strings.Contains(err.Error(), "server.status") {
		t.Errorf("where it is off: %v", err)
	}
}

// TestFollowTellsWhatChanges compares what a reader of the stream has put
// together with what was to be seen.
func TestFollowTellsWhatChanges(t *testing.T) {
	begin := time.Now().UTC().Truncate(time.Millisecond)
	fresh := func(name string, proven time.Time) status.Target {
		return status.Target{Name: name, State: status.Fresh, Proven: proven}
	}
	src := &source{s: oneLane(begin, fresh("file/a", begin), fresh("file/b", begin))}
	client := serve(t, &status.Handler{Look: src.look})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	polled := begin.Add(time.Second)
	failing := status.Target{Name: "file/b", State: status.Failing, Proven: begin, Error: "no answer"}
	rotating := oneLane(polled, fresh("file/a", polled), fresh("file/b", polled))
	rotating.Rotations = []status.Rotation{{Set: "jwt", Stage: "switch", Waits: "2 of 5 Pods"}}
	steps := []status.Status{
		rotating,
		oneLane(polled, fresh("file/a", polled), fresh("file/b", polled)), // by the poll alone
		oneLane(polled, fresh("file/a", polled), failing),
		oneLane(polled, fresh("file/a", polled), fresh("file/c", polled)),
		{Mode: "sidecar", Standby: "another", Lanes: []status.Lane{}, Targets: []status.Target{}},
		oneLane(polled, fresh("file/a", begin)),
	}
	seen := 0
	err := client.Follow(ctx, func(got status.Status) {
		want := src.look()
		want.At = got.At
		if !reflect.DeepEqual(got, want) {
			t.Errorf("step %d: seen\n%+v, want\n%+v", seen, got, want)
		}
		if seen == len(steps) {
			stop()
			return
		}
		src.set(steps[seen])
		seen++
	})
	if seen != len(steps) {
		t.Errorf("ended after %d steps: %v", seen, err)
	}
}

// TestBoundsOfAStep: the process is looked at once a second at most.
func TestBoundsOfAStep(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			h := &status.Handler{Look: func() status.Status { looks++; return status.Status{} }}
			ask(h, "GET", "/status.json", here, "localhost", "")
			time.Sleep(time.Second + less)
			ask(h, "GET", "/status.json", here, "localhost", "")
			if (looks == 2) != (less >= 0) {
				t.Errorf("the bound%+d: %d looks", less, looks)
			}
		})
	}
}

func TestTooManyReadersAreTurnedAway(t *testing.T) {
	client := serve(t, &status.Handler{Look: (&source{}).look})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 16 {
		begun := make(chan struct{}, 100)
		wg.Go(func() { _ = client.Follow(ctx, func(status.Status) { begun <- struct{}{} }) })
		<-begun
	}
	if err := client.Follow(ctx, func(status.Status) {}); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one more: %v", err)
	}
	stop()
	wg.Wait()
}

// BenchmarkStatus is what one look of a reader costs with 10,000 targets.
func BenchmarkStatus(b *testing.B) {
	var ts []status.Target
	for i := range 10_000 {
		ts = append(ts, status.Target{Name: fmt.Sprintf("secret/team-%03d/app-%d", i%100, i), State: status.Fresh, Proven: time.Now()})
	}
	src := &source{s: oneLane(time.Now(), ts...)}
	h := &status.Handler{Look: src.look}
	for b.Loop() {
		b.SetBytes(int64(ask(h, "GET", "/status.json", here, "localhost", "").Body.Len()))
	}
}
