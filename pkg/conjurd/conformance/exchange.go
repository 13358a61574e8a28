package conformance

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
)

// exchange is a request and its expected answer. In all texts {a} stands for the
// account and {p} for the suite's policy.
type exchange struct {
	name   string
	as     string // login whose token is sent; "" for none
	req    string // method and encoded path
	header map[string]string
	body   string
	want   answer
	basis  basis
	// certificate is the client certificate.
	certificate *tls.Certificate
	// fresh requests a new connection. On a reused connection the genuine server
	// does not answer an oversized request.
	fresh bool
	// known is the reason why our server answers differently from the genuine one.
	// ours is its answer.
	known string
	ours  answer
}

// basis is the source of an expected answer. The zero value means that the genuine
// server gave the answer in a recording.
type basis string

const (
	read   basis = "as read" // in the sources of the genuine server or its client
	partly basis = "as read, and tried with a part of the genuine server"
)

// answer is the relevant part of a response.
type answer struct {
	status int
	kind   string            // content type; "" for any
	body   string            // exact body, unless match is set
	header map[string]string // in addition to the headers that every answer must have
	match  func(body string) bool
	page   bool // an HTML page, whose headers are not checked
}

// Content types.
const (
	asJSON  = "application/json; charset=utf-8"
	asBytes = "application/octet-stream"
	asText  = "text/plain; charset=utf-8"
	asBare  = "text/plain"
	asHTML  = "text/html"
	noPath  = "text/html; charset=utf-8"
)

// Answers that many cases share.
var (
	forbidden    = answer{status: 403, kind: asHTML}
	unauthorized = answer{status: 401, kind: asHTML}
	created      = answer{status: 201, kind: asHTML}
	nowhere      = answer{status: 404, kind: noPath}
)

// missing is the answer to reads that find nothing.
func missing(id string) answer {
	return answer{status: 404, kind: asJSON, body: `{"error":{"code":"not_found","message":"CONJ00076E Variable ` + id + ` is empty or not found."}}`}
}

// unknown is the answer for an object that does not exist, or that the caller must
// not see.
func unknown(title, kind, id string) answer {
	return answer{status: 404, kind: asJSON, body: `{"error":{"code":"not_found","message":"` + title + ` '` + id +
		`' not found in account '{a}'","target":"` + kind + `","details":{"code":"not_found","target":"id","message":"{a}:` + kind + `:` + id + `"}}}`}
}

func badArgument(message string) answer {
	return answer{status: 422, kind: asJSON, body: `{"error":{"code":"argument_error","message":"` + message + `"}}`}
}

func bare401(body string) answer { return answer{status: 401, kind: asBare, body: body} }

func ok(kind, body string) answer { return answer{status: 200, kind: kind, body: body} }

// contains returns a match for answers that vary in their other parts.
func contains(parts ...string) func(string) bool {
	return func(body string) bool {
		for _, p := range parts {
			if !strings.Contains(body, p) {
				return false
			}
		}
		return true
	}
}

// run sends the request and checks the answer.
func (s *suite) run(t *testing.T, x exchange) {
	name := x.name
	if x.basis != "" {
		name += " (" + string(x.basis) + ")"
	}
	t.Run(name, func(t *testing.T) {
		want := x.want
		if x.known != "" && s.target.Ours {
			want = x.ours
		}
		res, body := s.do(t, x)
		s.check(t, want, res, body)
	})
}

func (s *suite) runAll(t *testing.T, list []exchange) {
	for _, x := range list {
		s.run(t, x)
	}
}

// do sends the request and returns the answer with its body.
func (s *suite) do(t *testing.T, x exchange) (*http.Response, string) {
	t.Helper()
	auth := ""
	if x.as != "" {
		auth = s.authorization(t, x.as)
	}
	res, body, err := s.send(x, auth)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// send is do for goroutines other than the test's.
func (s *suite) send(x exchange, auth string) (*http.Response, string, error) {
	method, path, _ := strings.Cut(s.fill(x.req), " ")
	req, err := http.NewRequest(method, s.target.URL+path, strings.NewReader(s.fill(x.body)))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("User-Agent", "conformance/1")
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	for k, v := range x.header {
		req.Header.Set(k, s.fill(v))
	}
	if x.fresh {
		s.client.CloseIdleConnections()
		defer s.client.CloseIdleConnections()
	}
	client := s.client
	if x.certificate != nil {
		client = s.target.client(x.certificate)
		defer client.CloseIdleConnections()
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

func (s *suite) fill(text string) string {
	return strings.NewReplacer("{a}", s.target.Account, "{p}", branch).Replace(text)
}

func (s *suite) check(t *testing.T, want answer, res *http.Response, body string) {
	t.Helper()
	if res.StatusCode != want.status {
		t.Fatalf("status %d instead of %d; body %q", res.StatusCode, want.status, body)
	}
	if got := res.Header.Get("Content-Type"); want.kind != "" && got != want.kind {
		t.Errorf("content type %q instead of %q", got, want.kind)
	}
	if want.match != nil && !want.match(body) {
		t.Errorf("body is %q", body)
	}
	if wanted := s.fill(want.body); want.match == nil && body != wanted {
		t.Errorf("body is\n%q instead of\n%q", body, wanted)
	}
	for k, v := range want.header {
		if got := res.Header.Get(k); got != s.fill(v) {
			t.Errorf("header %s is %q instead of %q", k, got, v)
		}
	}
	if want.page {
		return
	}
	checkCaching(t, res, body)
	checkSecurity(t, res)
}

// checkCaching checks the headers that depend on the presence of a body.
func checkCaching(t *testing.T, res *http.Response, body string) {
	t.Helper()
	tag, control := "", "no-cache"
	switch {
	case res.StatusCode == 304:
		return
	case res.Request.Method == http.MethodHead:
		return
	case body != "" && (res.StatusCode == 200 || res.StatusCode == 201):
		sum := sha256.Sum256([]byte(body))
		tag, control = `W/"`+hex.EncodeToString(sum[:16])+`"`, "max-age=0, private, must-revalidate"
	case res.Header.Get("Content-Type") == noPath, isHangUp(res):
		control = ""
	}
	if got := res.Header.Get("ETag"); got != tag {
		t.Errorf("ETag %q instead of %q", got, tag)
	}
	if got := res.Header.Get("Cache-Control"); got != control {
		t.Errorf("Cache-Control %q instead of %q", got, control)
	}
}

// isHangUp reports whether the server's HTTP parser answered. Such an answer
// contains only the status.
func isHangUp(res *http.Response) bool {
	return res.StatusCode == 400 && res.Header.Get("Content-Type") == ""
}

// checkSecurity checks the headers that every answer of the application must have,
// and those that none may have.
func checkSecurity(t *testing.T, res *http.Response) {
	t.Helper()
	for _, name := range []string{"Date", "Server"} {
		if res.Header.Get(name) != "" {
			t.Errorf("there is a header %s", name)
		}
	}
	kind := res.Header.Get("Content-Type")
	if isHangUp(res) {
		return
	}
	before := kind == asBare || kind == noPath // the answer precedes the application
	for name, want := range map[string]string{
		"X-Frame-Options": "SAMEORIGIN", "X-XSS-Protection": "1; mode=block", "X-Content-Type-Options": "nosniff",
		"X-Download-Options": "noopen", "X-Permitted-Cross-Domain-Policies": "none",
		"Referrer-Policy": "strict-origin-when-cross-origin",
	} {
		if before {
			want = ""
		}
		if got := res.Header.Get(name); got != want {
			t.Errorf("header %s is %q instead of %q", name, got, want)
		}
	}
	if !before && (res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Runtime") == "") {
		t.Error("there is no X-Request-Id or X-Runtime")
	}
}
