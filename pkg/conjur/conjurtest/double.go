// Package conjurtest is a scripted server that looks like the genuine Conjur to a
// client: its statuses, its bodies, its ETags. It records requests, and a test can
// answer in its place. Tests of correct behavior should use the embedded server
// conjurd. This server can fail in every way.
package conjurtest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// Account and credentials of the Double's only client.
const (
	Account = "dev"
	Login   = "host/apps/my app"
	APIKey  = "the-api-key-c4n4ry"
)

// Double is the server. Change its fields only inside With.
type Double struct {
	Life     time.Duration // of tokens; 0 omits exp
	JWT      string        // accepted by authn-jwt
	MaxLine  int           // longer request lines are refused with Status
	Status   int
	Account  string // in whoami's answer
	Name     string // in whoami's answer
	Allowed  string // the only privilege on forbidden variables
	Formless bool   // a proxy drops the headers of single values
	Conns    int    // connections so far
	Latency  time.Duration
	Tokens   map[string]time.Time // header → expiry
	// Intercept may answer a request itself and may read its body. It is called
	// without a lock.
	Intercept func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool

	mu    *sync.Mutex
	vars  map[string]*Variable
	asked []Request
}

// Variable is the Double's state of a variable.
type Variable struct {
	Value                string
	Missing              bool
	Forbidden, Invisible bool
	Broken               bool // the server cannot decrypt it
	Privileges           []string
	Permitted            string // the role in its permissions
}

// Request is one request with its answer.
type Request struct {
	Kind   conjur.Kind
	Target string
	IDs    []string
	Status int
	Bytes  int
	Body   string
	Header http.Header
	At     time.Time
}

// New returns a Double without variables.
func New() *Double {
	return &Double{
		mu:   &sync.Mutex{},
		vars: map[string]*Variable{}, Tokens: map[string]time.Time{},
		Life: 8 * time.Minute, Account: Account, Name: Login, Allowed: "read", Status: http.StatusRequestURITooLong,
	}
}

// Follower returns a Double that accepts the same tokens and has other variables.
func (d *Double) Follower(vars map[string]*Variable) *Double {
	f := New()
	f.mu, f.Tokens, f.vars = d.mu, d.Tokens, vars
	return f
}

// Answer answers a request without recording it.
func (d *Double) Answer(w http.ResponseWriter, r *http.Request, kind conjur.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.route(w, r, kind, idsOf(r), nil)
}

// Set gives a variable a value.
func (d *Double) Set(id, value string) {
	d.Change(id, func(v *Variable) { *v = Variable{Value: value} })
}

// Change changes the state of a variable.
func (d *Double) Change(id string, f func(*Variable)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.vars[id] == nil {
		d.vars[id] = &Variable{}
	}
	f(d.vars[id])
}

// With changes the Double while it serves.
func (d *Double) With(f func(d *Double)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// SetIntercept sets Intercept while the Double serves.
func (d *Double) SetIntercept(f func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool) {
	d.With(func(d *Double) { d.Intercept = f })
}

// Log returns and removes the requests since the last Log.
func (d *Double) Log() []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.asked
	d.asked = nil
	return out
}

// Count counts the requests of a kind.
func Count(log []Request, kind conjur.Kind) (n int) {
	for _, a := range log {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// recorder records status and size.
type recorder struct {
	http.ResponseWriter
	status, bytes int
}

func (r *recorder) WriteHeader(s int) { r.status = s; r.ResponseWriter.WriteHeader(s) }
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += n
	return n, err
}
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// KindOf returns the kind of a request.
func KindOf(r *http.Request) conjur.Kind {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/authenticate"):
		return conjur.KindAuthenticate
	case path == "/whoami":
		return conjur.KindWhoami
	case path == "/secrets":
		return conjur.KindBatch
	case r.URL.Query().Has("check"):
		return conjur.KindCheck
	case strings.HasPrefix(path, "/resources/dev/variable/"):
		return conjur.KindResource
	case strings.HasPrefix(path, "/resources/"):
		return conjur.KindList
	default:
		return conjur.KindVariable
	}
}

func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind, rec := KindOf(r), &recorder{ResponseWriter: w}
	a := Request{Kind: kind, Target: r.RequestURI, Body: string(body), Header: r.Header.Clone(), At: time.Now()}
	if kind == conjur.KindBatch {
		a.IDs = idsOf(r)
	}
	defer func() {
		a.Status, a.Bytes = rec.status, rec.bytes
		d.With(func(d *Double) { d.asked = append(d.asked, a) })
	}()
	d.mu.Lock()
	intercept, latency := d.Intercept, d.Latency
	d.mu.Unlock()
	time.Sleep(latency)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if intercept != nil && intercept(rec, r, kind) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.route(rec, r, kind, a.IDs, body)
}

// idsOf returns the variables that a batch requests.
func idsOf(r *http.Request) (ids []string) {
	for _, full := range strings.Split(r.URL.Query().Get("variable_ids"), ",") {
		ids = append(ids, strings.TrimPrefix(full, Account+":variable:"))
	}
	return ids
}

func (d *Double) route(w http.ResponseWriter, r *http.Request, kind conjur.Kind, ids []string, body []byte) {
	line := len(r.Method) + len(r.RequestURI) + len("  HTTP/1.1\r\n")
	switch {
	case d.MaxLine > 0 && line > d.MaxLine:
		w.WriteHeader(d.Status)
	case kind == conjur.KindAuthenticate:
		d.authenticate(w, r, body)
	case !d.known(r):
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "Unauthorized: Invalid token")
	case kind == conjur.KindWhoami:
		JSON(w, 200, fmt.Sprintf(`{"client_ip":"127.0.0.1","account":%q,"username":%q}`, d.Account, d.Name))
	case kind == conjur.KindBatch:
		d.batch(w, r, ids)
	case kind == conjur.KindCheck, kind == conjur.KindResource:
		d.check(w, r)
	case kind == conjur.KindList:
		d.list(w, r)
	default:
		d.single(w, r)
	}
}

func (d *Double) known(r *http.Request) bool {
	expiry, ok := d.Tokens[r.Header.Get("Authorization")]
	return ok && time.Now().Before(expiry)
}

func (d *Double) authenticate(w http.ResponseWriter, r *http.Request, body []byte) {
	ok := slices.Contains([]string{"/authn/dev/host%2Fapps%2Fmy%20app/authenticate", "/authn/dev/" + url.PathEscape(d.Name) + "/authenticate"}, r.URL.EscapedPath()) && string(body) == APIKey ||
		r.URL.EscapedPath() == "/authn-jwt/k8s/dev/authenticate" && string(body) == "jwt="+d.JWT
	if !ok {
		Bare(w, http.StatusUnauthorized)
		return
	}
	d.admit(w)
}

// Admit answers a login with a token.
func (d *Double) Admit(w http.ResponseWriter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admit(w)
}

func (d *Double) admit(w http.ResponseWriter) {
	now := time.Now()
	claims, life := fmt.Sprintf(`{"iat":%d,"note":"?>~","sub":%q}`, now.Unix(), d.Name), 8*time.Minute
	if d.Life != 0 {
		life = d.Life
		claims = fmt.Sprintf(`{"iat":%d,"note":"?>~","sub":%q,"exp":%d}`, now.Unix(), d.Name, now.Add(life).Unix())
	}
	text := fmt.Sprintf(`{"protected":"p","payload":%q,"signature":"s%d"}`,
		base64.URLEncoding.EncodeToString([]byte(claims)), len(d.Tokens))
	d.Tokens[`Token token="`+base64.StdEncoding.EncodeToString([]byte(text))+`"`] = now.Add(life)
	JSON(w, 200, text)
}

func (d *Double) single(w http.ResponseWriter, r *http.Request) {
	id, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/secrets/dev/variable/"))
	switch v := d.vars[id]; {
	case v == nil || v.Missing || v.Invisible:
		NotFound(w, id)
	case v.Forbidden:
		Bare(w, http.StatusForbidden)
	case v.Broken:
		Bare(w, http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		if !d.Formless {
			w.Header().Set("Content-Disposition", "attachment")
			w.Header().Set("Content-Transfer-Encoding", "binary")
		}
		withETag(w, r, v.Value)
	}
}

func (d *Double) batch(w http.ResponseWriter, r *http.Request, ids []string) {
	missing, status := "", 0
	for i, id := range ids {
		v := d.vars[id]
		switch {
		case slices.Contains(ids[:i], id), v != nil && v.Broken:
			status = max(status, http.StatusInternalServerError)
		case v == nil || v.Missing:
			if missing == "" {
				missing = id
			}
		case v.Forbidden || v.Invisible:
			status = max(status, http.StatusForbidden)
		}
	}
	if status != 0 {
		Bare(w, status)
		return
	}
	if missing != "" {
		NotFound(w, missing)
		return
	}
	coded := r.Header.Get("Accept-Encoding") == "base64"
	values := map[string]string{}
	for _, id := range ids {
		v := d.vars[id].Value
		if coded {
			v = Wrapped(v)
		}
		values[Account+":variable:"+id] = v
	}
	if coded {
		w.Header().Set("Content-Encoding", "base64")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	text, _ := json.Marshal(values)
	withETag(w, r, string(text))
}

// list answers with a page of the visible variables.
func (d *Double) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	items := []string{}
	for id, v := range d.vars {
		if v.Invisible {
			continue
		}
		versions := `{"version":1}`
		if v.Missing {
			versions = "" // never set
		}
		permissions, _ := json.Marshal(v.permissions())
		items = append(items, fmt.Sprintf(`{"id":%q,"owner":%q,"permissions":%s,"secrets":[%s]}`, Account+":variable:"+id, owner, permissions, versions))
	}
	slices.Sort(items)
	items = items[min(offset, len(items)):min(offset+limit, len(items))]
	JSON(w, http.StatusOK, "["+strings.Join(items, ",")+"]")
}

// Wrapped is base64 with a line break after every 60 characters and at the end.
func Wrapped(v string) string {
	var b strings.Builder
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString([]byte(v))), 60) {
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// check answers questions about a variable and about permissions on it.
func (d *Double) check(w http.ResponseWriter, r *http.Request) {
	id, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/resources/dev/variable/"))
	v, q := d.vars[id], r.URL.Query()
	switch privilege := q.Get("privilege"); {
	case q.Has("check") && (q.Get("check") != "true" || privilege == ""):
		Bare(w, http.StatusUnprocessableEntity)
	case v == nil || v.Invisible:
		JSON(w, 404, `{"error":{"code":"not_found","message":"Variable not found","target":"variable"}}`)
	case !q.Has("check"):
		d.resource(w, id, v)
	case v.Forbidden && privilege != d.Allowed:
		Bare(w, http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// owner owns all variables.
const owner = "dev:policy:app"

type permission struct {
	Privilege string `json:"privilege"`
	Role      string `json:"role"`
}

func (v *Variable) permissions() []permission {
	role, permissions := cmp.Or(v.Permitted, "dev:group:team"), []permission{}
	if v.Forbidden {
		role = cmp.Or(v.Permitted, "dev:group:others")
	}
	for _, p := range strings.Split(cmp.Or(strings.Join(v.Privileges, ","), "execute,read"), ",") {
		permissions = append(permissions, permission{p, role})
	}
	return permissions
}

func (d *Double) resource(w http.ResponseWriter, id string, v *Variable) {
	text, _ := json.Marshal(map[string]any{"id": Account + ":variable:" + id, "owner": owner, "permissions": v.permissions()})
	JSON(w, 200, string(text))
}

// ETag returns the ETag that Conjur sends with a body.
func ETag(body string) string {
	sum := sha256.Sum256([]byte(body))
	return `W/"` + hex.EncodeToString(sum[:])[:32] + `"`
}

func withETag(w http.ResponseWriter, r *http.Request, body string) {
	etag := ETag(body)
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	io.WriteString(w, body)
}

// JSON answers with a JSON text.
func JSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// Bare answers with a status and no body.
func Bare(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
}

// NotFound answers as Conjur does for a missing variable.
func NotFound(w http.ResponseWriter, id string) {
	text, _ := json.Marshal("CONJ00076E Variable dev:variable:" + id + " is empty or not found.")
	JSON(w, 404, `{"error":{"code":"not_found","message":`+string(text)+`}}`)
}
