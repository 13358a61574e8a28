package variables_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// Whatever is wrong with the server or the way to it: unknown, and nothing is
// reported; when it is over, all goes on.
func TestTroubleIsUnknownAndPasses(t *testing.T) {
	status := func(n int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(n); _, _ = io.WriteString(w, body) }
	}
	raw := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}
	}
	const key = `"dev:variable:app/a"`
	trouble := map[string]func(http.ResponseWriter){
		"500": status(500, "<html>"), "502": status(502, ""), "503": status(503, `{"code":404}`), "504": status(504, ""),
		"429": status(429, ""), "404 page": status(404, "<html>"), "403 page": status(403, "<html>"), "204": status(204, ""),
		"302": status(302, ""), "407": status(407, ""), "418": status(418, ""), "304 unasked": status(304, ""),
		"garbage": raw("\x16\x03\x01 what is this"), "closed": raw(""), "half a header": raw("HTTP/1.1 200 OK\r\nContent-Le"),
		"truncated":     raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{" + key + ":"),
		"not JSON":      status(200, "<html>OK</html>"),
		"null":          status(200, "null"),
		"list":          status(200, "[]"),
		"number":        status(200, "{"+key+":1}"),
		"empty":         status(200, ""),
		"empty value":   status(200, "{"+key+`:""}`),
		"lacking":       status(200, `{"dev:variable:app/b":"v"}`),
		"wrong account": status(200, `{"prod:variable:app/a":"v"}`),
		"short id":      status(200, `{"app/a":"v"}`),
		"lost encoding": status(200, "{"+key+`:"dg==\n"}`),
		"not base64": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "base64")
			status(200, "{"+key+`:"%"}`)(w)
		},
		"other encoding": func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); status(200, "x")(w) },
	}
	for name, answer := range trouble {
		t.Run(name, func(t *testing.T) {
			d := conjurtest.New()
			d.Set("app/a", "v")
			c := start(t, d, nil)
			bad := func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindAuthenticate {
					return false
				}
				answer(w)
				return true
			}
			d.SetIntercept(bad)
			for range 2 {
				wantUnknown(t, fetch(t, c, "app/a"))
				if changed, err := c.Changed(t.Context(), []string{"app/a"}); len(changed) != 0 || err == nil {
					t.Errorf("poll: %q, %v", changed, err)
				}
			}
			d.SetIntercept(nil)
			wantFound(t, fetch(t, c, "app/a"), "v")
			poll(t, c, []string{"app/a"})
		})
	}
}

// The same for an answer about a variable alone.
func TestTroubleWithOneVariable(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"empty":   func(w http.ResponseWriter) { w.Header().Set("Content-Disposition", "attachment"); w.WriteHeader(200) },
		"page":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<!DOCTYPE html><html>") },
		"encoded": func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "br"); _, _ = io.WriteString(w, "x") },
		"304":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotModified) },
		"500":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"503":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"400":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) },
	} {
		t.Run(name, func(t *testing.T) {
			d := conjurtest.New()
			d.Fill([]string{"app/a", "b,c"})
			d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindVariable {
					answer(w)
				}
				return kind == conjur.KindVariable
			}
			c := start(t, d, nil)
			for range 2 {
				answers := c.Fetch(t.Context(), []string{"app/a", "b,c"})
				wantFound(t, answers["app/a"], "value of app/a")
				wantUnknown(t, answers["b,c"])
			}
			d.SetIntercept(nil)
			wantFound(t, fetch(t, c, "b,c"), "value of b,c")
		})
	}
}

func TestSlowBodyEndsAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		slow := func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
			if kind != conjur.KindBatch {
				return false
			}
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(200)
			for {
				_, _ = io.WriteString(w, "{")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return true
				}
			}
		}
		d.Intercept = slow
		c := serve(t, d, func(c *setup) { c.HTTPTimeout = 5 * time.Second })
		begin := time.Now()
		a := fetch(t, c, "app/a")
		if wantUnknown(t, a); isContext(a.Err) || !strings.Contains(a.Err.Error(), "no complete answer within 5s") || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), a.Err)
		}
		d.SetIntercept(nil)
		wantFound(t, fetch(t, c, "app/a"), "v")
	})
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for name, c := range map[string]struct {
		header func() string
		pause  time.Duration
	}{
		"seconds": {func() string { return "30" }, 30 * time.Second},
		"date":    {func() string { return time.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat) }, 40 * time.Second},
		"bounded": {func() string { return "86400" }, 5 * time.Minute},
		"none":    {func() string { return "" }, 0},
		"odd":     {func() string { return "soon" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, ids := conjurtest.Filled(500)
				client := serve(t, d, nil)
				poll(t, client, ids)
				d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
					w.Header().Set("Retry-After", c.header())
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				})
				d.Log()
				if _, err := client.Changed(t.Context(), ids); err == nil || len(d.Log()) != 1 {
					t.Errorf("the poll went on: %v", err)
				}
				d.SetIntercept(nil)
				if c.pause > 0 {
					time.Sleep(c.pause - time.Nanosecond)
					a := fetch(t, client, ids[0])
					if wantUnknown(t, a); len(d.Log()) != 0 {
						t.Error("asked too early")
					}
					if _, ok := errors.AsType[*conjur.PauseError](a.Err); !ok {
						t.Errorf("got %v", a.Err)
					}
					time.Sleep(c.pause / 2)
				}
				wantFound(t, fetch(t, client, ids[0]), "value of "+ids[0])
			})
		})
	}
}

// tooLarge is the length of a value that is not read.
const tooLarge = 24<<20 + 1

func TestLongAnswerIsNotRead(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b", "app/long"}
	d.Fill(ids)
	d.Set("app/long", strings.Repeat("x", tooLarge))
	c := start(t, d, nil)
	answers := c.Fetch(t.Context(), ids)
	wantFound(t, answers["app/a"], "value of app/a")
	wantFound(t, answers["app/b"], "value of app/b")
	wantUnknown(t, answers["app/long"])
}

func TestContextEndsACall(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	begun := make(chan struct{}, 10)
	d.Intercept = func(_ http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if kind != conjur.KindBatch {
			return false
		}
		begun <- struct{}{}
		<-r.Context().Done()
		return true
	}
	c := start(t, d, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if a := c.Fetch(ctx, []string{"app/a"})["app/a"]; !errors.Is(a.Err, context.Canceled) {
		t.Errorf("fetch: %v", a.Err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	go func() { <-begun; stop(errors.New("shutting down")) }()
	if _, err := c.Changed(ctx, []string{"app/a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("poll: %v", err)
	}
}

func TestHeaders(t *testing.T) {
	d := conjurtest.New()
	d.Fill([]string{"app/a", "b,c"})
	c := start(t, d, func(c *setup) { c.Version = "1.2.3" })
	c.Fetch(t.Context(), []string{"app/a", "b,c"})
	for _, a := range d.Log() {
		if a.Header.Get("User-Agent") != "syncer/1.2.3" || a.Header.Get("x-cybr-telemetry") == "" {
			t.Errorf("%s: headers %v", a.Kind, a.Header)
		}
		if e := a.Header.Get("Accept-Encoding"); a.Kind != conjur.KindBatch && e != "" {
			t.Errorf("%s: Accept-Encoding %q", a.Kind, e)
		}
	}
}

func TestObserveSeesEachRequest(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	seen := &observed{}
	c := start(t, d, func(c *setup) { c.Observer = seen })
	poll(t, c, []string{"app/a"})
	poll(t, c, []string{"app/a"})
	if want := []string{"authenticate 200", "batch 200", "batch 304"}; !slices.Equal(seen.texts, want) {
		t.Errorf("observed %q, want %q", seen.texts, want)
	}
}

// observed is what an observer heard of.
type observed struct {
	mu    sync.Mutex
	texts []string
}

func (o *observed) Asked(e conjur.Exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts = append(o.texts, fmt.Sprintf("%s %d", e.Kind, e.Status))
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		c := serve(t, d, func(c *setup) { c.RateLimit = 2 })
		time.Sleep(10 * time.Second) // the first fetches are apart
		begin := time.Now()
		for range 10 {
			wantFound(t, fetch(t, c, "app/a"), "v")
		}
		if took := time.Since(begin); took != 1500*time.Millisecond {
			t.Errorf("11 requests at 2 a second, 8 of them at once, took %v", took)
		}
	})
}

// The canary is a value, the API key, and the token; it must not be seen in
// any error or log line, whatever the server does.
func TestNothingSecretIsShown(t *testing.T) {
	const canary = "c4n4ry"
	core, logs := observer.New(zapcore.DebugLevel)
	answers := []func(w http.ResponseWriter, r *http.Request) bool{
		func(http.ResponseWriter, *http.Request) bool { return false },
		func(w http.ResponseWriter, _ *http.Request) bool {
			conjurtest.JSON(w, 200, `{"dev:variable:app/a":"`+canary+`"`)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			conjurtest.JSON(w, 200, `{"dev:variable:app/a":["`+canary+`"]}`)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			conjurtest.JSON(w, 200, `{"dev:variable:`+canary+`":"x"}`)
			return true
		},
		func(w http.ResponseWriter, r *http.Request) bool {
			conjurtest.JSON(w, 500, r.Header.Get("Authorization")+canary)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			conjurtest.JSON(w, 404, `{"error":"`+canary+`"}`)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("ETag", canary)
			w.Header().Set("Content-Encoding", canary)
			conjurtest.JSON(w, 200, canary)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, canary+" is no status line\r\n\r\n")
			_ = conn.Close()
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+canary+"\r\n\r\n")
			_ = conn.Close()
			return true
		},
	}
	for i, answer := range answers {
		d := conjurtest.New()
		d.Set("app/a", canary)
		d.Set("b,c", canary)
		d.Intercept = func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool { return answer(w, r) }
		c := start(t, d, func(c *setup) { c.Logger = zap.New(core) })
		ids := []string{"app/a", "b,c"}
		var shown strings.Builder
		for range 2 {
			for _, a := range c.Fetch(t.Context(), ids) {
				fmt.Fprintf(&shown, "%v %+v %#v\n", a.Err, a, a.Err)
			}
			_, err := c.Changed(t.Context(), ids)
			fmt.Fprintf(&shown, "%v %+v\n", err, err)
			d.Set("app/a", canary+"2")
		}
		fmt.Fprintf(&shown, "%+v", c)
		if text := shown.String(); strings.Contains(text, canary) || strings.Contains(text, "Token token") {
			t.Errorf("answer %d: shown in: %s", i, text)
		}
	}
	if logs.Len() == 0 {
		t.Error("no log line to look at")
	}
	for _, e := range logs.All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(text, canary) || strings.Contains(text, "W/") {
			t.Errorf("logged: %s", text)
		}
	}
}
