package conjurd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
)

// Content types of answers.
const (
	typeJSON   = "application/json; charset=utf-8"
	typeText   = "text/plain; charset=utf-8"
	typeBare   = "text/plain"               // of refusals before any handler
	typeHTML   = "text/html"                // of answers without a body
	typeNoPath = "text/html; charset=utf-8" // of paths that lead nowhere
	typeBytes  = "application/octet-stream"
)

// reply is an answer: handlers return it, and one place writes it.
type reply struct {
	status int
	kind   string // content type
	body   []byte
	header map[string]string // besides those that all have
	// bare answers come from before the application: they carry none of its
	// security headers.
	bare bool
}

// empty is an answer without a body.
func empty(status int) reply { return reply{status: status, kind: typeHTML} }

// noPath is the answer to a path or method that leads nowhere.
func noPath() reply { return reply{status: http.StatusNotFound, kind: typeNoPath} }

func text(status int, body string) reply {
	return reply{status: status, kind: typeText, body: []byte(body)}
}

// jsonReply encodes v, with <, > and & escaped as the genuine server does.
func jsonReply(status int, v any) reply {
	b, err := json.Marshal(v)
	if err != nil {
		return failure()
	}
	return reply{status: status, kind: typeJSON, body: b}
}

// failure is the answer when something broke on our side. What, is for the
// audit and not for the client.
func failure() reply { return reply{status: http.StatusInternalServerError, kind: typeNoPath} }

// fault is the classic form of an error.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Target  string `json:"target,omitempty"`
	Details any    `json:"details,omitempty"`
	Inner   any    `json:"innererror,omitempty"`
}

// detail of a fault has its members in another order.
type detail struct {
	Code    string `json:"code"`
	Target  string `json:"target"`
	Message string `json:"message"`
}

func faultReply(status int, f fault) reply {
	return jsonReply(status, map[string]fault{"error": f})
}

// badArgument is for parameters that make no sense.
func badArgument(message string) reply {
	return faultReply(http.StatusUnprocessableEntity, fault{Code: "argument_error", Message: message})
}

// notFound is for what is not there or must seem so.
func notFound(ref policy.Ref) reply {
	return faultReply(http.StatusNotFound, fault{
		Code: "not_found", Message: ref.NotFound(), Target: ref.Kind(),
		Details: detail{Code: "not_found", Target: "id", Message: string(ref)},
	})
}

// invalid is for a field that breaks its rules.
func invalid(field, message string) reply {
	return faultReply(http.StatusUnprocessableEntity, fault{
		Code: "validation_failed", Message: field + " " + message,
		Details: []detail{{Code: "validation_failed", Target: field, Message: message}},
	})
}

// security headers of all but bare answers, with the values of the genuine
// server.
var security = [...][2]string{
	{"X-Frame-Options", "SAMEORIGIN"},
	{"X-XSS-Protection", "1; mode=block"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Download-Options", "noopen"},
	{"X-Permitted-Cross-Domain-Policies", "none"},
	{"Referrer-Policy", "strict-origin-when-cross-origin"},
}

// write sends the answer to c.
func (p reply) write(c *call, runtime float64) {
	h := c.w.Header()
	h["Date"] = nil // the genuine server sends none
	h.Set("X-Request-Id", c.id)
	h.Set("X-Runtime", strconv.FormatFloat(runtime, 'f', 6, 64))
	if p.kind != typeNoPath && !p.bare {
		for _, s := range security {
			h.Set(s[0], s[1])
		}
	}
	for k, v := range p.header {
		h.Set(k, v)
	}
	if c.r.Header.Get("Accept") != "" && len(p.body) > 0 && !p.bare {
		h.Set("Vary", "Accept")
	}
	if p.tag(c, h) {
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	if p.status != http.StatusNoContent {
		h.Set("Content-Type", p.kind)
		h.Set("Content-Length", strconv.Itoa(len(p.body)))
	}
	c.w.WriteHeader(p.status)
	_, _ = c.w.Write(p.body) // the client may be gone
}

// tag sets the caching headers, and reports whether the client has the body
// already. Only the exact tag counts, as with the genuine server.
func (p reply) tag(c *call, h http.Header) bool {
	if len(p.body) == 0 || p.status != http.StatusOK && p.status != http.StatusCreated {
		if p.kind != typeNoPath {
			h.Set("Cache-Control", "no-cache")
		}
		return false
	}
	tag := etag(p.body)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "max-age=0, private, must-revalidate")
	reads := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	return reads && p.status == http.StatusOK && c.r.Header.Get("If-None-Match") == tag
}

// etag is the genuine server's: weak, of the first half of the body's
// SHA-256.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}
