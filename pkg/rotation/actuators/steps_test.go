package actuators

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

const signingKey = "a key of the tests"

func stepper(send Send) *Steps {
	return &Steps{Set: "shop/token", Send: send, Key: func(context.Context) (secret.Value, error) {
		return secret.New([]byte(signingKey)), nil
	}}
}

func stepVersion() versions.Version {
	set := &versions.Document{Identity: "4ID", Claimed: "20261122t000003"}
	return versions.Version{ID: "20261122t000001", Fence: "20261122t000005", Set: set, Parts: map[string]secret.Value{"password": secret.New([]byte("c4n4ry"))}}
}

func signature(message []byte) string {
	mac := hmac.New(sha256.New, []byte(signingKey))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

func TestAStepIsSignedAndTimed(t *testing.T) {
	var got message
	s := stepper(func(_ context.Context, body []byte, signed string) ([]byte, error) {
		if signed != signature(body) {
			t.Errorf("the signature is %q", signed)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		return []byte(`{"parts":{"key":"bWludGVk"},"inUse":["a client"]}`), nil
	})
	before := time.Now()
	minted, err := s.Apply(t.Context(), stepVersion())
	if err != nil || string(minted["key"].Bytes()) != "minted" {
		t.Errorf("minted %v: %v", minted, err)
	}
	if got.Step != "apply" || got.Set != "shop/token" || got.ID != "20261122t000001" || got.Fence != "20261122t000005" || string(got.Parts["password"]) != "c4n4ry" {
		t.Errorf("sent was %+v", got)
	}
	if got.Identity != "4ID" || got.Claimed != "20261122t000003" {
		t.Errorf("it is of %s, claimed at %s", got.Identity, got.Claimed)
	}
	if got.Time.Before(before.Add(-time.Second)) || got.Time.After(time.Now()) {
		t.Errorf("its time is %v", got.Time)
	}
	if uses, err := s.InUse(t.Context(), stepVersion()); err != nil || !slices.Equal(uses, []string{"a client"}) || got.Step != "inUse" {
		t.Errorf("%s: in use by %q: %v", got.Step, uses, err)
	}
}

// TestBoundsOfSteps: the key that signs, the answer and its status, and what a program says.
func TestBoundsOfSteps(t *testing.T) {
	var text string
	status := http.StatusOK
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	defer service.Close()
	send := HTTP(service.URL, service.Client())
	for less := -1; less <= 1; less++ {
		s := stepper(func(context.Context, []byte, string) ([]byte, error) { return nil, nil })
		s.Key = func(context.Context) (secret.Value, error) { return secret.New(make([]byte, 16+less)), nil }
		if err := s.Revoke(t.Context(), stepVersion()); (err == nil) != (less >= 0) {
			t.Errorf("a key of the bound%+d: %v", less, err)
		}
		text = strings.Repeat(" ", 64<<10+less)
		if _, err := send(t.Context(), nil, ""); (err == nil) != (less <= 0) {
			t.Errorf("an answer of the bound%+d: %v", less, err)
		}
		said, complains := &bounded{}, &head{}
		if _, err := said.Write([]byte(text)); (err == nil) != (less <= 0) {
			t.Errorf("an output of the bound%+d: %v", less, err)
		}
		var out strings.Builder
		_, _ = complains.Write([]byte(strings.Repeat("x", 4<<10+less)))
		if complains.print(&out, "hook", nil); strings.Contains(out.String(), "left out") != (less >= 0) {
			t.Errorf("complaints of the bound%+d: %q", less, out.String())
		}
	}
	text = ""
	for code, good := range map[int]bool{200: true, 201: true, 298: true, 299: true, 300: false, 304: false, 400: false} {
		status = code
		if _, err := send(t.Context(), nil, ""); (err == nil) != good {
			t.Errorf("the status %d: %v", code, err)
		}
	}
}

// TestWhoUsesAVersionIsToldBriefly, whatever a service says.
func TestWhoUsesAVersionIsToldBriefly(t *testing.T) {
	s := stepper(func(context.Context, []byte, string) ([]byte, error) {
		return json.Marshal(answer{InUse: []string{strings.Repeat("ü", 10_000), "a\nb"}})
	})
	uses, err := s.InUse(t.Context(), stepVersion())
	if err != nil || len(uses) != 2 || len(uses[0]) > longestName+3 || uses[1] != "a; b" {
		t.Errorf("it is used by %q: %v", uses, err)
	}
}

// TestWhatAProgramComplainsOf is a bounded number of lines that name it.
func TestWhatAProgramComplainsOf(t *testing.T) {
	h := &head{}
	for range 100 {
		if n, err := h.Write([]byte("one\x1b[2J\n" + strings.Repeat("x", 100))); n != 108 || err != nil {
			t.Fatalf("%d bytes are taken: %v", n, err)
		}
	}
	var out strings.Builder
	h.print(&out, "/usr/bin/hook", nil)
	if text := out.String(); !strings.HasPrefix(text, "rotation: hook: one?[2J\n") || !strings.HasSuffix(text, "rotation: hook: what follows is left out\n") || len(text) > 2*maxComplaint {
		t.Errorf("%d bytes are printed: %s", len(text), text[:min(200, len(text))])
	}
}

// TestWhatAProgramSaysIsBounded, as the pipe of a program is copied.
func TestWhatAProgramSaysIsBounded(t *testing.T) {
	pipe := func() io.Reader { return struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 1<<20))} }
	said, complains := &bounded{}, &head{}
	if _, err := io.Copy(said, pipe()); err == nil || said.said.Len() > maxAnswer {
		t.Errorf("%d bytes of an answer are kept: %v", said.said.Len(), err)
	}
	if _, err := io.Copy(complains, pipe()); err != nil || complains.kept.Len() != maxComplaint {
		t.Errorf("%d bytes of complaints are kept: %v", complains.kept.Len(), err)
	}
}

// outcome is what an error says of an act.
func outcome(err error) string {
	switch {
	case err == nil:
		return "yes"
	case errors.Is(err, ErrRefused):
		return "no"
	}
	return "unknown"
}

func TestWhatAServiceAnswers(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"200": {status(200), "yes"}, "204": {status(204), "yes"}, "409": {status(409), "no"}, "404": {status(404), "unknown"},
		"401": {status(401), "unknown"}, "500": {status(500), "unknown"}, "503": {status(503), "unknown"},
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "unknown"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "unknown"},
		"half of one": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("{"))
		}, "unknown"},
		"nonsense":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("c4n4ry")) }, "unknown"},
		"too much":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+1)) }, "unknown"},
		"late, in time": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "unknown"},
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("a redirection is followed")
			}
			_, _ = io.Copy(io.Discard, r.Body)
			c.handler(w, r)
		}))
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if name == "late, in time" {
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		}
		err := stepper(HTTP(service.URL+"/step?token=c4n4ry", service.Client())).Verify(ctx, stepVersion())
		cancel()
		service.Close()
		if got := outcome(err); got != c.want {
			t.Errorf("%s: the outcome is %s instead of %s: %v", name, got, c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
	}
}

func TestWhatAProgramAnswers(t *testing.T) {
	dir := t.TempDir()
	sh := func(script string) Send { return Exec([]string{"HOME=" + dir}, "/bin/sh", "-c", "cd "+dir+"; "+script) }
	for script, want := range map[string]string{
		"cat >said; printf %s $SYNCER_SIGNATURE >signed": "yes",
		"exit 77":                           "no",
		"exit 1":                            "unknown",
		"kill -9 $$":                        "unknown",
		"echo nonsense":                     "unknown",
		"head -c 70000 /dev/zero":           "unknown",
		`[ "$HOME" = "$PWD" ]`:              "yes",
		"sleep 600 & echo $! >left; exit 0": "yes",
	} {
		if err := stepper(sh(script)).Revoke(t.Context(), stepVersion()); outcome(err) != want {
			t.Errorf("%s: the outcome is not %s: %v", script, want, err)
		}
	}
	said, err1 := os.ReadFile(filepath.Join(dir, "said"))
	signed, err2 := os.ReadFile(filepath.Join(dir, "signed"))
	if err := errors.Join(err1, err2); err != nil || string(signed) != signature(said) {
		t.Errorf("%s is signed %s: %v", said, signed, err)
	}
	left, err := os.ReadFile(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(left)))
	if pid == 0 {
		t.Fatalf("it leaves behind %q", left)
	}
	proctest.Eventually(t, "the end of the process left behind", func() bool { return ended(pid) })
	if err := stepper(Exec(nil, "/no/such/program")).Revoke(t.Context(), stepVersion()); outcome(err) != "unknown" {
		t.Errorf("without a program: %v", err)
	}
	// What the program started ends with it.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := stepper(sh("sleep 600 & sleep 600")).Revoke(ctx, stepVersion()); outcome(err) != "unknown" || time.Since(began) > 5*time.Minute {
		t.Errorf("it hangs: %v", err)
	}
}

// ended reports whether a process has ended; a zombie has.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
