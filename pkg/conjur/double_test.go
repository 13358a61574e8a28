package conjur_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/authn"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account = "dev"
	login   = "host/apps/my app"
	apiKey  = "the-api-key-c4n4ry"
)

// double behaves like the genuine server, as far as the client sees it: its
// statuses, its bodies, its ETags. It records what it was asked.
type double struct {
	mu       sync.Mutex
	vars     map[string]*doubleVar
	tokens   map[string]time.Time // header → expiry
	life     time.Duration        // of tokens; 0: they carry no exp
	jwt      string               // accepted by authn-jwt
	maxLine  int                  // longer ones are refused with lineStatus
	status   int                  // for lines that are too long
	perValue bool                 // offers POST /secrets/values
	account  string               // as whoami says
	name     string               // as it says, too
	allowed  string               // the privilege that is left on what is forbidden
	formless bool                 // something on the way drops the headers of single values
	conns    int
	latency  time.Duration
	asked    []asked
	// intercept may answer a request itself; it is called without the lock.
	intercept func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool
}

type doubleVar struct {
	value                string
	missing              bool
	forbidden, invisible bool
	broken               bool // the server cannot decrypt it
	privileges           []string
	permitted            string // the role that has them
}

// asked is one request and how it was answered.
type asked struct {
	kind   conjur.Kind
	target string
	ids    []string
	status int
	bytes  int
	body   string
	header http.Header
	at     time.Time
}

func newDouble() *double {
	return &double{
		vars: map[string]*doubleVar{}, tokens: map[string]time.Time{},
		life: 8 * time.Minute, account: account, name: login, allowed: "read", status: http.StatusRequestURITooLong,
	}
}

func (d *double) set(id, value string) {
	d.change(id, func(v *doubleVar) { *v = doubleVar{value: value} })
}

func (d *double) change(id string, f func(*doubleVar)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.vars[id] == nil {
		d.vars[id] = &doubleVar{}
	}
	f(d.vars[id])
}

func (d *double) with(f func(d *double)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// log takes the requests since the last log.
func (d *double) log() []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.asked
	d.asked = nil
	return out
}

func count(log []asked, kind conjur.Kind) (n int) {
	for _, a := range log {
		if a.kind == kind {
			n++
		}
	}
	return n
}

// recorder notes status and size.
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

func kindOf(r *http.Request) conjur.Kind {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/authenticate"):
		return conjur.KindAuthenticate
	case path == "/whoami":
		return conjur.KindWhoami
	case path == "/secrets":
		return conjur.KindBatch
	case path == "/secrets/values":
		return conjur.KindValues
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

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind, rec := kindOf(r), &recorder{ResponseWriter: w}
	a := asked{kind: kind, target: r.RequestURI, body: string(body), header: r.Header.Clone(), at: time.Now()}
	if kind == conjur.KindBatch {
		for _, full := range strings.Split(r.URL.Query().Get("variable_ids"), ",") {
			a.ids = append(a.ids, strings.TrimPrefix(full, account+":variable:"))
		}
	}
	defer func() {
		a.status, a.bytes = rec.status, rec.bytes
		d.with(func(d *double) { d.asked = append(d.asked, a) })
	}()
	d.mu.Lock()
	intercept, latency := d.intercept, d.latency
	d.mu.Unlock()
	time.Sleep(latency)
	if intercept != nil && intercept(rec, r, kind) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.route(rec, r, kind, a.ids, body)
}

func (d *double) route(w http.ResponseWriter, r *http.Request, kind conjur.Kind, ids []string, body []byte) {
	line := len(r.Method) + len(r.RequestURI) + len("  HTTP/1.1\r\n")
	switch {
	case d.maxLine > 0 && line > d.maxLine:
		w.WriteHeader(d.status)
	case kind == conjur.KindAuthenticate:
		d.authenticate(w, r, body)
	case !d.known(r):
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "Unauthorized: Invalid token")
	case kind == conjur.KindWhoami:
		writeJSON(w, 200, fmt.Sprintf(`{"client_ip":"127.0.0.1","account":%q,"username":%q}`, d.account, d.name))
	case kind == conjur.KindBatch:
		d.batch(w, r, ids)
	case kind == conjur.KindValues:
		d.perVariable(w, body)
	case kind == conjur.KindCheck, kind == conjur.KindResource:
		d.check(w, r)
	case kind == conjur.KindList:
		d.list(w, r)
	default:
		d.single(w, r)
	}
}

func (d *double) known(r *http.Request) bool {
	expiry, ok := d.tokens[r.Header.Get("Authorization")]
	return ok && time.Now().Before(expiry)
}

func (d *double) authenticate(w http.ResponseWriter, r *http.Request, body []byte) {
	ok := r.URL.EscapedPath() == "/authn/dev/host%2Fapps%2Fmy%20app/authenticate" && string(body) == apiKey ||
		r.URL.EscapedPath() == "/authn-jwt/k8s/dev/authenticate" && string(body) == "jwt="+d.jwt
	if !ok {
		empty(w, http.StatusUnauthorized)
		return
	}
	now := time.Now()
	claims, life := fmt.Sprintf(`{"iat":%d,"note":"?>~","sub":%q}`, now.Unix(), d.name), 8*time.Minute
	if d.life != 0 {
		life = d.life
		claims = fmt.Sprintf(`{"iat":%d,"note":"?>~","sub":%q,"exp":%d}`, now.Unix(), d.name, now.Add(life).Unix())
	}
	text := fmt.Sprintf(`{"protected":"p","payload":%q,"signature":"s%d"}`,
		base64.URLEncoding.EncodeToString([]byte(claims)), len(d.tokens))
	d.tokens[`Token token="`+base64.StdEncoding.EncodeToString([]byte(text))+`"`] = now.Add(life)
	writeJSON(w, 200, text)
}

func (d *double) single(w http.ResponseWriter, r *http.Request) {
	id, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/secrets/dev/variable/"))
	switch v := d.vars[id]; {
	case v == nil || v.missing || v.invisible:
		notFound(w, id)
	case v.forbidden:
		empty(w, http.StatusForbidden)
	case v.broken:
		empty(w, http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		if !d.formless {
			w.Header().Set("Content-Disposition", "attachment")
			w.Header().Set("Content-Transfer-Encoding", "binary")
		}
		withETag(w, r, v.value)
	}
}

func (d *double) batch(w http.ResponseWriter, r *http.Request, ids []string) {
	missing, status := "", 0
	for i, id := range ids {
		v := d.vars[id]
		switch {
		case slices.Contains(ids[:i], id), v != nil && v.broken:
			status = max(status, http.StatusInternalServerError)
		case v == nil || v.missing:
			if missing == "" {
				missing = id
			}
		case v.forbidden || v.invisible:
			status = max(status, http.StatusForbidden)
		}
	}
	if status != 0 {
		empty(w, status)
		return
	}
	if missing != "" {
		notFound(w, missing)
		return
	}
	coded := r.Header.Get("Accept-Encoding") == "base64"
	values := map[string]string{}
	for _, id := range ids {
		v := d.vars[id].value
		if coded {
			v = wrapped(v)
		}
		values[account+":variable:"+id] = v
	}
	if coded {
		w.Header().Set("Content-Encoding", "base64")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	text, _ := json.Marshal(values)
	withETag(w, r, string(text))
}

// list lists the variables that can be seen, a page of them.
func (d *double) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	items := []string{}
	for id, v := range d.vars {
		if v.invisible {
			continue
		}
		versions := `{"version":1}`
		if v.missing {
			versions = "" // never set
		}
		items = append(items, fmt.Sprintf(`{"id":%q,"secrets":[%s]}`, account+":variable:"+id, versions))
	}
	slices.Sort(items)
	items = items[min(offset, len(items)):min(offset+limit, len(items))]
	writeJSON(w, http.StatusOK, "["+strings.Join(items, ",")+"]")
}

// wrapped is base64 with a line break after every 60 characters and at the end.
func wrapped(v string) string {
	var b strings.Builder
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString([]byte(v))), 60) {
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// check answers what is asked about a variable, and about the right to it.
func (d *double) check(w http.ResponseWriter, r *http.Request) {
	id, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/resources/dev/variable/"))
	v, q := d.vars[id], r.URL.Query()
	switch privilege := q.Get("privilege"); {
	case q.Has("check") && (q.Get("check") != "true" || privilege == ""):
		empty(w, http.StatusUnprocessableEntity)
	case v == nil || v.invisible:
		writeJSON(w, 404, `{"error":{"code":"not_found","message":"Variable not found","target":"variable"}}`)
	case !q.Has("check"):
		d.resource(w, id, v)
	case v.forbidden && privilege != d.allowed:
		empty(w, http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (d *double) resource(w http.ResponseWriter, id string, v *doubleVar) {
	type permission struct {
		Privilege string `json:"privilege"`
		Role      string `json:"role"`
	}
	permissions := []permission{}
	for _, p := range strings.Split(cmp.Or(strings.Join(v.privileges, ","), "execute,read"), ",") {
		permissions = append(permissions, permission{p, cmp.Or(v.permitted, "dev:group:team")})
	}
	text, _ := json.Marshal(map[string]any{"id": account + ":variable:" + id, "owner": "dev:policy:app", "permissions": permissions})
	writeJSON(w, 200, string(text))
}

func (d *double) perVariable(w http.ResponseWriter, body []byte) {
	var q struct{ IDs []string }
	if !d.perValue || json.Unmarshal(body, &q) != nil || len(q.IDs) > 250 {
		empty(w, http.StatusNotFound)
		return
	}
	type item struct {
		ID     string `json:"id"`
		Value  string `json:"value"`
		Status int    `json:"status"`
	}
	var out struct {
		Secrets []item `json:"secrets"`
	}
	for _, id := range q.IDs {
		it := item{ID: id, Status: 404}
		if v := d.vars[id]; v != nil && v.forbidden {
			it.Status = 403
		} else if v != nil && !v.missing && !v.invisible {
			it.Value, it.Status = v.value, 200
		}
		out.Secrets = append(out.Secrets, it)
	}
	text, _ := json.Marshal(out)
	writeJSON(w, 200, string(text))
}

func etagOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return `W/"` + hex.EncodeToString(sum[:])[:32] + `"`
}

func withETag(w http.ResponseWriter, r *http.Request, body string) {
	etag := etagOf(body)
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	io.WriteString(w, body)
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func empty(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
}

func notFound(w http.ResponseWriter, id string) {
	text, _ := json.Marshal("CONJ00076E Variable dev:variable:" + id + " is empty or not found.")
	writeJSON(w, 404, `{"error":{"code":"not_found","message":`+string(text)+`}}`)
}

// start serves the double over TLS and makes a client of it.
func start(t *testing.T, d *double, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = discardLog()
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			d.with(func(d *double) { d.conns++ })
		}
	}
	s.Config.ConnContext = inConn
	s.StartTLS()
	t.Cleanup(s.Close)
	config := conjur.Config{
		ApplianceURL: s.URL, Account: account, CA: certificate(s),
		Authenticator: authn.APIKey{Login: login, Key: secret.New([]byte(apiKey))},
		RateLimit:     1e6, RateBurst: 1e6,
	}
	return client(t, config, adapt)
}

func client(t *testing.T, config conjur.Config, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	if adapt != nil {
		adapt(&config)
	}
	c, err := conjur.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// serve answers the double's requests over pipes, for tests whose clock is
// not the real one. The server ends with the test.
func serve(t *testing.T, d *double, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	return client(t, overPipes(listen(t, d)), adapt)
}

// listen starts the double and returns how it is dialled.
func listen(t *testing.T, d *double) dialer {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: d, ErrorLog: discardLog(), ConnContext: inConn}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.dial
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// overPipes is the configuration of a client of a double that listens.
func overPipes(dial dialer) conjur.Config {
	return conjur.Config{
		ApplianceURL: "http://conjur.test", Account: account, Dial: dial,
		Authenticator: authn.APIKey{Login: login, Key: secret.New([]byte(apiKey))},
		RateLimit:     1e6, RateBurst: 1e6,
	}
}

// connKey is the key of the connection that a request came over.
type connKey struct{}

func inConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
