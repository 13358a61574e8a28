package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// unending answers each question for values with one that has no end. It counts the
// questions.
func unending(asked *atomic.Int64) conjurdtest.Middleware {
	block := bytes.Repeat([]byte("QUJD"), 16<<10)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/secrets") {
				next.ServeHTTP(rw, r)
				return
			}
			asked.Add(1)
			rw.Header().Set("Content-Type", asJSON)
			_, err := io.WriteString(rw, `{"dev:variable:app/v0":"`)
			for err == nil {
				_, err = rw.Write(block)
			}
		})
	}
}

// multiplied answers them with as many small values as fit into what is read.
func multiplied(asked *atomic.Int64) conjurdtest.Middleware {
	var body bytes.Buffer
	body.WriteByte('{')
	for i := 0; body.Len() < 23<<20; i++ {
		fmt.Fprintf(&body, `"%x":"",`, i)
	}
	body.WriteString(`"z":""}`)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/secrets") {
				next.ServeHTTP(rw, r)
				return
			}
			asked.Add(1)
			rw.Header().Set("Content-Type", asJSON)
			_, _ = rw.Write(body.Bytes())
		})
	}
}

// TestAnswersThatAreTooLarge take a bounded part of the memory that the Pod has.
func TestAnswersThatAreTooLarge(t *testing.T) {
	most := int64(96 << 20)
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" && s.Value == "true" {
			most *= 4 // what the race detector knows of each byte
		}
	}
	for name, c := range map[string]struct {
		answer func(*atomic.Int64) conjurdtest.Middleware
		times  int64
	}{
		"without end":     {unending, 20},
		"of other values": {multiplied, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conjurdtest.Strict())
			for i := range 20 {
				w.group(fmt.Sprintf("g%d", i), "json", fmt.Sprintf("app/v%d", i))
			}
			p := w.start()
			w.settle()
			before := p.Memory("VmHWM")
			var asked atomic.Int64
			w.server.Intercept(c.answer(&asked))
			eventually(t, "many answers", func() bool { return asked.Load() >= c.times })
			took := p.Memory("VmHWM") - before
			t.Logf("%d MiB more than the %d MiB before", took>>20, before>>20)
			if took > most {
				t.Errorf("it took %d MiB more, want %d MiB at most", took>>20, most>>20)
			}
			w.server.Intercept(nil)
			w.await("g0.json", w.renew("app/v0"))
			p.Stop()
		})
	}
}
