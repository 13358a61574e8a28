package conjurd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// routes lists all routes. The first match applies.
var routes = slices.Concat(apiRoutes, authenticatorRoutes(), v2Routes())

// v2Routes returns the routes of the newer API that conjurd lacks, each of which says so.
func v2Routes() (all []route) {
	for pattern, methods := range map[string][]string{
		"branches/:account":                      {"GET", "POST"},
		"branches/:account/*id":                  {"GET", "PATCH", "DELETE"},
		"groups/:account/*id":                    {"POST", "DELETE"},
		"authenticators/:account":                {"GET", "POST"},
		"authenticators/:account/:type/:service": {"GET", "PATCH", "DELETE"},
	} {
		for _, method := range methods {
			all = append(all, at(method, pattern, (*Server).notServed))
		}
	}
	return all
}

// authenticatorRoutes returns the routes that all authenticators share.
func authenticatorRoutes() (all []route) {
	for kind := range settings {
		pattern := string(kind) + "/:service/:account"
		if kind == authnGCP {
			pattern = string(kind) + "/:account"
		}
		for _, r := range []route{at("GET", pattern+"/status", kind.status), at("PATCH", pattern, kind.enable)} {
			r.ours = kind.ours()
			all = append(all, r)
		}
	}
	return all
}

var apiRoutes = []route{
	at("GET", "", (*Server).status).open(),
	at("GET", "health", (*Server).health).open().extra(),
	at("GET", "authn/:account/login", (*Server).login).open(),
	at("POST", "authn/:account/:login/authenticate", (*Server).authenticate).open(),
	at("PUT", "authn/:account/api_key", (*Server).rotateKey).open(),
	at("GET", "authn/:account/api_key", (*Server).keyRotated).open(),
	at("PUT", "authn/:account/password", (*Server).setPassword).open(),
	at("POST", "authn-jwt/:service/:account/authenticate", (*Server).authenticateJWT).open(),
	at("POST", "authn-jwt/:service/:account/:login/authenticate", (*Server).authenticateJWT).open(),
	at("POST", "authn-iam/:service/:account/:login/authenticate", (*Server).authenticateIAM).open(),
	at("POST", "authn-azure/:service/:account/:login/authenticate", (*Server).authenticateAzure).open(),
	at("POST", "authn-gcp/:account/authenticate", (*Server).authenticateGCP).open(),
	at("POST", "authn-cert/:service/:account/authenticate", (*Server).authenticateCert).open().extra(),
	at("POST", "authn-cert/:service/:account/:login/authenticate", (*Server).authenticateCert).open().extra(),
	at("POST", "authn-k8s/:service/inject_client_cert", (*Server).injectClientCert).open(),
	at("POST", "authn-k8s/:service/:account/:login/authenticate", (*Server).authenticateK8s).open(),
	at("GET", "authenticators", (*Server).listAuthenticators).open(),
	at("GET", "whoami", (*Server).whoami),
	at("GET", "secrets", (*Server).getSecrets),
	at("GET", "secrets/:account/variable/*id", (*Server).getSecret),
	at("POST", "secrets/:account/variable/*id", (*Server).setSecret),
	at("PUT", "secrets/:account/values", (*Server).setValues).extra(),
	at("GET", "resources", (*Server).listResources),
	at("GET", "resources/:account", (*Server).listResources),
	at("GET", "resources/:account/:kind", (*Server).listResources),
	at("GET", "resources/:account/:kind/*id", (*Server).showResource),
	at("GET", "roles/:account/:kind/*id", (*Server).showRole),
	at("POST", "roles/:account/:kind/*id", (*Server).addMember),
	at("DELETE", "roles/:account/:kind/*id", (*Server).deleteMember),
	at("POST", "host_factory_tokens", (*Server).createFactoryTokens),
	at("DELETE", "host_factory_tokens/:token", (*Server).deleteFactoryToken),
	at("POST", "host_factories/hosts", (*Server).createHost).open(),
	at("GET", "public_keys/:account/:kind/*id", (*Server).publicKeys),
	at("GET", "policies/:account/policy/*id", (*Server).showPolicy),
	at("POST", "policies/:account/policy/*id", (*Server).loadPolicy),
	at("PATCH", "policies/:account/policy/*id", (*Server).loadPolicy),
	at("PUT", "policies/:account/policy/*id", (*Server).loadPolicy),
}

// Limits of the genuine server's HTTP parser, in encoded bytes.
const (
	maxQuery  = 10_240
	maxPath   = 8_192
	maxField  = 80 << 10
	maxHeader = 112 << 10
)

// route is a method and a pattern. ":x" matches one part of the path. A final "*x"
// matches all remaining parts.
type route struct {
	method  string
	pattern []string
	handle  func(*Server, *call) reply
	public  bool // needs no token
	ours    bool // an extension that Strict disables
}

func at(method, pattern string, handle func(*Server, *call) reply) route {
	return route{method: method, pattern: splitPath(pattern), handle: handle}
}

func (r route) open() route  { r.public = true; return r }
func (r route) extra() route { r.ours = true; return r }

// serveHTTP answers one request.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if len(r.URL.RawQuery) > maxQuery || len(r.URL.EscapedPath()) > maxPath {
		hangUp(w, "HTTP/1.0 400 Bad Request\r\n")
		return
	}
	if hasLongField(r.Header) {
		hangUp(w, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n")
		return
	}
	c := &call{r: r, w: w, id: newRequestID()}
	s.recoverAnswer(c).write(c, time.Since(start).Seconds())
}

// recoverAnswer is answer for a handler that may panic, for example on a damaged
// page of the data file. A panic costs one request and is recorded in the audit
// log.
func (s *Server) recoverAnswer(c *call) (rep reply) {
	defer func() {
		if p := recover(); p != nil {
			rep = s.broken(c, fmt.Errorf("panic: %v", p))
		}
	}()
	return s.answer(c)
}

// answer finds the route of the request and calls its handler.
func (s *Server) answer(c *call) reply {
	parts := splitPath(c.r.URL.EscapedPath())
	rt := s.match(c.r.Method, parts)
	if rt == nil && len(parts) > 0 && (parts[0] == "authn" || strings.HasPrefix(parts[0], "authn-")) {
		return unknownAuthenticator(parts)
	}
	if rt == nil || !rt.public {
		if refusal, ok := s.identify(c); !ok {
			return refusal
		}
	}
	if rt == nil {
		return noPath()
	}
	if refusal, ok := c.decode(rt, parts); !ok {
		return refusal
	}
	return rt.handle(s, c)
}

// genuineAuthenticators lists those that log in at the genuine server.
var genuineAuthenticators = []string{"authn", "authn-azure", "authn-gcp", "authn-iam", "authn-jwt", "authn-k8s", "authn-ldap", "authn-oidc"}

// unknownAuthenticator answers for an unknown authenticator, or for a login with
// unencoded slashes. A login with one slash looks like a login to a service.
func unknownAuthenticator(parts []string) reply {
	if parts[len(parts)-1] == "authenticate" && (len(parts) > 5 || !slices.Contains(genuineAuthenticators, parts[0])) {
		return noPath()
	}
	return empty(http.StatusUnauthorized)
}

// match returns the route, or nil if there is none.
func (s *Server) match(method string, parts []string) *route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range routes {
		rt := &routes[i]
		if rt.method == method && (!rt.ours || !s.opt.Strict) && rt.fits(parts) {
			return rt
		}
	}
	return nil
}

func (r *route) fits(parts []string) bool {
	for i, p := range r.pattern {
		if strings.HasPrefix(p, "*") {
			return len(parts) > i
		}
		if i >= len(parts) || p != parts[i] && !strings.HasPrefix(p, ":") {
			return false
		}
	}
	return len(parts) == len(r.pattern)
}

// splitPath splits an encoded path at its slashes and omits empty parts.
func splitPath(escaped string) []string {
	return strings.FieldsFunc(escaped, func(r rune) bool { return r == '/' })
}

// decode sets vars and query. It decodes each part separately, so that an encoded
// slash in a login does not split it.
func (c *call) decode(rt *route, parts []string) (reply, bool) {
	c.vars = map[string]string{}
	for i, p := range rt.pattern {
		var v string
		var err error
		switch p[0] {
		case ':':
			v, err = url.PathUnescape(parts[i])
		case '*':
			v, err = url.PathUnescape(strings.Join(parts[i:], "/"))
		default:
			continue
		}
		if err != nil || !utf8.ValidString(v) {
			return empty(http.StatusBadRequest), false
		}
		if strings.ContainsRune(v, 0) {
			return badArgument("string contains null byte"), false
		}
		c.vars[p[1:]] = v
	}
	c.query = parseParameters(c.r.URL.RawQuery)
	for _, values := range c.query {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return empty(http.StatusBadRequest), false
			}
			if strings.ContainsRune(v, 0) {
				return badArgument("string contains null byte"), false
			}
		}
	}
	return reply{}, true
}

// parseParameters parses a query or a form. It ignores malformed pairs. As on the
// genuine server, the last value of a name applies, unless the name ends in [].
func parseParameters(text string) url.Values {
	all, _ := url.ParseQuery(text)
	for name, values := range all {
		if !strings.HasSuffix(name, "[]") {
			all[name] = values[len(values)-1:]
		}
	}
	return all
}

func hasLongField(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if len(v) > maxField {
				return true
			}
		}
	}
	return false
}

// hangUp answers a request that exceeds the limits of the genuine server's HTTP
// parser. Like that parser, it sends a bare 400 and closes the connection.
func hangUp(w http.ResponseWriter, head string) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err != nil {
		return
	}
	_, _ = buf.WriteString(head + "Content-Length: 0\r\n\r\n")
	_ = buf.Flush()
	_ = conn.Close()
}

// newRequestID makes a random UUID.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
