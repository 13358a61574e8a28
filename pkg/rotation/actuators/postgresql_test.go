package actuators

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

var server *pgtest.Server

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(m, &server)) }

const adminPassword = "admin's \\ password"

// roles are the roles of a database who take turns.
type roles struct {
	*Turns
	*PostgreSQL
}

// with returns the roles at a server with other settings.
func (p *roles) with(change func(*PostgreSQL)) *roles {
	turns, server := *p.Turns, *p.PostgreSQL
	change(&server)
	turns.Server = &server
	return &roles{&turns, &server}
}

// database makes a database with an owner without login, an administrator with
// CREATEROLE only, and two users. All have the test's name, quotes included.
func database(t *testing.T) *roles {
	t.Helper()
	return databaseOf(t, strings.ToLower(t.Name())+` "o'x\`)
}

// databaseOf is database with the names that begin with name.
func databaseOf(t *testing.T, name string) *roles {
	t.Helper()
	p := &roles{&Turns{Set: "shop/db", Users: []string{name + " a", name + " b"}}, &PostgreSQL{
		Addresses: []string{server.Addr + "/postgres"}, CA: server.CA,
		Admin: func(context.Context) (secret.Value, error) {
			return secret.New(fmt.Appendf(nil, `{"username":%q,"password":%q}`, name+" admin", adminPassword)), nil
		},
	}}
	p.Server = p.PostgreSQL
	owner, admin := identifier(name+" owner"), identifier(name+" admin")
	sql := fmt.Sprintf("CREATE ROLE %s; CREATE ROLE %s LOGIN CREATEROLE PASSWORD %s;", owner, admin, literal(adminPassword))
	for _, user := range p.Users {
		user := identifier(user)
		sql += fmt.Sprintf("CREATE ROLE %s NOLOGIN IN ROLE %s; ALTER ROLE %s SET role TO %s;", user, owner, user, owner)
	}
	server.Query(t, "postgres", sql)
	t.Cleanup(func() {
		for _, role := range append(p.Users, name+" owner", name+" admin") {
			server.Query(t, "postgres", "DROP ROLE IF EXISTS "+identifier(role))
		}
	})
	return p
}

// setAtEnd is a set with an id above all of the tests.
var setAtEnd = &versions.Document{Identity: "ours", Versions: []versions.Version{{ID: "99991231t235959"}}}

// version is one of the user in that place; its number is that of its second.
func (p *roles) version(place, second int) versions.Version {
	id := time.Unix(int64(second), 0).UTC().Format("20060102t150405")
	return versions.Version{ID: id, Fence: id, Set: setAtEnd, Parts: map[string]secret.Value{
		username: secret.New([]byte(p.Users[place])),
		password: secret.New(fmt.Appendf(nil, "c4n4ry-%d", second)),
	}}
}

func apply(t *testing.T, p *roles, v versions.Version) {
	t.Helper()
	if minted, err := p.Apply(t.Context(), v); err != nil || minted != nil {
		t.Fatalf("apply: %v, %v", minted, err)
	}
}

// verified verifies a version, and waits for the end of that session: PostgreSQL ends it
// after Verify has returned.
func verified(t *testing.T, p *roles, v versions.Version) {
	t.Helper()
	good(t, p.Verify(t.Context(), v))
	proctest.Eventually(t, "the end of the session", func() bool {
		uses, err := p.InUse(t.Context(), v)
		return err == nil && len(uses) == 0
	})
}

func good(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("%v; it should be refused", err)
	}
}

// logIn begins a session that lasts until it is closed.
func (p *roles) session(t *testing.T, v versions.Version) *pgconn.PgConn {
	t.Helper()
	conn, err := p.open(t.Context(), login{Username: user(v), Password: v.Parts[password].Bytes()}, p.Addresses[0])
	good(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestUsersTakeTurns(t *testing.T) {
	p := database(t)
	ctx := t.Context()
	first, second := p.version(0, 1), p.version(1, 2)
	refused(t, p.Verify(ctx, first))
	apply(t, p, first)
	apply(t, p, first)
	verified(t, p, first)
	apply(t, p, second)
	verified(t, p, first)
	verified(t, p, second)

	made := p.session(t, first)
	if _, err := query(ctx, made, "CREATE TEMP TABLE t (); SELECT current_user"); err != nil {
		t.Fatal(err)
	}
	if uses, err := p.InUse(ctx, first); err != nil || len(uses) != 1 || !strings.Contains(uses[0], "1 of "+p.Users[0]) {
		t.Fatalf("%q use it: %v", uses, err)
	}
	good(t, made.Close(ctx))
	proctest.Eventually(t, "the session ends", func() bool {
		uses, err := p.InUse(ctx, first)
		return err == nil && len(uses) == 0
	})
	good(t, p.Revoke(ctx, first))
	good(t, p.Revoke(ctx, first))
	refused(t, p.Verify(ctx, first))
	verified(t, p, second)
}

// A table that one user makes is open to the other, since both act as the owner.
func TestWhatOneUserMakesIsOpenToTheOther(t *testing.T) {
	p := database(t)
	server.Query(t, "postgres", "CREATE SCHEMA shop AUTHORIZATION "+identifier(strings.TrimSuffix(p.Users[0], " a")+" owner"))
	t.Cleanup(func() { server.Query(t, "postgres", "DROP SCHEMA shop CASCADE") })
	first, second := p.version(0, 1), p.version(1, 2)
	apply(t, p, first)
	apply(t, p, second)
	_, err := query(t.Context(), p.session(t, first), "CREATE TABLE shop.made (n int)")
	good(t, err)
	_, err = query(t.Context(), p.session(t, second), "INSERT INTO shop.made VALUES (1); ALTER TABLE shop.made ADD m int; DROP TABLE shop.made")
	good(t, err)
}

func TestTheTurnIsOfAUserThatNoVersionHas(t *testing.T) {
	p := database(t)
	doc := &versions.Document{Identity: "ours", Versions: []versions.Version{{ID: "99991231t235959", State: versions.Retired}}}
	turn := func() string {
		t.Helper()
		parts, err := p.Prepare(t.Context(), doc)
		if err != nil {
			return err.Error()
		}
		return string(parts[username].Bytes())
	}
	if got := turn(); got != p.Users[0] {
		t.Errorf("it is the turn of %s", got)
	}
	first, second := p.version(0, 1), p.version(1, 2)
	apply(t, p, first)
	if got := turn(); got != p.Users[1] { // nobody uses that one
		t.Errorf("it is the turn of %s", got)
	}
	apply(t, p, second)
	session := p.session(t, first)
	if got := turn(); !strings.Contains(got, "has open sessions: 1 of "+p.Users[0]) {
		t.Errorf("though somebody is logged in: %s", got)
	}
	good(t, session.Close(t.Context()))
	doc = doc.Make(first.ID, first.Parts, true, versions.Entry{})
	if got := turn(); got != p.Users[1] {
		t.Errorf("it is the turn of %s", got)
	}
	doc = doc.Promote(first.ID, versions.Entry{}).Make(second.ID, second.Parts, true, versions.Entry{})
	if got := turn(); !strings.Contains(got, "no user or host is free") {
		t.Errorf("though all have one: %s", got)
	}
}

// What comes late changes nothing, whatever it is.
func TestTheCommentIsTheFence(t *testing.T) {
	p := database(t)
	ctx := t.Context()
	server.Query(t, "postgres", fmt.Sprintf("COMMENT ON ROLE %s IS 'of the shop [syncer v1]'", identifier(p.Users[0])))
	first, third := p.version(0, 1), p.version(0, 3)
	apply(t, p, first)
	apply(t, p, third)
	_, err := p.Apply(ctx, first)
	refused(t, err)
	good(t, p.Revoke(ctx, first)) // it is gone already
	verified(t, p, third)

	again := third
	again.Fence = "20261122t000000"
	apply(t, p, again)
	refused(t, p.Revoke(ctx, third))
	_, err = p.Apply(ctx, third)
	refused(t, err)
	verified(t, p, third)

	good(t, p.Revoke(ctx, again))
	_, err = p.Apply(ctx, again)
	refused(t, err)
	refused(t, p.Verify(ctx, third))

	// A version that it never had is refused beforehand.
	never := p.version(0, 4_000_000_000)
	good(t, p.Revoke(ctx, never))
	_, err = p.Apply(ctx, never)
	refused(t, err)
	comment := server.Query(t, "postgres", "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = "+literal(p.Users[0]))
	if want := "of the shop [syncer v1] [syncer version " + never.ID + " fence " + never.ID + ` revoked] [of set "shop/db" ours since 2`; len(comment) != 1 || !strings.HasPrefix(comment[0], want) {
		t.Errorf("the comment is %q", comment)
	}
}

// Of two at the same moment, the one with the later fence has its way.
func TestTwoAtTheSameMoment(t *testing.T) {
	p := database(t)
	for round := range 10 {
		early, late := p.version(0, 2*round+1), p.version(0, 2*round+2)
		apply(t, p, early)
		var acts sync.WaitGroup
		for range 3 {
			for _, act := range []func() error{
				func() error { _, err := p.Apply(t.Context(), early); return err },
				func() error { return p.Revoke(t.Context(), early) },
				func() error { _, err := p.Apply(t.Context(), late); return err },
			} {
				acts.Go(func() {
					if err := act(); err != nil && !errors.Is(err, ErrRefused) && !strings.Contains(err.Error(), "concurrently updated") {
						t.Error(err)
					}
				})
			}
		}
		acts.Wait()
		apply(t, p, late)
		verified(t, p, late)
	}
}

// A session that begins before NOLOGIN and is seen after it keeps the user.
func TestASessionThatSlippedInKeepsTheUser(t *testing.T) {
	p := database(t)
	first := p.version(0, 1)
	apply(t, p, first)
	session := p.session(t, first)
	if err := p.Revoke(t.Context(), first); err == nil || !strings.Contains(err.Error(), "1 of "+p.Users[0]) {
		t.Fatalf("revoked with a session: %v", err)
	}
	good(t, p.Verify(t.Context(), first))

	p.EndSessions = true
	if uses, err := p.InUse(t.Context(), first); err != nil || len(uses) > 0 {
		t.Errorf("sessions that will be ended hold: %q, %v", uses, err)
	}
	if err := p.Revoke(t.Context(), first); err == nil || !strings.Contains(err.Error(), insufficientPrivilege) {
		t.Errorf("a session is ended without the right: %v", err)
	}
	server.Query(t, "postgres", "GRANT pg_signal_backend TO "+identifier(strings.TrimSuffix(p.Users[0], " a")+" admin"))
	good(t, p.Revoke(t.Context(), first))
	if _, err := query(t.Context(), session, "SELECT 1"); err == nil {
		t.Error("the session goes on")
	}
	refused(t, p.Verify(t.Context(), first))
}

// Who is about to let a user in again does not, if another one has revoked the
// version for good meanwhile, or has made the next one of it.
func TestAUserIsLetInAgainOnlyByWhoShutItOut(t *testing.T) {
	first := (&roles{Turns: &Turns{Users: []string{"a"}}}).version(0, 1)
	later := (&roles{Turns: &Turns{Users: []string{"a"}}}).version(0, 2)
	for _, m := range []mark{markOf(first, revoked), markOf(first, accepted), markOf(later, revoking), markOf(later, accepted), {}} {
		if is, err := m.readmit(first); is != m || !errors.Is(err, errStands) {
			t.Errorf("%v becomes %v, %v", m, is, err)
		}
	}
	if is, err := markOf(first, revoking).readmit(first); err != nil || is.state != accepted {
		t.Errorf("it becomes %v, %v", is, err)
	}
}

func TestAUserThatIsGone(t *testing.T) {
	p := database(t)
	first := p.version(0, 1)
	server.Query(t, "postgres", "DROP ROLE "+identifier(p.Users[0]))
	good(t, p.Revoke(t.Context(), first))
	if _, err := p.Apply(t.Context(), first); err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "CREATE ROLE "+identifier(p.Users[0])) {
		t.Errorf("apply: %v", err)
	}
	refused(t, p.Verify(t.Context(), first))
}

// A controller that falls asleep in a transaction loses the role to the next one.
func TestASleeperInATransactionChangesNothing(t *testing.T) {
	p := database(t)
	first, second := p.version(0, 1), p.version(0, 2)
	err := p.change(t.Context(), user(first), "LOGIN PASSWORD 'late'", func(m mark) (mark, error) {
		apply(t, p, second) // it waits for the sleeper to be cut off
		return m.accept(first)
	})
	if err == nil {
		t.Error("the sleeper goes on")
	}
	verified(t, p, second)
}

// The password is in no log, though the database logs all statements.
func TestThePasswordIsInNoLog(t *testing.T) {
	p := database(t)
	first := p.version(0, 1)
	apply(t, p, first)
	verified(t, p, first)
	log := server.Log(t)
	if !strings.Contains(log, "ALTER ROLE "+identifier(p.Users[0])) {
		t.Fatal("the log has no statements")
	}
	for _, part := range []string{string(first.Parts[password].Bytes()), adminPassword} {
		if strings.Contains(log, part) {
			t.Errorf("the log has %s", part)
		}
	}
}

func TestNoCertificateNoLogin(t *testing.T) {
	p := database(t)
	first := p.version(0, 1)
	apply(t, p, first)
	for name, p := range map[string]*roles{
		"an unknown authority": p.with(func(p *PostgreSQL) { p.CA = "" }),
		"another name":         p.with(func(p *PostgreSQL) { p.Addresses = []string{"localhost:" + p.port() + "/postgres"} }),
	} {
		if err := p.Verify(t.Context(), first); err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := p.Apply(t.Context(), first); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: apply: %v", name, err)
		}
	}
	escaped := p.with(func(p *PostgreSQL) { p.CA = filepath.Join(t.TempDir(), "ca.crt") })
	good(t, os.WriteFile(escaped.CA, []byte(`-----BEGIN CERTIFICATE-----\nx`), 0o600))
	if err := escaped.Verify(t.Context(), first); err == nil || !strings.Contains(err.Error(), escaped.CA+` has \n as two letters`) {
		t.Errorf("a CA with escaped line breaks: %v", err)
	}
	plain := p.with(func(p *PostgreSQL) { p.CA, p.Plain = "", true })
	good(t, plain.Verify(t.Context(), first))
}

func (p *PostgreSQL) port() string {
	_, port, _ := strings.Cut(strings.TrimSuffix(p.Addresses[0], "/postgres"), ":")
	return port
}

// An address that does not accept a login yet, as of a standby that lags, keeps
// it from being handed out; one that cannot be reached says nothing.
func TestEveryAddressHasToAcceptALogin(t *testing.T) {
	p := database(t)
	first := p.version(0, 1)
	apply(t, p, first)
	p.Addresses = append(p.Addresses, server.Addr+"/nowhere")
	if err := p.Verify(t.Context(), first); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("with a database that is not there: %v", err)
	}
	p.Addresses[1] = proctest.FreeAddress(t) + "/postgres"
	if err := p.Verify(t.Context(), first); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("with a server that is not there: %v", err)
	}
	p.Addresses = p.Addresses[:1]
	first.Parts[password] = secret.New(bytes.Repeat([]byte("x"), 20))
	refused(t, p.Verify(t.Context(), first))
}

// TestTheLoginIsCleared: Syncer keeps one copy of what it read, which the caller clears.
func TestTheLoginIsCleared(t *testing.T) {
	read := []byte(`{"username":"nobody","password":"canary-password"}`)
	p := &PostgreSQL{Admin: func(context.Context) (secret.Value, error) { return secret.New(read), nil }}
	admin, err := adminLogin(t.Context(), p.Admin)
	good(t, err)
	if string(admin.Password) != "canary-password" || bytes.Contains(read, []byte("canary-password")) {
		t.Errorf("the password is %q, and what was read is %q", admin.Password, read)
	}
}

// TestTheOwnerOfTheDatabaseRunsNothingAsAdmin: whoever owns a database chooses the schemas
// in which a session finds functions, tables and operators. An administrator who found one
// there would run it with the right to change roles.
func TestTheOwnerOfTheDatabaseRunsNothingAsAdmin(t *testing.T) {
	p := database(t)
	prefix := strings.TrimSuffix(p.Users[0], " a")
	const db = "hostile"
	server.Query(t, "postgres", "CREATE DATABASE "+db)
	t.Cleanup(func() { server.Query(t, "postgres", "DROP DATABASE "+db+" WITH (FORCE)") })
	p.Addresses = []string{server.Addr + "/" + db}
	trap := `CREATE SCHEMA trap; CREATE TABLE trap.sprung (what text, who text); GRANT ALL ON SCHEMA trap TO PUBLIC; GRANT ALL ON trap.sprung TO PUBLIC;
		CREATE FUNCTION trap.spring(what text) RETURNS text LANGUAGE sql AS $$ INSERT INTO trap.sprung VALUES (what, current_user) RETURNING what $$;`
	for _, table := range []string{"pg_roles", "pg_stat_activity", "pg_database", "pg_db_role_setting"} {
		trap += fmt.Sprintf("CREATE VIEW trap.%[1]s AS SELECT * FROM pg_catalog.%[1]s WHERE trap.spring('%[1]s') IS NOT NULL;", table)
	}
	for _, f := range []string{
		"shobj_description(o oid, c name) RETURNS text", "pg_has_role(r oid, p text) RETURNS boolean", "pg_has_role(r name, p text) RETURNS boolean",
		"pg_has_role(r text, p text) RETURNS boolean", "pg_has_role(r oid, o oid, p text) RETURNS boolean", "current_setting(s text) RETURNS text",
		"pg_terminate_backend(p integer) RETURNS boolean", "host(a inet) RETURNS text", "current_database() RETURNS name", "substr(c text, n integer) RETURNS text",
		"pg_is_in_recovery() RETURNS boolean", "starts_with(a text, b text) RETURNS boolean",
	} {
		name, _, _ := strings.Cut(f, "(")
		trap += fmt.Sprintf("CREATE FUNCTION trap.%s LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring('%s'); RETURN NULL; END $$;", f, name)
	}
	for _, operand := range []string{"name", "text", "oid"} {
		trap += fmt.Sprintf(`CREATE FUNCTION trap.same_%[1]s(a %[1]s, b %[1]s) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring('= of %[1]s'); RETURN a OPERATOR(pg_catalog.=) b; END $$;
			CREATE OPERATOR trap.= (LEFTARG = %[1]s, RIGHTARG = %[1]s, FUNCTION = trap.same_%[1]s);`, operand)
	}
	server.Query(t, db, trap+"GRANT ALL ON ALL TABLES IN SCHEMA trap TO PUBLIC")
	admin := identifier(prefix + " admin")
	server.Query(t, db, fmt.Sprintf(`ALTER DATABASE %[1]s SET search_path = trap, pg_catalog; ALTER ROLE %[2]s SET search_path = trap, pg_catalog;
		ALTER ROLE %[2]s IN DATABASE %[1]s SET search_path = trap, pg_catalog; ALTER DATABASE %[1]s SET default_transaction_read_only = on;
		ALTER DATABASE %[1]s SET statement_timeout = '1ms'; ALTER DATABASE %[1]s SET standard_conforming_strings = off; ALTER DATABASE %[1]s SET row_security = off;
		GRANT %[3]s, pg_signal_backend TO %[2]s; ALTER DATABASE %[1]s SET role = %[3]s`, db, admin, identifier(prefix+" owner")))

	first, second := p.version(0, 1), p.version(1, 2)
	for _, v := range []versions.Version{first, second} {
		apply(t, p, v)
		verified(t, p, v)
	}
	p.EndSessions = true
	p.session(t, first)
	good(t, p.Revoke(t.Context(), first))
	p.EndSessions = false
	if _, err := p.InUse(t.Context(), second); err != nil {
		t.Error(err)
	}
	if _, err := p.Prepare(t.Context(), setAtEnd); err != nil {
		t.Error(err)
	}
	for _, problem := range p.Check(t.Context(), setAtEnd) {
		t.Errorf("check: %v", problem)
	}
	server.Query(t, "postgres", "ALTER DATABASE "+db+" RESET ALL") // the limit of time concerns this look too
	if sprung := server.Query(t, db, "SELECT DISTINCT what, who FROM trap.sprung ORDER BY 1"); len(sprung) > 0 {
		t.Errorf("the administrator ran functions of the owner of the database: %q", sprung)
	}
}

// TestEveryLoginNeedsSCRAM: a server that asks the administrator for a clear password, for
// an MD5 hash, or for nothing gets no login.
func TestEveryLoginNeedsSCRAM(t *testing.T) {
	p := database(t)
	prefix := strings.TrimSuffix(p.Users[0], " a")
	server.Query(t, "postgres", "GRANT trusted TO "+identifier(prefix+" admin"))
	first := p.version(0, 1)
	if _, err := p.Apply(t.Context(), first); err == nil || !strings.Contains(err.Error(), "scram-sha-256") {
		t.Errorf("a server that asks the administrator for no password: %v", err)
	}
	server.Query(t, "postgres", "REVOKE trusted FROM "+identifier(prefix+" admin")+"; GRANT cleartext TO "+identifier(prefix+" admin"))
	if _, err := p.Apply(t.Context(), first); err == nil || !strings.Contains(err.Error(), "scram-sha-256") {
		t.Errorf("a server whose pg_hba.conf says password: %v", err)
	}
	for name, request := range map[string][]byte{"a clear password": {0, 0, 0, 3}, "an MD5 hash": {0, 0, 0, 5, 1, 2, 3, 4}} {
		asked, sent := askingServer(t, request)
		p.Addresses, p.Plain = []string{asked + "/postgres"}, true
		if _, err := p.Apply(t.Context(), first); err == nil || !strings.Contains(err.Error(), "scram-sha-256") {
			t.Errorf("a server that asks for %s: %v", name, err)
		}
		if answer := <-sent; len(answer) > 0 {
			t.Errorf("a server that asks for %s gets %d bytes", name, len(answer))
		}
	}
}

// askingServer is a stand-in for a hostile server, which no PostgreSQL is: it asks for a
// password in the given way, and returns what it gets.
func askingServer(t *testing.T, request []byte) (address string, sent <-chan []byte) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	good(t, err)
	answers := make(chan []byte, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var size [4]byte
		_, _ = io.ReadFull(conn, size[:])
		_, _ = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))-4)
		_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte{'R'}, uint32(4+len(request))), request...))
		answer, _ := io.ReadAll(conn)
		if len(answer) > 0 && answer[0] == 'X' {
			answer = nil // the client ends the session
		}
		answers <- answer
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	return ln.Addr().String(), answers
}

// TestTwoPrimaries: a change of one would leave the login on the other as it was.
func TestTwoPrimaries(t *testing.T) {
	p := database(t)
	p.Addresses = append(p.Addresses, server.Addr+"/template1") // of the same server
	server.Query(t, "postgres", "ALTER DATABASE template1 SET timezone = 'Asia/Tokyo'; ALTER DATABASE template1 SET datestyle = 'German'")
	t.Cleanup(func() { server.Query(t, "postgres", "ALTER DATABASE template1 RESET ALL") })
	apply(t, p, p.version(0, 1))
	other, err := pgtest.Start()
	good(t, err)
	defer other.Stop()
	prefix := strings.TrimSuffix(p.Users[0], " a")
	other.Query(t, "postgres", "CREATE ROLE "+identifier(prefix+" admin")+" LOGIN CREATEROLE PASSWORD "+literal(adminPassword))
	p.Addresses, p.CA, p.Plain = []string{server.Addr + "/postgres", other.Addr + "/postgres"}, "", true
	const want = "are both primaries; rotate each with a separate set, or make one a standby of the other"
	if _, err := p.Apply(t.Context(), p.version(0, 2)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("apply: %v", err)
	}
	if got := strings.Join(said(t, p), "\n"); !strings.Contains(got, p.Addresses[0]+" and "+p.Addresses[1]+" "+want) {
		t.Errorf("check says %s", got)
	}
}
