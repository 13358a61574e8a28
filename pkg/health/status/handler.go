package status

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/internal/loopback"
	"github.com/secretsync/syncer/internal/safefile"
)

// maxToken bounds the token file, in bytes. The header of a request has room for it.
const maxToken = 8 << 10

//go:embed status.html status.css status.js
var assets embed.FS

// Handler serves the Status that Look returns.
//
//	/                leads to the page
//	/status          the page, which contains no data itself
//	/status.json     a Status
//	/status/events   the Status, and then each second the changes
//
// Register it for /{$}, /status, /status.json and /status/.
type Handler struct {
	// Look returns the current Status. It is called at most once a second.
	Look func() Status
	// TokenFile holds the bearer token that clients must present. It is read at
	// each request. If it is empty, the page and the data are available without a
	// token, but only from this machine.
	TokenFile string

	streams atomic.Int32

	mu   sync.Mutex
	last Status
}

// Times of the stream.
const (
	step = time.Second      // between two calls of Look
	slow = 30 * time.Second // for a reader to receive data
)

// mostStreams bounds the number of concurrent streams.
const mostStreams = 16

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	if h.TokenFile == "" && !local(r) {
		http.Error(w, "the status page is for this machine only: use kubectl port-forward, or set server.statusTokenFile", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case "/":
		http.Redirect(w, r, "/status", http.StatusFound)
	case "/status":
		asset(w, r, "status.html")
	case "/status/status.css", "/status/status.js":
		asset(w, r, strings.TrimPrefix(r.URL.Path, "/status/"))
	case "/status.json":
		if h.permits(w, r) {
			w.Header().Set("Content-Type", "application/json")
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			_ = encoder.Encode(h.recentStatus()) // on an error the reader is gone
		}
	case "/status/events":
		if h.permits(w, r) {
			h.stream(w, r)
		}
	default:
		http.NotFound(w, r)
	}
}

// protect makes browsers load scripts and styles only from this server, and store
// nothing.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

func asset(w http.ResponseWriter, r *http.Request, name string) { http.ServeFileFS(w, r, assets, name) }

// local reports whether a request comes from this machine and uses a local name.
// The name matters because a Web page can point its DNS name at this machine.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return loopback.Is(strings.Trim(host, "[]"))
}

// permits reports whether the request has the token. If not, it answers the
// request.
func (h *Handler) permits(w http.ResponseWriter, r *http.Request) bool {
	if h.TokenFile == "" {
		return true
	}
	token, err := safefile.Read(h.TokenFile, maxToken)
	want := strings.TrimSpace(string(token))
	if err == nil && want == "" {
		err = errors.New("the file of the token is empty")
	}
	if err != nil {
		http.Error(w, "the token cannot be read; see server.statusTokenFile", http.StatusServiceUnavailable)
		return false
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(want)) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the status needs the token in the file of server.statusTokenFile", http.StatusUnauthorized)
		return false
	}
	return true
}

// recentStatus returns a Status that is at most one step old.
func (h *Handler) recentStatus() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.last.At) >= step {
		h.last = h.Look()
		h.last.At = time.Now()
	}
	return h.last
}

// stream sends server-sent events until the reader or the server is gone.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	defer h.streams.Add(-1)
	if h.streams.Add(1) > mostStreams {
		http.Error(w, "too many viewers; try again later", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(format string, args ...any) bool {
		// The server's deadline is for short answers.
		_ = control.SetWriteDeadline(time.Now().Add(slow))
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}
	before := h.recentStatus()
	if !send("event: status\ndata: %s\n\n", encodeLine(before)) {
		return
	}
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		now, ok := h.recentStatus(), true
		switch c := now.since(before); {
		case now.Standby != before.Standby || now.Restart != before.Restart || len(now.Lanes) != len(before.Lanes):
			ok = send("event: status\ndata: %s\n\n", encodeLine(now))
		case len(c.Targets) > 0 || len(c.Gone) > 0 || !slices.Equal(now.Lanes, before.Lanes) || !slices.Equal(now.Rotations, before.Rotations):
			ok = send("event: change\ndata: %s\n\n", encodeLine(c))
		default: // readers notice within two seconds that the process is gone
			ok = send(": all is as before\n\n")
		}
		if !ok {
			return
		}
		before = now
	}
}

// encodeLine returns v as JSON in one line. v must be encodable.
func encodeLine(v any) []byte {
	line, _ := json.Marshal(v)
	return line
}
