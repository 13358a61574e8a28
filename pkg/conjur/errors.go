package conjur

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/advice"
)

// StatusError is an inconclusive answer from the server, or from a proxy.
type StatusError struct {
	Kind    Kind   // kind of the request
	Subject string // the requested variable or batch; may be empty
	Status  int    // of the HTTP response itself
	Code    string // Conjur's message code, such as CONJ00016E; often empty
	Detail  string // why the answer is unusual; often empty

	hint string // what to do about it; "" means what its status says
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: the server answered %d", about(e.Kind, e.Subject), e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if advice := e.advice(); advice != "" {
		text += "; " + advice
	}
	return text
}

// Down reports whether the server, or a proxy, answered nothing about the subject of the
// request: the same answer is due to every other request.
func (e *StatusError) Down() bool { return isDown(e.Status) }

// NoAnswerError means that a request has no answer: it was not sent, or the answer did
// not arrive. Its text is that of Err.
type NoAnswerError struct{ Err error }

func (e *NoAnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// VariableError is why a variable has no usable answer. Its text names the variable.
type VariableError struct {
	Variable string
	Err      error
}

func (e *VariableError) Error() string { return fmt.Sprintf("variable %q: %v", e.Variable, e.Err) }

// Unwrap returns the error without the variable's name.
func (e *VariableError) Unwrap() error { return e.Err }

// about names a request in an error. The subject may be empty.
func about(kind Kind, subject string) string {
	if subject == "" {
		return string(kind)
	}
	return string(kind) + " " + subject
}

// IdentityError means that the server refuses a request that it permits for every
// existing identity, and also refuses a new access token. Probably the identity was
// deleted.
type IdentityError struct {
	Err error // of the last attempt to get an access token
}

func (e *IdentityError) Error() string {
	return "this identity seems to be deleted, because Conjur refuses it a question that every identity may ask; all targets keep their last state; check the identity in the policy: " + e.Err.Error()
}

// Unwrap returns the error of the last attempt to get an access token.
func (e *IdentityError) Unwrap() error { return e.Err }

// batchSubject names a batch in an error.
func batchSubject(ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("%q", ids[0])
	}
	return fmt.Sprintf("%q and %d more", ids[0], len(ids)-1)
}

// statusAdvice says what to do about a status. The first line that fits counts.
var statusAdvice = []struct {
	from, to int    // statuses
	kinds    []Kind // nil: all
	text     string
}{
	{300, 399, nil, "set the address to which it redirects"},
	{401, 401, logins, "check the login, the key or token, and that the authenticator is enabled; Conjur's log has the reason"},
	{401, 401, nil, "Conjur refuses a new access token; check Conjur's clock, and that the identity exists"},
	{403, 403, logins, "the identity may not use this authenticator; grant it the privilege authenticate on the authenticator's webservice"},
	{403, 403, reads, "the identity may lack privileges, or a gateway answered; grant it read and execute"},
	{403, 403, policies, "the identity may not load into this branch; grant it create, or update to replace and delete"},
	{404, 404, policies, "there is no such branch, or this identity may not see it; check the name, such as root"},
	{409, 409, policies, "another policy is being loaded; repeat the command"},
	{403, 403, writes, "the identity may lack a privilege, or a gateway answered; grant it update"},
	{403, 403, nil, "check that the identity exists, and whether a gateway answered"},
	{404, 404, logins, "check the account and the authenticator in the address"},
	{404, 404, nil, "check the id, the privilege read, and whether the address is Conjur's"},
	{407, 407, nil, proxyLogin},
	{426, 426, nil, oldHTTP},
	{429, 429, nil, "Syncer retries; raise the limit of the server or the refresh interval"},
	{500, 500, nil, "see Conjur's log; Syncer retries"},
	{505, 505, nil, oldHTTP},
	{501, 599, nil, "Conjur, or a gateway before it, is down or overloaded; check their health; Syncer retries"},
}

const (
	proxyLogin = "it requires a login: list Conjur in NO_PROXY, or let the proxy pass Conjur without a login"
	oldHTTP    = "let it, or the gateway before it, speak HTTP/1.1 too"
)

var (
	logins = []Kind{KindAuthenticate, KindLogin}
	reads  = []Kind{KindBatch, KindVariable}
	writes = []Kind{KindSet, KindSetAll, KindRotateKey}

	policies = []Kind{KindPolicy}
)

func (e *StatusError) advice() string {
	if e.hint != "" {
		return e.hint
	}
	for _, a := range statusAdvice {
		if a.from <= e.Status && e.Status <= a.to && (a.kinds == nil || slices.Contains(a.kinds, e.Kind)) {
			return a.text
		}
	}
	return ""
}

// hint says what to do about an answer whose address seems to be wrong. It contains only
// the address to set. "" means that the status says enough. base is the configured
// address.
func hint(req *http.Request, base string, r *reply) string {
	location, html := r.header.Get("Location"), strings.HasPrefix(r.header.Get("Content-Type"), "text/html")
	if location == "" && !html {
		return "" // as usual
	}
	asked, err := url.Parse(base)
	switch {
	case err != nil:
	case r.status >= 300 && r.status <= 399:
		return redirectHint(req, asked, location)
	case html && len(r.body) > 0 && (r.status == http.StatusOK || r.status == http.StatusNotFound) && asked.Path == "":
		return fmt.Sprintf("check the account and the authenticator in the address; set the address %s/api if this is Conjur Enterprise or Conjur Cloud", base)
	}
	return ""
}

// redirectHint returns the address of Conjur behind a redirect: where it leads, without
// the path of the request. A redirect elsewhere leads to a host at least.
func redirectHint(req *http.Request, asked *url.URL, location string) string {
	to, err := url.Parse(location)
	if err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return ""
	}
	at := (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
	path, whole := strings.CutPrefix(req.URL.EscapedPath(), asked.EscapedPath())
	if prefix, ok := strings.CutSuffix(to.EscapedPath(), path); ok && whole && path != "" {
		return "set the address " + at + prefix
	}
	return "it redirects to " + at + "; set Conjur's address"
}

// advise adds to an error of a connection what to do about it, if that is known.
func advise(err error) error {
	switch {
	case errors.Is(err, errTimeout):
		return advice.Add(err, "check Conjur's load and the NetworkPolicy; Syncer retries")
	case errors.Is(err, errBrokenAnswer):
		return advice.Add(err, "a gateway may have answered, or the server speaks only HTTP/2; check the address, and see the gateway's log")
	case errors.Is(err, errOnlyHTTP2):
		return advice.Add(err, oldHTTP)
	case errors.Is(err, errNoTLS):
		return advice.Add(err, "check the port and the scheme of the address")
	}
	return advice.Connection(err, "set CONJUR_SSL_CERTIFICATE or CONJUR_CERT_FILE to the CA certificate of Conjur")
}
