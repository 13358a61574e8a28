package conjurd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
)

// v2 is the media type that selects the newer API.
const v2 = "application/x.secretsmgr.v2beta+json"

// call is one request in progress.
type call struct {
	r     *http.Request
	w     http.ResponseWriter
	id    string            // of the request; the answer repeats it
	vars  map[string]string // name in the route's pattern → decoded part of the path
	query url.Values

	// From a verified token; empty on routes that need none.
	role   string // full name
	claims slosilo.Claims
}

func (c *call) ctx() context.Context { return c.r.Context() }

// account is the one named in the path.
func (c *call) account() string { return c.vars["account"] }

// resource returns the full name of the resource that the path names.
func (c *call) resource() policy.Ref {
	return policy.MakeRef(c.vars["account"], c.vars["kind"], c.vars["id"])
}

// wantsV2 reports whether the request asks for the newer API.
func (c *call) wantsV2() bool { return c.r.Header.Get("Accept") == v2 }

// errTooLong means that the body exceeds its limit.
var errTooLong = errors.New("the body is too long")

// body reads the request's body, at most limit bytes.
func (c *call) body(limit int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errTooLong
	}
	return b, err
}

// clientIP returns the client's address. Like the genuine server, it trusts
// X-Forwarded-For from a proxy on loopback.
func (c *call) clientIP() netip.Addr {
	peer := remoteIP(c.r)
	if !peer.IsLoopback() {
		return peer
	}
	hops := strings.Split(strings.Join(c.r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		addr, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if !addr.IsLoopback() {
			return addr.Unmap()
		}
	}
	return peer
}

func remoteIP(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return ap.Addr().Unmap()
}

// roleOf returns the full name for a login: "alice" is a user; in "host/web" the
// kind precedes the slash.
func roleOf(account, login string) string {
	kind, id, ok := strings.Cut(login, "/")
	if !ok {
		kind, id = "user", login
	}
	return string(policy.MakeRef(account, kind, id))
}

// loginOf is the inverse of roleOf.
func loginOf(role policy.Ref) string {
	_, kind, id, _ := role.Split()
	if kind == "user" {
		return id
	}
	return kind + "/" + id
}

// auditLog writes one line of JSON for each decision. It never receives a value.
type auditLog struct{ log *slog.Logger }

func newAuditLog(w io.Writer) *auditLog {
	if w == nil {
		return &auditLog{slog.New(slog.DiscardHandler)}
	}
	return &auditLog{slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.String("time", a.Value.Time().UTC().Format(time.RFC3339Nano))
			}
			return a
		},
	}))}
}

// decided records whether role was allowed to perform the operation on a resource.
// thing is "" if the operation concerns the role itself.
func (a *auditLog) decided(c *call, operation, role, thing string, allowed bool) {
	if !a.log.Enabled(c.ctx(), slog.LevelInfo) {
		return
	}
	attrs := []any{"operation", operation, "role", role, "allowed", allowed, "client_ip", c.clientIP().String(), "request_id", c.id}
	if thing != "" {
		attrs = append(attrs, "id", thing)
	}
	a.log.InfoContext(c.ctx(), "audit", attrs...)
}

// broke records an internal failure.
func (a *auditLog) broke(c *call, err error) {
	a.log.ErrorContext(c.ctx(), "failure", "error", err.Error(), "method", c.r.Method, "path", c.r.URL.Path, "request_id", c.id)
}

// explained records the reason for a refusal whose answer reveals nothing to the
// caller.
func (a *auditLog) explained(c *call, err error) {
	a.log.WarnContext(c.ctx(), "refused", "reason", err.Error(), "path", c.r.URL.Path, "request_id", c.id)
}

// refused explains the refusal of a log-in to the operator. role is "" if it is unknown.
func (s *Server) refused(c *call, role string, err error) {
	s.audit.explained(c, err)
	if s.opt.Refused == nil {
		return
	}
	login := ""
	if role != "" {
		login = loginOf(policy.Ref(role))
	}
	s.opt.Refused(login, c.clientIP().String(), err.Error())
}
