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
	typeBare   = "text/plain"               // of refusals that precede any handler
	typeHTML   = "text/html"                // of answers without a body
	typeNoPath = "text/html; charset=utf-8" // of unknown paths
	typeBytes  = "application/octet-stream"
)

// reply is an answer. Handlers return it, and a single function writes it.
type reply struct {
	status int
	kind   string // content type
	body   []byte
	header map[string]string // in addition to the common ones
	// bare answers precede the application: they carry none of its security
	// headers.
	bare bool
}

// empty is an answer without a body.
func empty(status int) reply { return reply{status: status, kind: typeHTML} }

// noPath answers for an unknown path or method.
func noPath() reply { return reply{status: http.StatusNotFound, kind: typeNoPath} }

func textReply(status int, body string) reply {
	return reply{status: status, kind: typeText, body: []byte(body)}
}

// jsonReply encodes v. Like the genuine server, it escapes <, > and &.
func jsonReply(status int, v any) reply {
	b, err := json.Marshal(v)
	if err != nil {
		return failure()
	}
	return reply{status: status, kind: typeJSON, body: b}
}

// failure answers for an internal failure. The reason goes to the audit log, not to
// the client.
func failure() reply { return reply{status: http.StatusInternalServerError, kind: typeNoPath} }

// fault is the classic form of an error.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Target  string `json:"target,omitempty"`
	Details any    `json:"details,omitempty"`
	Inner   any    `json:"innererror,omitempty"`
}

// detail is a nested fault, whose members have another order.
type detail struct {
	Code    string `json:"code"`
	Target  string `json:"target"`
	Message string `json:"message"`
}

func faultReply(status int, f fault) reply {
	return jsonReply(status, map[string]fault{"error": f})
}

// badArgument answers for invalid parameters.
func badArgument(message string) reply {
	return faultReply(http.StatusUnprocessableEntity, fault{Code: "argument_error", Message: message})
}

// notFound answers for a resource that does not exist, or that the caller must not
// see.
func notFound(ref policy.Ref) reply {
	return faultReply(http.StatusNotFound, fault{
		Code: "not_found", Message: ref.NotFound(), Target: ref.Kind(),
		Details: detail{Code: "not_found", Target: "id", Message: string(ref)},
	})
}

// invalid answers for a field that violates its rules.
func invalid(field, message string) reply {
	return faultReply(http.StatusUnprocessableEntity, fault{
		Code: "validation_failed", Message: field + " " + message,
		Details: []detail{{Code: "validation_failed", Target: field, Message: message}},
	})
}

// security holds the headers of all answers that are not bare, with the values of
// the genuine server.
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
	h["Date"] = nil // the genuine server sends no Date
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
	_, _ = c.w.Write(p.body) // ignore the error: the client may have left
}

// tag sets the caching headers, and reports whether the client already has the
// body. Like the genuine server, it accepts only the exact tag.
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

// etag returns a tag like the genuine server's: weak, from the first half of the
// body's SHA-256.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}
