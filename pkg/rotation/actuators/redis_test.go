//go:build long

package actuators

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

// cache is the user "shop" of a Redis, or of a master and its replica, and its set.
type cache struct {
	*Overlap
	redis   *Redis
	servers []*logintest.Redis
	doc     *versions.Document
}

// newCache starts a master, and a replica for each of the others.
func newCache(t *testing.T, replicas int, options ...string) *cache {
	t.Helper()
	c := &cache{redis: &Redis{Admin: func(context.Context) (secret.Value, error) {
		return secret.New([]byte(`{"username":"syncer","password":"admin's"}`)), nil
	}}, doc: &versions.Document{Identity: "ours"}}
	c.Overlap = &Overlap{Set: "shop/cache", User: "shop", Server: c.redis, Current: func(context.Context) (*versions.Document, error) {
		doc := *c.doc
		doc.Versions = slices.Clone(doc.Versions)
		for i, v := range doc.Versions { // which the caller wipes
			doc.Versions[i].Parts = map[string]secret.Value{username: secret.New([]byte(user(v))), password: secret.New(bytes.Clone(v.Parts[password].Bytes()))}
		}
		return &doc, nil
	}}
	for n := range replicas + 1 {
		if n > 0 {
			options = append(options, "--replicaof "+strings.Replace(c.servers[0].Addr, ":", " ", 1))
		}
		s := logintest.StartRedis(t, options...)
		c.servers, c.redis.Addresses, c.redis.CA = append(c.servers, s), append(c.redis.Addresses, s.TLSAddr), s.CA
		s.Run(t, append([]string{"ACL", "SETUSER", "syncer", "on", ">admin's", "+multi", "+discard"}, allRights...)...)
		s.Run(t, "ACL", "SETUSER", "shop", "on", "~*", "+@all", "-@admin")
		s.Run(t, "ACL", "SETUSER", "other", "on", ">other", "~*", "+@all")
	}
	if replicas > 0 {
		roots := make([]byte, 0)
		for _, s := range c.servers {
			text, err := os.ReadFile(s.CA)
			good(t, err)
			roots = append(roots, text...)
		}
		c.redis.CA = filepath.Join(t.TempDir(), "ca.crt")
		good(t, os.WriteFile(c.redis.CA, roots, 0o600))
		proctest.Eventually(t, "the replicas are connected", func() bool {
			return strings.Contains(c.servers[0].Run(t, "INFO", "replication"), fmt.Sprintf("connected_slaves:%d", replicas))
		})
	}
	return c
}

var allRights = []string{"+acl|getuser", "+acl|setuser", "+acl|save", "+client|list", "+client|kill", "+config|get", "+info", "+cluster|nodes"}

// begin adds a version to the set.
func (c *cache) begin(n int) versions.Version {
	id := time.Unix(int64(n), 0).UTC().Format("20060102t150405")
	v := versions.Version{ID: id, Fence: id, Made: time.Now(), Set: c.doc, Parts: map[string]secret.Value{
		username: secret.New([]byte("shop")), password: secret.New(fmt.Appendf(nil, "c4n4ry-%d", n)),
	}}
	c.doc.Versions = slices.Insert(c.doc.Versions, 0, v)
	return v
}

// accepted adds a version that the servers accept.
func (c *cache) accepted(t *testing.T, n int) versions.Version {
	t.Helper()
	v := c.begin(n)
	_, err := c.Apply(t.Context(), v)
	good(t, err)
	good(t, c.Verify(t.Context(), v))
	return v
}

// logIn opens a session that lasts as long as the test.
func (c *cache) logIn(t *testing.T, name, password string) *resp {
	t.Helper()
	session, err := c.redis.open(t.Context(), login{Username: name, Password: []byte(password)}, c.redis.Addresses[len(c.servers)-1])
	good(t, err)
	t.Cleanup(session.close)
	return session
}

// TestRedisHasTwoPasswords on a master and its replica, which does not get them from the
// master. No session ends, of this user or another.
func TestRedisHasTwoPasswords(t *testing.T) {
	c := newCache(t, 1)
	ctx := t.Context()
	for _, s := range c.servers {
		s.Run(t, "ACL", "SETUSER", "shop", ">by hand")
		s.Run(t, "ACL", "SETUSER", "syncer", "+acl|load") // so that only Syncer decides against it
	}
	refused(t, c.Verify(ctx, c.begin(0)))
	c.doc.Versions = nil
	if problems := c.Check(ctx, c.doc); len(problems) != 0 {
		t.Errorf("before the first version, it says %q", problems)
	}
	first := c.accepted(t, 1)
	sessions := []*resp{c.logIn(t, "shop", "c4n4ry-1"), c.logIn(t, "other", "other")}
	second := c.accepted(t, 2)
	good(t, c.Verify(ctx, first))
	good(t, c.Revoke(ctx, first))
	good(t, c.Revoke(ctx, first))
	for _, address := range c.redis.Addresses {
		refused(t, c.redis.logIn(ctx, "shop", []byte("c4n4ry-1"), address))
		good(t, c.redis.logIn(ctx, "shop", []byte("c4n4ry-2"), address))
		good(t, c.redis.logIn(ctx, "shop", []byte("by hand"), address))
	}
	for _, session := range sessions {
		if answer, err := session.do("PING"); answer != "PONG" {
			t.Errorf("a session has ended: %v", err)
		}
	}
	problems := c.Check(ctx, c.doc)
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "passwords that the set does not know: "+aclDigest(secret.New([]byte("by hand")))[:8]+";") {
		t.Errorf("it says %q", problems)
	}
	good(t, c.Verify(ctx, second))
}

// TestRedisRestarts: the new password is in the ACL file. One that could not be stored is
// stored by the next attempt.
func TestRedisRestarts(t *testing.T) {
	c := newCache(t, 0)
	first := c.accepted(t, 1)
	file := c.servers[0].ACLFile
	good(t, os.RemoveAll(filepath.Dir(file)))
	second := c.begin(2)
	if _, err := c.Apply(t.Context(), second); err == nil || !strings.Contains(err.Error(), "a restart would undo it") {
		t.Fatalf("without the folder of the ACL file: %v", err)
	}
	good(t, os.Mkdir(filepath.Dir(file), 0o700))
	_, err := c.Apply(t.Context(), second)
	good(t, err)
	for range 2 {
		c.servers[0].Crash()
		c.servers[0].Restart(t)
		good(t, c.Verify(t.Context(), second))
		good(t, c.Revoke(t.Context(), first))
	}
	refused(t, c.Verify(t.Context(), first))
	text, err := os.ReadFile(file)
	good(t, err)
	if strings.Contains(string(text), "c4n4ry") {
		t.Errorf("the ACL file has a password: %s", text)
	}
}

// TestRedisWithoutACLFile works, and Check says that a restart forgets passwords.
func TestRedisWithoutACLFile(t *testing.T) {
	c := newCache(t, 0, "--aclfile ")
	good(t, c.Revoke(t.Context(), c.accepted(t, 1)))
	if problems := c.Check(t.Context(), c.doc); len(problems) != 1 || !strings.Contains(problems[0].Error(), "a restart forgets new passwords") {
		t.Errorf("it says %q", problems)
	}
}

// TestRedisSessionsThatAreOlder than the next version use the old one. With EndSessions
// they are ended.
func TestRedisSessionsThatAreOlder(t *testing.T) {
	c := newCache(t, 1)
	ctx := t.Context()
	first := c.accepted(t, 1)
	old, other := c.logIn(t, "shop", "c4n4ry-1"), c.logIn(t, "other", "other")
	if uses, err := c.InUse(ctx, first); err != nil || len(uses) > 0 {
		t.Errorf("with one version %q use it: %v", uses, err)
	}
	second := c.begin(2)
	c.doc.Versions[0].Made = time.Now().Add(2 * time.Second) // the age of a session has whole seconds
	if uses, err := c.InUse(ctx, first); err != nil || len(uses) != 1 || uses[0] != fmt.Sprintf(`1 of shop at %s from 127.0.0.1 ("")`, c.redis.Addresses[1]) {
		t.Errorf("%q use it: %v", uses, err)
	}
	c.doc.Versions[0].Made = time.Now().Add(-time.Hour)
	if uses, err := c.InUse(ctx, first); err != nil || len(uses) > 0 {
		t.Errorf("although all sessions are new %q use it: %v", uses, err)
	}
	c.EndSessions = true
	_, err := c.Apply(ctx, second)
	good(t, err)
	good(t, c.Revoke(ctx, first))
	if _, err := old.do("PING"); err == nil {
		t.Error("the session of the user goes on")
	}
	if _, err := other.do("PING"); err != nil {
		t.Errorf("the session of another user has ended: %v", err)
	}
}

// TestRedisUserOfAnotherSet stays as it is, also if both sets look at it before either
// changes it.
func TestRedisUserOfAnotherSet(t *testing.T) {
	c := newCache(t, 0)
	ctx := t.Context()
	at, known := c.redis.Addresses[0], []secret.Value{secret.New([]byte("a")), secret.New([]byte("b"))}
	before, err := c.redis.readAccount(ctx, at, "shop", known)
	good(t, err)
	ours, theirs := sealOf("shop/cache", c.doc), sealOf("another", c.doc)
	good(t, c.redis.setPasswords(ctx, at, "shop", before, known, []bool{true, false}, ours))
	was, err := c.redis.readAccount(ctx, at, "shop", known)
	if err != nil || !was.accepts[0] || was.accepts[1] || was.owner != ours || len(was.others) > 0 {
		t.Fatalf("it is %+v, %v", was, err)
	}
	good(t, c.redis.setPasswords(ctx, at, "shop", was, known, []bool{true, false}, theirs))
	if err := c.redis.setPasswords(ctx, at, "shop", was, known, []bool{true, true}, ours); err == nil {
		t.Error("a change is made of what was seen before another change")
	}
	if is, err := c.redis.readAccount(ctx, at, "shop", known); err != nil || is.owner != theirs || is.accepts[1] {
		t.Errorf("it is %+v, %v", is, err)
	}
	if _, err := c.Apply(ctx, c.begin(1)); err == nil || !strings.Contains(err.Error(), "another set owns it") {
		t.Errorf("apply: %v", err)
	}
	good(t, c.redis.setPasswords(ctx, at, "shop", before, known, []bool{false, false}, ours))
	if _, err := c.redis.readAccount(ctx, at, "shop", known); err == nil || !strings.Contains(err.Error(), "two sets own it") {
		t.Errorf("with two seals: %v", err)
	}
}

// TestRedisGetsNoPassword but by the login itself.
func TestRedisGetsNoPassword(t *testing.T) {
	c := newCache(t, 0)
	c.redis.Plain = true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	good(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	var sent bytes.Buffer
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", c.servers[0].Addr)
				if err != nil {
					t.Error(err)
					return
				}
				var back sync.WaitGroup
				back.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
				var said bytes.Buffer
				_, _ = io.Copy(io.MultiWriter(server, &said), client)
				_ = server.Close()
				back.Wait()
				mu.Lock()
				defer mu.Unlock()
				_, _ = said.WriteTo(&sent)
			})
		}
	})
	c.redis.Addresses = []string{l.Addr().String()}
	v := c.begin(1)
	_, err = c.Apply(t.Context(), v)
	good(t, err)
	good(t, c.Revoke(t.Context(), v))
	good(t, l.Close())
	all.Wait()
	if text := sent.String(); strings.Contains(text, "c4n4ry") || strings.Count(text, "SETUSER") != 2 {
		t.Errorf("it sent %q", text)
	}
}

// TestRedisCheck says what is missing.
func TestRedisCheck(t *testing.T) {
	c := newCache(t, 1)
	check := func(t *testing.T) string { return fmt.Sprint(c.Check(t.Context(), c.doc)) }
	c.accepted(t, 1)
	if got := check(t); got != "[]" {
		t.Fatalf("with all rights it says %s", got)
	}
	both := c.redis.Addresses
	master, replica := c.servers[0], c.servers[1]
	for name, test := range map[string]struct {
		change, back []string // of the user syncer or shop on the master
		addresses    []string
		says         string
	}{
		"no right to save":   {[]string{"syncer", "-acl|save"}, []string{"syncer", "+acl|save"}, both, "syncer lacks rights: ACL SETUSER syncer +acl|save"},
		"no right to kill":   {[]string{"syncer", "-client|kill", "-acl|setuser"}, []string{"syncer", "+client|kill", "+acl|setuser"}, both, "syncer lacks rights: ACL SETUSER syncer +acl|setuser]"},
		"no rights":          {[]string{"syncer", "-@all"}, append([]string{"syncer", "+multi", "+discard"}, allRights...), both, "ACL SETUSER syncer +multi +discard +acl|getuser +acl|save +acl|setuser +client|list +cluster|nodes +config|get +info]"},
		"any password":       {[]string{"shop", "nopass"}, []string{"shop", "resetpass"}, both, master.TLSAddr + " accepts a wrong password of shop"},
		"off":                {[]string{"shop", "off"}, []string{"shop", "on"}, both, "user shop is off: ACL SETUSER shop on"},
		"another password":   {[]string{"syncer", "<admin's", ">other"}, []string{"syncer", ">admin's"}, both, "user syncer: WRONGPASS"},
		"master is missing":  {nil, nil, both[1:], replica.TLSAddr + " is a replica of " + master.Addr + "; add"},
		"replica is missing": {nil, nil, both[:1], "there are the replicas " + replica.Addr + ", but 0 of them in address"},
		"no TLS":             {nil, nil, []string{master.Addr}, "it does not answer in TLS; if it has no TLS, enable it there"},
		"nothing listens":    {nil, nil, []string{"127.0.0.1:1"}, "check the port and whether the server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.redis.Addresses = test.addresses; test.change != nil {
				master.Run(t, append([]string{"ACL", "SETUSER"}, test.change...)...)
				defer master.Run(t, append([]string{"ACL", "SETUSER"}, test.back...)...)
			}
			if got := check(t); !strings.Contains(got, test.says) {
				t.Errorf("it says %s,\nand should say %s", got, test.says)
			}
		})
	}
	c.redis.Addresses = both
	master.Run(t, "ACL", "DELUSER", "shop")
	const want = "it does not exist; create it: ACL SETUSER shop on "
	if got := check(t); !strings.Contains(got, want) {
		t.Errorf("it says %s", got)
	}
	if _, err := c.Apply(t.Context(), c.begin(2)); err == nil || !strings.Contains(err.Error(), "create it: ACL SETUSER shop on ") || strings.Contains(master.Run(t, "ACL", "LIST"), "shop") {
		t.Errorf("apply of a user that does not exist: %v", err)
	}
	c.redis.CA = ""
	if got := check(t); !strings.Contains(got, `name the file with its CA certificate in "ca"`) {
		t.Errorf("it says %s", got)
	}
	c.redis.Plain = true
	if got := check(t); !strings.Contains(got, `if the server has TLS, remove "plain: true"`) {
		t.Errorf("it says %s", got)
	}
}

// TestRedisServerIsDown: the others get the password, and no version is refused. The server
// gets it when it is back.
func TestRedisServerIsDown(t *testing.T) {
	c := newCache(t, 1)
	first, second := c.accepted(t, 1), c.begin(2)
	c.servers[1].Crash()
	_, err := c.Apply(t.Context(), second)
	for act, err := range map[string]error{"apply": err, "verify": c.Verify(t.Context(), first), "revoke": c.Revoke(t.Context(), first)} {
		if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.redis.Addresses[1]) {
			t.Errorf("%s without a server: %v", act, err)
		}
	}
	c.servers[1].Restart(t)
	_, err = c.Apply(t.Context(), second)
	good(t, err)
	good(t, c.Verify(t.Context(), second))
	good(t, c.Revoke(t.Context(), first))
	refused(t, c.redis.logIn(t.Context(), "shop", []byte("c4n4ry-1"), c.redis.Addresses[1]))
}

// TestRedisCluster: each server of a cluster gets the password, and Check names one that is
// not in the addresses.
func TestRedisCluster(t *testing.T) {
	c, other := newCache(t, 0, "--cluster-enabled yes"), newCache(t, 0, "--cluster-enabled yes")
	c.redis.Plain, c.redis.Addresses = true, []string{c.servers[0].Addr}
	host, port, _ := strings.Cut(other.servers[0].Addr, ":")
	c.servers[0].Run(t, "CLUSTER", "MEET", host, port)
	const missing = "the cluster also has "
	proctest.Eventually(t, "a cluster", func() bool {
		return strings.Contains(fmt.Sprint(c.Check(t.Context(), c.doc)), missing+other.servers[0].Addr)
	})
	c.redis.Addresses = append(c.redis.Addresses, other.servers[0].Addr)
	c.accepted(t, 1)
	for _, err := range c.Check(t.Context(), c.doc) {
		t.Errorf("with all servers: %v", err)
	}
}

// TestRedisDefaultUser stays as it is, and so does a user that needs no password.
func TestRedisDefaultUser(t *testing.T) {
	c := newCache(t, 0)
	c.User = "default"
	c.servers[0].Run(t, "ACL", "SETUSER", "shop", "nopass")
	for user, says := range map[string]string{"default": "give the programs another user", "shop": "it accepts any password"} {
		c.User = user
		before := c.servers[0].Run(t, "ACL", "LIST")
		_, err := c.Apply(t.Context(), c.begin(1))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("apply: %v", err)
		}
		if now := c.servers[0].Run(t, "ACL", "LIST"); now != before {
			t.Errorf("it is %s", now)
		}
		if got := fmt.Sprint(c.Check(t.Context(), c.doc)); !strings.Contains(got, says) {
			t.Errorf("check says %s", got)
		}
	}
}

// TestAQuoteInANameOfRedis is quoted in the commands that are shown.
func TestAQuoteInANameOfRedis(t *testing.T) {
	c := newCache(t, 0)
	for _, user := range []string{`o'brien`, `"o"`, `o\b`, `o"\'b`} {
		c.User = user
		_, command, named := strings.Cut(fmt.Sprint(c.Check(t.Context(), c.doc)), "create it: ")
		command, _, _ = strings.Cut(command, ", with")
		if !named {
			t.Fatalf("no command is shown for %s", user)
		}
		c.servers[0].Paste(t, command)
		for _, err := range c.Check(t.Context(), c.doc) {
			t.Errorf("after %s: %v", command, err)
		}
	}
}
