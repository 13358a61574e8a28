package conjurd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
)

// v2 is the media type that asks for the newer API.
const v2 = "application/x.secretsmgr.v2beta+json"

// call is one request on its way through a handler.
type call struct {
	r     *http.Request
	w     http.ResponseWriter
	id    string            // of the request, as in its answer
	vars  map[string]string // :: name in the route's pattern → decoded part of the path
	query url.Values

	// Of a checked token; empty on routes that need none.
	role   string // full name
	claims slosilo.Claims
}

func (c *call) ctx() context.Context { return c.r.Context() }

// account is the one named in the path.
func (c *call) account() string { return c.vars["account"] }

// resource is the full name of what the path names.
func (c *call) resource() policy.Ref {
	return policy.MakeRef(c.vars["account"], c.vars["kind"], c.vars["id"])
}

// wantsV2 reports whether the request asks for the newer API.
func (c *call) wantsV2() bool { return c.r.Header.Get("Accept") == v2 }

// errTooLong is for bodies beyond the bound.
var errTooLong = errors.New("the body is too long")

// body reads the request's, up to limit bytes.
func (c *call) body(limit int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errTooLong
	}
	return b, err
}

// clientIP is where the request comes from. A proxy on loopback is trusted to
// tell in X-Forwarded-For, as by the genuine server.
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

// roleOf is the full name of who logs in so: "alice" is a user, "host/web" is
// of the kind before the slash.
func roleOf(account, login string) string {
	kind, id, ok := strings.Cut(login, "/")
	if !ok {
		kind, id = "user", login
	}
	return string(policy.MakeRef(account, kind, id))
}

// loginOf is the opposite.
func loginOf(role policy.Ref) string {
	_, kind, id, _ := role.Split()
	if kind == "user" {
		return id
	}
	return kind + "/" + id
}
