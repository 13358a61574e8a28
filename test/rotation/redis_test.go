//go:build long

package rotation

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

// inRedis are the logins of a shop in a Redis, and its replica if it has one.
type inRedis struct {
	*shop
	servers []*logintest.Redis
}

// startRedis starts a master and replicas, each with an administrator, and returns what
// makes shops with a user there.
func startRedis(t *testing.T, replicas int) func(*testing.T) *shop {
	t.Helper()
	servers := []*logintest.Redis{logintest.StartRedis(t)}
	for range replicas {
		servers = append(servers, logintest.StartRedis(t, "--replicaof "+strings.Replace(servers[0].Addr, ":", " ", 1)))
	}
	for _, server := range servers {
		server.Run(t, "ACL", "SETUSER", "syncer", "on", ">admin", "+acl|getuser", "+acl|setuser", "+acl|save", "+client|list")
	}
	return func(t *testing.T) *shop {
		s := newShop(t)
		for _, server := range servers {
			server.Run(t, "ACL", "SETUSER", s.users[0], "on", "~*", "+@all", "-@admin")
		}
		s.logins = inRedis{s, servers}
		return s
	}
}

func (s inRedis) address() string { return s.servers[0].Addr }

func (s inRedis) actuator(client *conjur.Client, address string) login {
	addresses := []string{address}
	for _, replica := range s.servers[1:] {
		addresses = append(addresses, replica.Addr)
	}
	server := &actuators.Redis{Addresses: addresses, Plain: true, Admin: func(context.Context) (secret.Value, error) {
		return secret.New([]byte(`{"username":"syncer","password":"admin"}`)), nil
	}}
	return &actuators.Overlap{Set: set, User: s.users[0], Server: server, Current: func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		return held.Document, err
	}}
}

// logIn logs in at each server.
func (s inRedis) logIn(username, password string) error {
	for _, server := range s.servers {
		conn, err := net.Dial("tcp", server.Addr)
		if err != nil {
			return err
		}
		session := pings{conn}
		err = session.send("AUTH " + username + " " + password)
		if err == nil {
			err = session.send("PING")
		}
		_ = conn.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// pings is a session of a program.
type pings struct{ net.Conn }

// send sends a command, and fails unless its answer is one line without an error.
func (p pings) send(command string) error {
	_ = p.SetDeadline(time.Now().Add(proctest.Patience))
	if _, err := p.Write([]byte(command + "\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 0, 256)
	for len(answer) == 0 || answer[len(answer)-1] != '\n' {
		n, err := p.Read(answer[len(answer):cap(answer)])
		if answer = answer[:len(answer)+n]; err != nil {
			return err
		}
	}
	if answer[0] != '+' {
		return errRedis(strings.TrimSpace(string(answer)))
	}
	return nil
}

type errRedis string

func (e errRedis) Error() string { return string(e) }

// left are the digests of passwords, at the server that has most, without those of seals.
func (s inRedis) left() (all []string) {
	s.t.Helper()
	for _, server := range s.servers {
		var here []string
		_, rest, _ := strings.Cut(server.Run(s.t, "ACL", "GETUSER", s.users[0]), "passwords\n")
		for line := range strings.Lines(rest) {
			digest := strings.TrimSpace(line)
			if len(digest) != 64 {
				break
			}
			if !strings.HasPrefix(digest, "73796e636572") { // "syncer"
				here = append(here, digest[:8])
			}
		}
		if len(here) != 1 || len(all) == 0 {
			all = here
		}
	}
	return all
}

// TestNoLoginFailsWhileRedisRotates: programs log in without pause at a master and its
// replica, and some keep their sessions, none of which ends.
func TestNoLoginFailsWhileRedisRotates(t *testing.T) {
	t.Parallel()
	s := startRedis(t, 1)(t)
	server := s.logins.(inRedis).servers[1]
	server.Run(t, "ACL", "SETUSER", "other", "on", ">other", "+ping")
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other := pings{conn}
	if err := other.send("AUTH other other"); err != nil {
		t.Fatal(err)
	}
	s.lives(elsewhere())
	if err := other.send("PING"); err != nil {
		t.Errorf("the session of another user has ended: %v", err)
	}
}

func TestWithTheGateForcedOpenLoginsToRedisFail(t *testing.T) {
	t.Parallel()
	startRedis(t, 0)(t).failsWithoutTheGate()
}

func TestFaultsAtEachBoundaryOfRedis(t *testing.T) {
	t.Parallel()
	survive(t, startRedis(t, 1))
}
