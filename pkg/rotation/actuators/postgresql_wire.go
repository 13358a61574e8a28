package actuators

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/pkg/secret"
)

// SQLSTATEs that count as a known outcome.
const (
	invalidPassword       = "28P01"
	invalidAuthorization  = "28000"
	insufficientPrivilege = "42501"
	undefinedObject       = "42704"
	protocolViolation     = "08P01" // the code of a pooler that refuses
	invalidParameter      = "22023" // the code of password-check modules
)

func code(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// login is a username and its password. The caller clears the password after use.
type login struct {
	Username string
	Password text

	privileged bool // of the administrator
}

// text is a JSON string whose bytes can be cleared.
type text []byte

// UnmarshalText copies its argument.
func (t *text) UnmarshalText(b []byte) error {
	*t = bytes.Clone(b)
	return nil
}

// open logs in at one address. It is the only function that does, so every connection has
// the same guards. The driver takes the password as a string. The string shares bytes of
// the login, which the caller clears.
func (p *PostgreSQL) open(ctx context.Context, l login, address string) (*pgconn.PgConn, error) {
	config, err := p.config(l, address)
	if err != nil {
		return nil, err
	}
	config.Password = unsafe.String(unsafe.SliceData(l.Password), len(l.Password))
	defer func() { config.Password = "" }()
	conn, err := pgconn.ConnectConfig(ctx, config)
	return conn, advise(err)
}

// fixed are the settings of an administrator's session. The start-up packet precedes what
// the owner of the database and the role itself can set by ALTER DATABASE and ALTER ROLE.
// Otherwise that owner chooses which functions a name means, and they run with the
// administrator's rights. Settings that only a superuser can change are not among them, nor those that only delay
// or refuse, or that a transaction sets itself. No event trigger sees a change of a role.
var fixed = map[string]string{
	"search_path":                   "pg_catalog, pg_temp",
	"role":                          "none",
	"local_preload_libraries":       "",
	"default_transaction_read_only": "off",
	"statement_timeout":             "0", // the context limits each call
	"standard_conforming_strings":   "on",
	"DateStyle":                     "ISO, MDY", // so that equal times are equal texts
	"TimeZone":                      "UTC",
	"row_security":                  "on",
}

// checkFixed returns an error unless the session has the fixed settings. SHOW looks no name
// up.
func checkFixed(ctx context.Context, conn *pgconn.PgConn) error {
	names := slices.Sorted(maps.Keys(fixed))
	results, err := conn.Exec(ctx, "SHOW "+strings.Join(names, "; SHOW ")).ReadAll()
	if err != nil {
		return advise(err)
	}
	for i, name := range names {
		if i >= len(results) || len(results[i].Rows) != 1 || string(results[i].Rows[0][0]) != fixed[name] {
			return fmt.Errorf("the session of the administrator does not have the setting %s = %q that Syncer sent; something between Syncer and the database, such as a connection pooler, changes it", name, fixed[name])
		}
	}
	rows, err := query(ctx, conn, "SELECT pg_catalog.pg_backend_pid()")
	if err == nil && (len(rows) != 1 || rows[0][0] != strconv.FormatUint(uint64(conn.PID()), 10)) {
		err = errPooled
	}
	return err
}

// errPooled means that the next statement may run in another session, whose settings are
// unknown.
var errPooled = errors.New("a connection pooler answers here; " + namePooler)

// change alters a role in one transaction. next computes the new mark from the role's
// present mark. An error of next rolls back the transaction and is returned.
//
// The role is altered first. From then on nobody else can change it, so the comment that
// is read next is still true at the end. A concurrent change of the role, from any
// database, waits and then fails.
func (p *PostgreSQL) change(ctx context.Context, role, options string, next func(mark) (mark, error)) error {
	conn, err := p.primary(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // rolls back an incomplete transaction
	// The timeouts release the role if the controller is suspended during the
	// transaction.
	const begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL lock_timeout = '10s'"
	rows, err := query(ctx, conn, fmt.Sprintf("%s; ALTER ROLE %s %s; SELECT coalesce(pg_catalog.shobj_description(oid, 'pg_authid'), '') FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) %s",
		begin, identifier(role), options, literal(role)))
	switch {
	case code(err) == invalidParameter, code(err) == invalidPassword:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		return err
	case len(rows) != 1:
		return errors.New("it does not exist; create it")
	}
	comment := rows[0][0]
	is, err := next(readMark(comment))
	if err != nil {
		return err
	}
	if _, err = query(ctx, conn, fmt.Sprintf("COMMENT ON ROLE %s IS %s", identifier(role), literal(is.in(comment)))); err == nil {
		_, err = query(ctx, conn, "COMMIT")
	}
	return err
}

func (p *PostgreSQL) marks(ctx context.Context, users []string) (map[string]mark, error) {
	conn, err := p.primary(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	names := make([]string, len(users))
	for i, name := range users {
		names[i] = literal(name)
	}
	rows, err := query(ctx, conn, "SELECT rolname, coalesce(pg_catalog.shobj_description(oid, 'pg_authid'), '') FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) ANY (ARRAY["+strings.Join(names, ", ")+"]::pg_catalog.name[])")
	marks := map[string]mark{}
	for _, row := range rows {
		marks[row[0]] = readMark(row[1])
	}
	return marks, err
}

// sessions returns the sessions of role at every address.
func (p *PostgreSQL) sessions(ctx context.Context, role string) (found []string, err error) {
	err = p.atEach(ctx, func(address string, conn *pgconn.PgConn) error {
		rows, err := query(ctx, conn, "SELECT pg_catalog.count(*), coalesce(pg_catalog.host(client_addr), ''), coalesce(application_name, '') FROM pg_catalog.pg_stat_activity WHERE usename OPERATOR(pg_catalog.=) "+literal(role)+" GROUP BY 2, 3 ORDER BY 2, 3")
		for _, row := range rows {
			found = append(found, fmt.Sprintf("%s of %s at %s from %q (%q)", row[0], role, address, cmp.Or(row[1], "unknown"), row[2]))
		}
		return err
	})
	return found, err
}

func (p *PostgreSQL) endSessions(ctx context.Context, role string) error {
	return p.atEach(ctx, func(_ string, conn *pgconn.PgConn) error {
		_, err := query(ctx, conn, "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usename OPERATOR(pg_catalog.=) "+literal(role))
		return err
	})
}

// atEach calls do with a connection of the administrator at each address.
func (p *PostgreSQL) atEach(ctx context.Context, do func(address string, conn *pgconn.PgConn) error) error {
	admin, err := adminLogin(ctx, p.Admin)
	if err != nil {
		return err
	}
	defer clear(admin.Password)
	for _, address := range p.Addresses {
		conn, err := p.asAdmin(ctx, admin, address)
		if err != nil {
			return err
		}
		err = do(address, conn)
		_ = conn.Close(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	return nil
}

// primary logs the administrator in at the address that is not a standby. Two primaries are
// an error, because a change of one would leave the login on the other as it was. Several
// addresses of one server are not.
func (p *PostgreSQL) primary(ctx context.Context) (found *pgconn.PgConn, err error) {
	admin, err := adminLogin(ctx, p.Admin)
	if err != nil {
		return nil, err
	}
	defer clear(admin.Password)
	var at, started string // of found
	var problems []error
	for _, address := range p.Addresses {
		conn, is, err := p.inspectServer(ctx, admin, address)
		switch {
		case err != nil:
			problems = append(problems, err)
		case is.standby, is.started == started:
			_ = conn.Close(ctx)
		case found != nil:
			_, _ = conn.Close(ctx), found.Close(ctx)
			return nil, fmt.Errorf("%s and %s are both primaries; rotate each with a separate set, or make one a standby of the other", at, address)
		default:
			found, at, started = conn, address, is.started
		}
	}
	if found == nil && len(problems) == 0 {
		return nil, fmt.Errorf("each address is a standby: %s; add the address of the primary", strings.Join(p.Addresses, ", "))
	}
	if found == nil {
		return nil, errors.Join(problems...)
	}
	return found, nil
}

// instance is what a server says of itself.
type instance struct {
	standby bool
	started string // when, in microseconds, which distinguishes servers
}

// inspectServer logs the administrator in at an address, and asks the server about its
// role.
func (p *PostgreSQL) inspectServer(ctx context.Context, admin login, address string) (conn *pgconn.PgConn, is instance, err error) {
	if conn, err = p.asAdmin(ctx, admin, address); err != nil || len(p.Addresses) == 1 {
		return conn, instance{started: "the only one"}, err
	}
	rows, err := query(ctx, conn, "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_postmaster_start_time()")
	if err != nil || len(rows) != 1 {
		_ = conn.Close(ctx)
		return nil, is, fmt.Errorf("%s: it is not known whether it is a standby: %w", address, cmp.Or(err, errors.New("no answer")))
	}
	return conn, instance{rows[0][0] == "t", rows[0][1]}, nil
}

// adminLogin reads the administrator's login. The caller clears its password.
func adminLogin(ctx context.Context, read func(context.Context) (secret.Value, error)) (admin login, err error) {
	value, err := read(ctx)
	if err != nil {
		return admin, fmt.Errorf("the administrator's login: %w", err)
	}
	defer value.Wipe()
	if json.Unmarshal(value.Bytes(), &admin) != nil || admin.Username == "" {
		clear(admin.Password)
		return login{}, errors.New(`the administrator's login is not {"username":"…","password":"…"}; set it so`)
	}
	admin.privileged = true
	return admin, nil
}

// asAdmin logs the administrator in at an address, in a session that nobody less
// privileged has arranged.
func (p *PostgreSQL) asAdmin(ctx context.Context, admin login, address string) (*pgconn.PgConn, error) {
	conn, err := p.open(ctx, admin, address)
	if err != nil {
		return nil, err
	}
	if err := checkFixed(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return conn, nil
}

// config returns the login settings for one address. It sets every option that could
// otherwise come from the environment or the home folder.
func (p *PostgreSQL) config(l login, address string) (*pgconn.Config, error) {
	at := strings.LastIndex(address, "/")
	host, port, err := net.SplitHostPort(address[:max(at, 0)])
	if err != nil || host == "" || at+1 == len(address) {
		return nil, fmt.Errorf("%s is not host:port/database; set it so", brief.Address(address))
	}
	mode, ca := "verify-full", cmp.Or(p.CA, "system")
	if p.Plain || strings.HasPrefix(host, "/") {
		mode, ca = "disable", ""
	}
	if mode != "disable" && p.CA != "" {
		if _, err := certs.ReadRoots(p.CA); err != nil {
			return nil, fmt.Errorf("the set's ca: %w", err)
		}
	}
	settings := ""
	for _, s := range [][2]string{
		{"host", host}, {"port", port}, {"dbname", address[at+1:]}, {"user", l.Username}, {"sslmode", mode}, {"sslrootcert", ca},
		{"sslcert", ""}, {"sslkey", ""}, {"passfile", ""}, {"target_session_attrs", "any"}, {"connect_timeout", "10"}, {"sslnegotiation", ""},
		{"require_auth", "scram-sha-256"}, {"channel_binding", "prefer"},
	} {
		settings += s[0] + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s[1]) + "' "
	}
	config, err := pgconn.ParseConfig(settings)
	if err != nil {
		return nil, fmt.Errorf("the database %s: %w", address, err)
	}
	config.RuntimeParams = map[string]string{"application_name": "syncer", "client_encoding": "UTF8"}
	if l.privileged { // a user's session runs nothing, and a pooler refuses other settings
		maps.Copy(config.RuntimeParams, fixed)
	}
	return config, nil
}

// query runs statements and returns the rows of the last one.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) (rows [][]string, err error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, advise(err)
	}
	for _, row := range results[len(results)-1].Rows {
		texts := make([]string, len(row))
		for i, column := range row {
			texts[i] = string(column)
		}
		rows = append(rows, texts)
	}
	return rows, nil
}

// identifier quotes a name for SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a text for SQL, whatever the value of standard_conforming_strings.
func literal(text string) string {
	return `E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + `'`
}

// verifier returns the value that PostgreSQL stores for a password, in PostgreSQL's form
// of RFC 5803. Nobody can log in with the verifier. The database stores a value of this
// form unchanged, whatever the value of password_encryption.
func verifier(password []byte) (string, error) {
	const rounds = 4096 // as PostgreSQL's own default
	for _, c := range password {
		if c < ' ' || c > '~' {
			return "", errors.New("the password has a character that is not printable ASCII, which clients may encode otherwise; generate another one")
		}
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, string(password), salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(keyed(salted, "Server Key"))), nil
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
