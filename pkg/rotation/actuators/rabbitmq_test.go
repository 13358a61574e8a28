//go:build long

package actuators

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

// rabbit is a set with two users of a server.
type rabbit struct {
	*Turns
	*RabbitMQ
	server *logintest.RabbitMQ
	doc    *versions.Document // as Current reads it
}

// rabbitOf returns a set whose users have the test's name.
func rabbitOf(t *testing.T, server *logintest.RabbitMQ) *rabbit {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	r := &rabbit{server: server, doc: &versions.Document{Identity: "ours"}, Turns: &Turns{Set: "shop/mq", Users: []string{name + " a/%", name + "-b"}}}
	r.RabbitMQ = &RabbitMQ{Addresses: []string{server.TLSAddr}, API: server.API, CA: server.CA, VHost: "/", Users: r.Turns.Users,
		Admin: func(context.Context) (secret.Value, error) {
			return secret.New([]byte(`{"username":"admin","password":"admin"}`)), nil
		},
	}
	r.Server = r.RabbitMQ
	r.Current = func(context.Context) (*versions.Document, error) { return read(r.doc) }
	for _, user := range r.Turns.Users {
		server.User(t, url.PathEscape(user), "", "")
		server.Call(t, http.MethodPut, onUser("/"+ofUser, user), `{"password_hash":"","tags":""}`)
	}
	return r
}

// version returns a version of the user in that place, which the set has in that state.
func (r *rabbit) version(place, second int, state versions.State) versions.Version {
	id := time.Unix(int64(second), 0).UTC().Format("20060102t150405")
	v := versions.Version{ID: id, Fence: id, State: state, Set: setAtEnd, Parts: map[string]secret.Value{
		username: secret.New([]byte(r.Turns.Users[place])), password: secret.New(fmt.Appendf(nil, "c4n4ry-%d", second)),
	}}
	r.doc.Versions = append(slices.DeleteFunc(r.doc.Versions, func(is versions.Version) bool { return is.ID == id }), v)
	return v
}

func (r *rabbit) apply(t *testing.T, place, second int) versions.Version {
	t.Helper()
	v := r.version(place, second, versions.Pending)
	_, err := r.Apply(t.Context(), v)
	good(t, err)
	good(t, r.Verify(t.Context(), v))
	return v
}

// open opens a connection as a program does.
func (r *rabbit) open(t *testing.T, v versions.Version) *amqp.Connection {
	t.Helper()
	config := amqp.Config{Vhost: r.VHost, SASL: []amqp.Authentication{&amqp.PlainAuth{Username: user(v), Password: string(v.Parts[password].Bytes())}}}
	conn, err := amqp.DialConfig("amqp://"+r.server.Addr, config)
	good(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// gone waits until the server lists no connection of the version's user.
func (r *rabbit) gone(t *testing.T, v versions.Version) {
	t.Helper()
	proctest.Eventually(t, "the end of the connections", func() bool {
		uses, err := r.InUse(t.Context(), v)
		return err == nil && len(uses) == 0
	})
}

func (r *rabbit) user(t *testing.T, place int) (u rabbitUser) {
	t.Helper()
	good(t, json.Unmarshal([]byte(r.server.Call(t, http.MethodGet, onUser("/"+ofUser, r.Turns.Users[place]), "")), &u))
	return u
}

func TestRabbitMQ(t *testing.T) {
	server := logintest.StartRabbitMQ(t, statistics(1)...)
	for name, test := range map[string]func(*testing.T, *rabbit){
		"turns": testRabbitTurns, "sessions": testRabbitSessions, "handshake": testRabbitHandshake, "ended": testRabbitEnded, "rights": testRabbitRights,
		"record": testRabbitRecord, "still": testRabbitStill, "verify": testRabbitVerify, "names": testRabbitNames, "check": testRabbitCheck, "absent": testRabbitAbsent,
	} {
		t.Run(name, func(t *testing.T) { test(t, rabbitOf(t, server)) })
	}
}

// A refused user keeps its tags and permissions, and can return.
func testRabbitTurns(t *testing.T, r *rabbit) {
	r.server.Call(t, http.MethodPut, onUser("/"+ofUser, r.Turns.Users[0]), `{"password_hash":"","tags":"management,shop"}`)
	parts, err := r.Prepare(t.Context(), r.doc)
	good(t, err)
	if got := string(parts[username].Bytes()); got != r.Turns.Users[0] {
		t.Fatalf("the next user is %s", got)
	}
	r.apply(t, 0, 1)
	second := r.apply(t, 1, 2)
	if has := r.user(t, 0); has.Hash == "" || has.Algorithm != "rabbit_password_hashing_sha256" {
		t.Errorf("the user is %+v", has)
	}
	first := r.version(0, 1, versions.Revoking)
	good(t, r.Revoke(t.Context(), first))
	good(t, r.Revoke(t.Context(), first))
	refused(t, r.Verify(t.Context(), first))
	good(t, r.Verify(t.Context(), second))
	if has := r.user(t, 0); has.Hash != "" || !slices.Equal(has.Tags, []string{"management", "shop"}) {
		t.Errorf("a refused user is %+v", has)
	}
	_, err = r.Apply(t.Context(), r.version(0, 1, versions.Pending))
	refused(t, err) // its fence is revoked
	good(t, r.Verify(t.Context(), r.apply(t, 0, 3)))
}

// A connection is seen as soon as it is open. It keeps its user from being refused, unless
// connections are ended.
func testRabbitSessions(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	conn := r.open(t, first)
	proctest.Eventually(t, "the connection", func() bool {
		uses, err := r.InUse(t.Context(), first)
		good(t, err)
		return len(uses) == 1 && strings.Contains(uses[0], "127.0.0.1")
	})
	first = r.version(0, 1, versions.Revoking)
	if err := r.Revoke(t.Context(), first); err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the connection") {
		t.Errorf("revoke with a connection: %v", err)
	}
	good(t, r.Verify(t.Context(), first)) // it can log in again, with the password that it has
	if _, err := r.Prepare(t.Context(), r.doc); err != nil {
		t.Errorf("the other user: %v", err)
	}
	r.EndSessions = true
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	good(t, r.Revoke(t.Context(), first))
	if err := <-closed; err == nil || err.Code != amqp.ConnectionForced {
		t.Errorf("the connection ends by %v", err)
	}
	refused(t, r.Verify(t.Context(), first))
}

// RabbitMQ may list a connection of a user forever that has ended. It does not count. But
// connections that are too short for the statistics do.
func testRabbitEnded(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	r.apply(t, 1, 2)
	to, err := url.Parse(r.server.PlainAPI)
	good(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	var looks, step atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, "/api/connections/username/") {
			proxy.ServeHTTP(w, req)
			return
		}
		fmt.Fprintf(w, `[{"name":"127.0.0.1:%d -> 127.0.0.1:1","vhost":"/","user":%q,"node":"rabbit@localhost"}]`, 1000+looks.Add(step.Load()), user(first))
	}))
	t.Cleanup(s.Close)
	r.API, r.Plain, r.Addresses = s.URL, true, []string{r.server.Addr}
	if uses, err := r.InUse(t.Context(), first); err != nil || len(uses) > 0 {
		t.Errorf("with a connection that has ended: %v, %v", uses, err)
	}
	step.Store(1)
	if uses, err := r.InUse(t.Context(), first); err != nil || len(uses) != 1 {
		t.Errorf("with short connections: %v, %v", uses, err)
	}
	step.Store(0)
	good(t, r.Revoke(t.Context(), r.version(0, 1, versions.Revoking)))
}

// pausing is a connection that waits before its client opens the virtual host.
type pausing struct {
	net.Conn
	reached, open chan struct{}
}

func (p *pausing) Write(b []byte) (int, error) {
	if len(b) > 10 && b[0] == 1 && b[10] == amqpOpen {
		close(p.reached)
		<-p.open
	}
	return p.Conn.Write(b)
}

// A client whose password was checked before the refusal, and that has opened no virtual
// host, is in no list. The server must refuse it later.
func testRabbitHandshake(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	r.apply(t, 1, 2)
	conn, err := net.Dial("tcp", r.server.Addr)
	good(t, err)
	defer conn.Close()
	p := &pausing{conn, make(chan struct{}), make(chan struct{})}
	result := make(chan error, 1)
	go func() { result <- amqpLogIn(p, user(first), first.Parts[password].Bytes(), "/") }()
	<-p.reached
	good(t, r.Revoke(t.Context(), r.version(0, 1, versions.Revoking)))
	close(p.open)
	if err := <-result; err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("the client whose user was refused meanwhile: %v", err)
	}
}

// A user and a virtual host may have any name.
func testRabbitNames(t *testing.T, r *rabbit) {
	name := "o'brien a%2Fb+c;d:e@f \u00fc{user} " + strings.Repeat("n", 100)
	r.Turns.Users[0], r.VHost = name, name
	r.server.Call(t, http.MethodPut, "/vhosts/"+url.PathEscape(name), "")
	r.server.Run(t, r.createUser(name))
	r.apply(t, 0, 1)
	first := r.version(0, 1, versions.Revoking)
	good(t, r.Revoke(t.Context(), first))
	refused(t, r.Verify(t.Context(), first))
}

// The next user gets what the primary's user may do, and nothing else.
func testRabbitRights(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	for _, change := range [][2]string{
		{"vhosts/shop", ``}, {"vhosts/old", ``},
		{ofUser, fmt.Sprintf(`{"password_hash":%q,"tags":"monitoring"}`, r.user(t, 0).Hash)},
		{"permissions/shop/{user}", `{"configure":"c","write":"w","read":"r"}`},
		{"topic-permissions/shop/{user}", `{"exchange":"amq.topic","write":"a","read":"b"}`},
		{"topic-permissions/shop/{user}", `{"exchange":"other/x","write":"c","read":"d"}`},
		{openMost, `{"value":9}`},
	} {
		r.server.Call(t, http.MethodPut, "/"+onUser(change[0], r.Turns.Users[0]), change[1])
	}
	for _, change := range [][2]string{
		{"permissions/old/{user}", `{"configure":"c","write":"w","read":"r"}`},
		{"topic-permissions/old/{user}", `{"exchange":"gone","write":"a","read":"b"}`},
		{ofLimits + "/max-channels", `{"value":5}`},
	} {
		r.server.Call(t, http.MethodPut, "/"+onUser(change[0], r.Turns.Users[1]), change[1])
	}
	second := r.apply(t, 1, 2)
	good(t, r.Verify(t.Context(), first))
	var tags, wantedTags []string
	var has, wanted map[string]string
	good(t, r.asAdmin(t.Context(), func(a *rabbitAPI) (err error) {
		if tags, has, err = a.rights(t.Context(), r.Turns.Users[1]); err == nil {
			wantedTags, wanted, err = a.rights(t.Context(), r.Turns.Users[0])
		}
		return err
	}))
	if len(wanted) != 5 || fmt.Sprint(has) != fmt.Sprint(wanted) || !slices.Equal(tags, wantedTags) {
		t.Errorf("the rights are %v and %v instead of %v and %v", tags, has, wantedTags, wanted)
	}
	for _, err := range r.Check(t.Context(), r.doc) {
		t.Errorf("two users with equal rights: %v", err)
	}
	r.server.Call(t, http.MethodDelete, "/"+onUser("permissions/shop/{user}", user(second)), "")
	if problems := r.Check(t.Context(), r.doc); len(problems) != 1 || !strings.Contains(problems[0].Error(), "permissions/shop/{user} differs") {
		t.Errorf("check with different permissions: %q", problems)
	}
}

// recorder is before the API, and records each request. Where fails is not nil, it is asked
// for each request whether that fails, and then whether the server carries it out.
func (r *rabbit) recorder(t *testing.T, fails func() (fails, arrives bool)) (requests func() string) {
	to, err := url.Parse(r.server.PlainAPI)
	good(t, err)
	var lock sync.Mutex
	var text bytes.Buffer
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		lock.Lock()
		fmt.Fprintf(&text, "%s %s %s\n", req.Method, req.URL.EscapedPath(), body)
		lock.Unlock()
		req.Body = io.NopCloser(bytes.NewReader(body))
		failed, arrives := false, true
		if fails != nil {
			failed, arrives = fails()
		}
		switch {
		case failed && arrives:
			proxy.ServeHTTP(httptest.NewRecorder(), req)
			w.WriteHeader(http.StatusBadGateway)
		case failed:
			w.WriteHeader(http.StatusBadGateway)
		default:
			proxy.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(s.Close)
	r.API, r.Plain, r.Addresses = s.URL, true, []string{r.server.Addr}
	return func() string {
		lock.Lock()
		defer lock.Unlock()
		defer text.Reset()
		return text.String()
	}
}

// Each act is repeated after any of its requests has failed, and then has its whole effect.
func TestRabbitMQFailsAtEachRequest(t *testing.T) {
	server := logintest.StartRabbitMQ(t)
	acts := func(t *testing.T, at int64, arrives bool) (requests int64) {
		r := rabbitOf(t, server)
		var count atomic.Int64
		r.recorder(t, func() (bool, bool) { return count.Add(1) == at, arrives })
		again := func(act func() error) {
			if act() != nil { // by the request that fails
				good(t, act())
			}
		}
		first := r.version(0, 1, versions.Pending)
		again(func() error { _, err := r.Apply(t.Context(), first); return err })
		second := r.version(1, 2, versions.Pending)
		again(func() error { _, err := r.Apply(t.Context(), second); return err })
		first = r.version(0, 1, versions.Revoking)
		again(func() error { return r.Revoke(t.Context(), first) })
		good(t, r.Verify(t.Context(), second))
		refused(t, r.Verify(t.Context(), first))
		if has := r.user(t, 0); has.Hash != "" {
			t.Error("the password is not removed")
		}
		return count.Load()
	}
	var requests int64
	t.Run("calm", func(t *testing.T) { requests = acts(t, 0, false) })
	for at := range requests {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprint(at+1, arrives), func(t *testing.T) {
				t.Parallel()
				acts(t, at+1, arrives)
			})
		}
	}
}

// No password is sent to the API, no user is deleted, and a mark changes before its user
// accepts a version.
func testRabbitRecord(t *testing.T, r *rabbit) {
	requests := r.recorder(t, nil)
	r.apply(t, 0, 1)
	r.apply(t, 1, 2)
	good(t, r.Revoke(t.Context(), r.version(0, 1, versions.Revoking)))
	text := requests()
	if strings.Contains(text, "c4n4ry") || strings.Contains(text, "DELETE /api/users/") {
		t.Errorf("the requests are\n%s", text)
	}
	at, before := strings.Index(text, "PUT /api/"+onUser(ofUser, r.Turns.Users[0])), strings.Index(text, "PUT /api/"+onUser(ofMark, r.Turns.Users[0]))
	if before < 0 || at < before {
		t.Errorf("the mark changes at %d, the user at %d", before, at)
	}
	if log := r.server.Log(t); strings.Contains(log, "c4n4ry") || !strings.Contains(log, "user") {
		t.Errorf("the log is\n%s", log)
	}
}

// If the set has changed since the decision, the server stays as it is.
func testRabbitStill(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	requests := r.recorder(t, nil)
	late := r.version(0, 2, versions.Pending)
	r.version(0, 2, versions.Retiring)
	if _, err := r.Apply(t.Context(), late); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a late apply: %v", err)
	}
	late = r.version(0, 1, versions.Revoking)
	r.version(0, 1, versions.Returning)
	if err := r.Revoke(t.Context(), late); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a late revoke: %v", err)
	}
	if text := requests(); strings.Contains(text, "PUT") || text == "" {
		t.Errorf("a late act changes the server:\n%s", text)
	}
	good(t, r.Verify(t.Context(), first))
}

// Only a wrong login is refused. Otherwise the outcome is unknown.
func testRabbitVerify(t *testing.T, r *rabbit) {
	first := r.apply(t, 0, 1)
	wrong := first
	wrong.Parts = map[string]secret.Value{username: first.Parts[username], password: secret.New([]byte("wrong"))}
	refused(t, r.Verify(t.Context(), wrong))
	for name, change := range map[string]func(*RabbitMQ){
		"another port":         func(r *RabbitMQ) { r.Addresses = append(r.Addresses, proctest.FreeAddress(t)) },
		"another virtual host": func(r *RabbitMQ) { r.VHost = "nowhere" },
		"an unknown authority": func(r *RabbitMQ) { r.CA = "" },
		"no TLS at its port":   func(r *RabbitMQ) { r.Plain = true },
	} {
		was := *r.RabbitMQ
		change(r.RabbitMQ)
		if err := r.Verify(t.Context(), first); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		*r.RabbitMQ = was
	}
	conn := r.open(t, first)
	r.server.Call(t, http.MethodPut, onUser("/"+openMost, user(first)), `{"value":1}`)
	proctest.Eventually(t, "a full server", func() bool {
		err := r.Verify(t.Context(), first)
		if errors.Is(err, ErrRefused) {
			t.Errorf("a full server: %v", err)
		}
		return err != nil
	})
	good(t, conn.Close())
}

// A user that does not exist is refused already, and Apply says how to create it.
func testRabbitAbsent(t *testing.T, r *rabbit) {
	r.server.Call(t, http.MethodDelete, onUser("/"+ofUser, r.Turns.Users[1]), "")
	good(t, r.Revoke(t.Context(), r.version(1, 1, versions.Revoking)))
	if _, err := r.Apply(t.Context(), r.version(1, 2, versions.Pending)); err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "rabbitmqctl add_user") {
		t.Errorf("apply: %v", err)
	}
}
