//go:build long

package actuators

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

// users are users of a MariaDB, whose names have quotes.
type users struct {
	*MySQL
	server *logintest.MariaDB
	doc    *versions.Document
}

const shopUser = `o'x\ "y`

// mariaDB starts a server with an administrator who has the least rights, and with users
// that have two accounts each.
func mariaDB(t *testing.T, options ...string) *users {
	t.Helper()
	server := logintest.StartMariaDB(t, options...)
	m := &users{server: server, doc: &versions.Document{Identity: "ours"}, MySQL: &MySQL{
		Addresses: []string{server.Addr}, CA: server.CA,
		Admin: func(context.Context) (secret.Value, error) {
			return secret.New([]byte(`{"username":"sync@er","password":"admin's \\ password"}`)), nil
		},
	}}
	server.Query(t, loginsTable+`;
		CREATE USER 'sync@er'@127.0.0.1 IDENTIFIED BY 'admin\'s \\ password';
		GRANT CREATE USER, PROCESS, CONNECTION ADMIN ON *.* TO 'sync@er'@127.0.0.1;
		GRANT SELECT, INSERT, UPDATE ON syncer.logins TO 'sync@er'@127.0.0.1; GRANT SELECT ON mysql.global_priv TO 'sync@er'@127.0.0.1`)
	return m
}

// create creates accounts of a user without a password.
func (m *users) create(t *testing.T, user string, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		m.server.Query(t, "CREATE USER "+quoteMySQL(user)+"@"+quoteMySQL(host)+" IDENTIFIED VIA mysql_native_password USING 'invalid'")
	}
}

// version adds a version to the set.
func (m *users) version(user string, second int) versions.Version {
	id := versions.IDAt(time.Unix(int64(second), 0))
	v := versions.Version{ID: id, Fence: id, Set: m.doc, State: versions.Pending, Made: time.Now(), Parts: map[string]secret.Value{
		username: secret.New([]byte(user)), password: secret.New(fmt.Appendf(nil, "c4n4ry-'\\%d", second)),
	}}
	m.doc.Versions = slices.Insert(m.doc.Versions, 0, v)
	return v
}

func (m *users) overlap() *Overlap {
	return &Overlap{Set: "shop/db", User: shopUser, Server: m.MySQL, Current: func(context.Context) (*versions.Document, error) { return read(m.doc) }}
}

func (m *users) turns() *Turns {
	return &Turns{Set: "shop/db", Users: []string{shopUser + "a", shopUser + "b"}, Server: m.MySQL}
}

func applied(t *testing.T, a Actuator, v versions.Version) {
	t.Helper()
	_, err := a.Apply(t.Context(), v)
	good(t, err)
}

// session begins a session of a version, which lasts until the test ends.
func (m *users) session(t *testing.T, v versions.Version) *mysqlSession {
	t.Helper()
	s, err := m.open(t.Context(), login{Username: user(v), Password: slices.Clone(v.Parts[password].Bytes())}, m.Addresses[0])
	good(t, err)
	t.Cleanup(s.close)
	return s
}

// accounts returns what the server stores of users.
func (m *users) accounts(t *testing.T) []string {
	t.Helper()
	return m.server.Query(t, "SELECT Host, JSON_EXTRACT(Priv, '$.authentication_string'), JSON_EXTRACT(Priv, '$.auth_or') FROM mysql.global_priv WHERE User = "+quoteMySQL(shopUser)+" ORDER BY Host")
}

// contains checks that one of several problems has each text.
func contains(t *testing.T, problems []error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(problems, func(err error) bool { return strings.Contains(err.Error(), text) }) {
			t.Errorf("no problem says %q: %v", text, problems)
		}
	}
}

func TestOneUserHasTwoPasswords(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%", "10.%")
	o := m.overlap()
	if problems := o.Check(t.Context(), m.doc); len(problems) > 0 {
		t.Fatal(problems)
	}
	first := m.version(shopUser, 1)
	refused(t, o.Verify(t.Context(), first))
	applied(t, o, first)
	applied(t, o, first)
	good(t, o.Verify(t.Context(), first))
	second := m.version(shopUser, 2)
	applied(t, o, second)
	good(t, o.Verify(t.Context(), first))
	good(t, o.Verify(t.Context(), second))
	if _, err := o.Prepare(t.Context(), m.doc); err == nil {
		t.Error("a third version begins")
	}
	for _, account := range m.accounts(t) {
		for _, v := range m.doc.Versions {
			if !strings.Contains(account, digestOf(v.Parts[password].Bytes())) {
				t.Errorf("%s is not in %s", v.ID, account)
			}
		}
	}
	s := m.session(t, second)
	good(t, o.Revoke(t.Context(), first))
	good(t, o.Revoke(t.Context(), first))
	if _, err := s.query(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
	refused(t, o.Verify(t.Context(), first))
	good(t, o.Verify(t.Context(), second))
	good(t, o.Revoke(t.Context(), second))
	refused(t, o.Verify(t.Context(), second))
	if log := m.server.Log(t); strings.Contains(log, "c4n4ry") || !strings.Contains(log, "USING '*") {
		t.Error("a statement contains a password, or the log has no statements")
	}
}

func TestUsersOfMariaDBTakeTurns(t *testing.T) {
	m := mariaDB(t)
	turns, ctx := m.turns(), t.Context()
	contains(t, turns.Check(ctx, m.doc), `it does not exist; create the user o'x`, `CREATE USER 'o''x\\ "ya'@'%' IDENTIFIED VIA mysql_native_password USING 'invalid'`)
	for _, user := range turns.Users {
		m.create(t, user, "%", "10.%")
	}
	if problems := turns.Check(ctx, m.doc); len(problems) > 0 {
		t.Fatal(problems)
	}
	first, second := m.version(turns.Users[0], 1), m.version(turns.Users[1], 2)
	applied(t, turns, first)
	applied(t, turns, second)
	good(t, turns.Verify(ctx, first))
	good(t, turns.Verify(ctx, second))

	s := m.session(t, first)
	if err := turns.Revoke(ctx, first); err == nil || !strings.Contains(err.Error(), "the session") {
		t.Fatalf("revoked under a session: %v", err)
	}
	good(t, turns.Verify(ctx, first)) // it was admitted again
	turns.EndSessions = true
	good(t, turns.Revoke(ctx, first))
	if _, err := s.query(ctx, "SELECT 1"); err == nil {
		t.Error("the session did not end")
	}
	refused(t, turns.Verify(ctx, first))
	_, err := turns.Apply(ctx, first) // a late request
	refused(t, err)
	refused(t, turns.Verify(ctx, first))
	good(t, turns.Verify(ctx, second))
	third := m.version(turns.Users[0], 3)
	applied(t, turns, third)
	good(t, turns.Verify(ctx, third))
	refused(t, turns.Verify(ctx, first))

	other := m.turns()
	other.Set = "shop/other"
	if _, err := other.Prepare(ctx, &versions.Document{Identity: "theirs"}); err == nil || !strings.Contains(err.Error(), "of the set shop/db") {
		t.Errorf("another set takes the users: %v", err)
	}
	if log := m.server.Log(t); strings.Contains(log, "c4n4ry") || !strings.Contains(log, "ACCOUNT UNLOCK") {
		t.Error("a statement contains a password, or the log has no statements")
	}
}

// TestALogInThatIsSlowHoldsTheRevocation: the server compares a password with those that the
// user had when the log-in began, so a log-in can succeed after ACCOUNT LOCK.
func TestALogInThatIsSlowHoldsTheRevocation(t *testing.T) {
	m := mariaDB(t)
	m.Plain = true
	turns := m.turns()
	for _, user := range turns.Users {
		m.create(t, user, "%")
	}
	first := m.version(turns.Users[0], 1)
	applied(t, turns, first)
	conn, err := net.Dial("tcp", m.Addresses[0])
	good(t, err)
	defer conn.Close()
	packet(t, conn)
	const protocol41, secure, plugins = 0x200, 0x8000, 0x80000
	hello := binary.LittleEndian.AppendUint32(nil, protocol41|secure|plugins)
	hello = append(append(hello, 0, 0, 0, 1, 45), make([]byte, 23)...)
	hello = append(append(hello, user(first)...), 0, 1, 'x')
	hello = append(append(hello, "another_plugin"...), 0)
	_, err = conn.Write(append([]byte{byte(len(hello)), 0, 0, 1}, hello...))
	good(t, err)
	asked := packet(t, conn) // which plugin to use, and a challenge of 20 bytes
	if err := turns.Revoke(t.Context(), first); err == nil || !strings.Contains(err.Error(), "the session") {
		t.Errorf("revoked while a log-in is in progress: %v", err)
	}
	good(t, m.refuse(t.Context(), turns.Users[0], func(is mark) (mark, error) { return is, nil }))
	refused(t, turns.Verify(t.Context(), first))
	once := sha1.Sum(first.Parts[password].Bytes())
	twice := sha1.Sum(once[:])
	answer := sha1.Sum(append(bytes.Clone(asked[len(asked)-21:len(asked)-1]), twice[:]...))
	for i := range answer {
		answer[i] ^= once[i]
	}
	_, err = conn.Write(append([]byte{byte(len(answer)), 0, 0, 3}, answer[:]...))
	good(t, err)
	if is := packet(t, conn); is[0] != 0 {
		t.Errorf("the server refuses the slow log-in now: %q; then sessions need not include it", is)
	}
}

// packet reads one packet of the server.
func packet(t *testing.T, conn net.Conn) []byte {
	t.Helper()
	head := make([]byte, 4)
	_, err := io.ReadFull(conn, head)
	good(t, err)
	body := make([]byte, int(head[0])|int(head[1])<<8)
	_, err = io.ReadFull(conn, body)
	good(t, err)
	return body
}

// TestASuspendedProcessLosesTheLock: the server ends its session before another process
// gets the lock, so its next statement fails.
func TestASuspendedProcessLosesTheLock(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%")
	began := false
	err := m.locked(t.Context(), func(s *mysqlSession) error {
		began = true
		if err := m.locked(t.Context(), func(*mysqlSession) error { return nil }); err != nil {
			t.Errorf("no other process gets the lock: %v", err)
		}
		return s.change(t.Context(), "late", "late")
	})
	if err == nil || !began {
		t.Errorf("the suspended process continued, or never began: %v", err)
	}
	if rows := m.server.Query(t, "SELECT * FROM syncer.logins"); len(rows) > 0 {
		t.Errorf("it wrote %q", rows)
	}
}

// TestWhatOthersDoToAList of passwords: Syncer repairs it, and names what it does not know.
func TestWhatOthersDoToAList(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%")
	o, ctx, name := m.overlap(), t.Context(), quoteMySQL(shopUser)
	first, second := m.version(shopUser, 1), m.version(shopUser, 2)
	both := func() {
		t.Helper()
		applied(t, o, first)
		applied(t, o, second)
		good(t, o.Verify(ctx, first))
		good(t, o.Verify(ctx, second))
	}
	both()
	for _, removes := range []string{
		"ALTER USER " + name + " IDENTIFIED BY 'another'",
		"GRANT USAGE ON *.* TO " + name + " IDENTIFIED BY 'another'",
	} {
		m.server.Query(t, removes)
		refused(t, o.Verify(ctx, first))
		refused(t, o.Verify(ctx, second))
		contains(t, o.Check(ctx, m.doc), "accepts passwords that the set does not know: *")
		applied(t, o, second) // beside the other
		good(t, o.Verify(ctx, second))
		if _, err := o.Apply(ctx, first); err == nil || !strings.Contains(err.Error(), "it would have 3 passwords") {
			t.Errorf("a third password: %v", err)
		}
		good(t, m.login("another"))
		m.server.Query(t, "ALTER USER "+name+" IDENTIFIED VIA mysql_native_password USING 'invalid'")
		both()
	}
	m.server.Query(t, "SET PASSWORD FOR "+name+" = PASSWORD('another')") // changes the first of both
	if err1, err2 := o.Verify(ctx, first), o.Verify(ctx, second); (err1 == nil) == (err2 == nil) {
		t.Errorf("SET PASSWORD changed another one than the first: %v, %v", err1, err2)
	}
	contains(t, o.Check(ctx, m.doc), "accepts passwords that the set does not know: *")
}

// login logs in with a password.
func (m *users) login(password string) error {
	return m.verify(context.Background(), shopUser, []byte(password))
}

// TestDriversUseTwoPasswordsOfOnePlugin, and not more. So Syncer refuses other lists.
func TestDriversUseTwoPasswordsOfOnePlugin(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%")
	o, ctx, name := m.overlap(), t.Context(), quoteMySQL(shopUser)
	m.server.Query(t, "INSTALL SONAME 'auth_ed25519'")
	m.version(shopUser, 1)
	for list, says := range map[string]string{
		"mysql_native_password USING PASSWORD('x') OR mysql_native_password USING PASSWORD('y') OR mysql_native_password USING PASSWORD('z')": "has 3 passwords, of which some drivers can use only two",
		"ed25519 USING PASSWORD('x') OR mysql_native_password USING PASSWORD('z')":                                                            "has the plugin ed25519",
	} {
		m.server.Query(t, "ALTER USER "+name+" IDENTIFIED VIA "+list)
		if err := m.login("z"); err == nil {
			t.Errorf("the driver can use %s now", list)
		}
		before := m.accounts(t)
		contains(t, o.Check(ctx, m.doc), says)
		if _, err := o.Apply(ctx, m.doc.Versions[0]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s was changed: %v", list, err)
		}
		if after := m.accounts(t); !slices.Equal(before, after) {
			t.Errorf("%q became %q", before, after)
		}
	}
}

// TestObstaclesOfMariaDB finds each before a rotation.
func TestObstaclesOfMariaDB(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%")
	o, ctx := m.overlap(), t.Context()
	o.EndSessions = true
	if problems := o.Check(ctx, m.doc); len(problems) > 0 {
		t.Fatal(problems)
	}
	first := m.version(shopUser, 1)
	applied(t, o, first)

	m.server.Query(t, "CREATE USER ''@'127.0.0.1'")
	refused(t, o.Verify(ctx, first))
	contains(t, o.Check(ctx, m.doc), "DROP USER ''@'127.0.0.1'")
	m.server.Query(t, "DROP USER ''@'127.0.0.1'")

	m.server.Query(t, "ALTER USER "+quoteMySQL(shopUser)+" ACCOUNT LOCK")
	refused(t, o.Verify(ctx, first))
	contains(t, o.Check(ctx, m.doc), "is locked: ALTER USER "+quoteMySQL(shopUser)+"@'%' ACCOUNT UNLOCK")
	m.server.Query(t, "ALTER USER "+quoteMySQL(shopUser)+" ACCOUNT UNLOCK")

	m.server.Query(t, "INSTALL SONAME 'simple_password_check'")
	second := m.version(shopUser, 2)
	_, err := o.Apply(ctx, second)
	contains(t, append(o.Check(ctx, m.doc), err), "the plugin simple_password_check refuses", "a user cannot be changed; the server refuses the digest of a password")
	m.server.Query(t, "SET GLOBAL strict_password_validation = OFF")
	applied(t, o, second)
	good(t, o.Verify(ctx, second))

	m.server.Query(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'sync@er'@127.0.0.1")
	contains(t, o.Check(ctx, m.doc), "GRANT CREATE USER ON *.* TO 'sync@er'@'127.0.0.1'", "GRANT PROCESS ON *.* TO 'sync@er'@'127.0.0.1'", "GRANT CONNECTION ADMIN ON *.* TO 'sync@er'@'127.0.0.1'",
		"GRANT SELECT, INSERT, UPDATE ON syncer.logins TO 'sync@er'@'127.0.0.1'", "GRANT SELECT ON mysql.global_priv TO 'sync@er'@'127.0.0.1'")
	if _, err := m.sessions(ctx, shopUser); err == nil {
		t.Error("without PROCESS, a user seems to have no sessions")
	}

	trusting := *m.MySQL
	trusting.CA = ""
	contains(t, trusting.findObstacles(ctx, []string{shopUser}, false), `name the file with its CA certificate in "ca"`)
	naked := logintest.StartMariaDB(t, "--skip-ssl", "--skip-grant-tables")
	trusting.CA, trusting.Addresses = m.CA, []string{naked.Addr}
	contains(t, trusting.findObstacles(ctx, []string{shopUser}, false), noTLS)
	trusting.Plain = true
	contains(t, trusting.findObstacles(ctx, []string{shopUser}, false), "accepts a wrong password of "+shopUser)
}

// TestChangesGoToThePrimary, which is the only server that is not read-only.
func TestChangesGoToThePrimary(t *testing.T) {
	m, replica := mariaDB(t), mariaDB(t)
	m.Plain = true // each has its own authority
	m.create(t, shopUser, "%")
	replica.create(t, shopUser, "%")
	m.Addresses = []string{replica.Addresses[0], m.Addresses[0]}
	o, first := m.overlap(), m.version(shopUser, 1)
	if _, err := o.Apply(t.Context(), first); err == nil || !strings.Contains(err.Error(), "both accept changes") {
		t.Errorf("two primaries: %v", err)
	}
	replica.server.Query(t, "SET GLOBAL read_only = 1")
	applied(t, o, first)
	refused(t, o.Verify(t.Context(), first)) // nothing replicates here
	replica.server.Query(t, "ALTER USER "+quoteMySQL(shopUser)+" IDENTIFIED BY 'c4n4ry-\\'\\\\1'")
	good(t, o.Verify(t.Context(), first))
	m.server.Query(t, "SET GLOBAL read_only = 1")
	if _, err := m.places(t.Context(), shopUser); err == nil || !strings.Contains(err.Error(), "each address is read-only") {
		t.Errorf("no primary: %v", err)
	}
	m.server.Query(t, "SET GLOBAL read_only = 0")
}

// TestOldSessionsHoldAPassword if they are idle since before the next version.
func TestOldSessionsHoldAPassword(t *testing.T) {
	m := mariaDB(t)
	m.create(t, shopUser, "%")
	o, first := m.overlap(), m.version(shopUser, 1)
	applied(t, o, first)
	s := m.session(t, first)
	proctest.Eventually(t, "a session that is idle for two seconds", func() bool {
		return m.server.Query(t, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE TIME >= 2 AND USER = "+quoteMySQL(shopUser))[0] == "1"
	})
	second := m.version(shopUser, 2)
	applied(t, o, second)
	m.session(t, second)
	uses, err := o.InUse(t.Context(), first)
	if good(t, err); len(uses) != 1 {
		t.Errorf("%q use the old password", uses)
	}
	o.EndSessions = true
	good(t, o.Revoke(t.Context(), first))
	if _, err := s.query(t.Context(), "SELECT 1"); err == nil {
		t.Error("the session did not end")
	}
}
