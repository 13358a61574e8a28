package actuators

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"unsafe"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// SQLSTATEs that count as a known outcome.
const (
	invalidPassword       = "28P01"
	invalidAuthorization  = "28000"
	insufficientPrivilege = "42501"
	undefinedObject       = "42704"
	invalidParameter      = "22023" // the code of password-check modules
)

func code(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// login is a username and its password. The password is cleared after use.
type login struct {
	Username string
	Password text
}

// text is a JSON string whose bytes can be cleared.
type text []byte

// UnmarshalText copies its argument.
func (t *text) UnmarshalText(b []byte) error {
	*t = bytes.Clone(b)
	return nil
}

// connect logs in. The driver takes the password as a string. The string shares bytes
// that Syncer owns and clears after the server has answered.
func (l login) connect(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	config.Password = unsafe.String(unsafe.SliceData(l.Password), len(l.Password))
	defer func() {
		config.Password = ""
		clear(l.Password)
	}()
	conn, err := pgconn.ConnectConfig(ctx, config)
	return conn, advise(err)
}

// change alters a role in one transaction. next computes the new mark from the role's
// present mark. An error of next rolls back the transaction and is returned.
//
// The role is altered first. From then on nobody else can change it, so the comment that
// is read next is still true at the end. A concurrent change of the role, from any
// database, waits and then fails.
func (p *PostgreSQL) change(ctx context.Context, v versions.Version, options string, next func(mark) (mark, error)) error {
	ctx, cancel := within(ctx, p.Timeout)
	defer cancel()
	role := user(v)
	conn, err := p.asAdmin(ctx, p.Addresses...)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // rolls back an incomplete transaction
	// The timeouts release the role if the controller is suspended during the
	// transaction.
	const begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL lock_timeout = '10s'"
	rows, err := query(ctx, conn, fmt.Sprintf("%s; ALTER ROLE %s %s; SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = %s",
		begin, identifier(role), options, literal(role)))
	switch {
	case code(err) == invalidParameter, code(err) == invalidPassword:
		return fmt.Errorf("role %s: %w: %w", role, ErrRefused, err)
	case err != nil:
		return fmt.Errorf("role %s: %w", role, err)
	case len(rows) != 1:
		return fmt.Errorf("role %s does not exist; create it", role)
	}
	comment := rows[0][0]
	is, err := next(readMark(comment))
	if err != nil {
		return fmt.Errorf("role %s: %w", role, err)
	}
	is = is.of(p.Set, setOf(v))
	if _, err = query(ctx, conn, fmt.Sprintf("COMMENT ON ROLE %s IS %s", identifier(role), literal(is.in(comment)))); err == nil {
		_, err = query(ctx, conn, "COMMIT")
	}
	if err != nil {
		return fmt.Errorf("role %s: %w", role, err)
	}
	return nil
}

// marks returns the marks of all users that exist.
func (p *PostgreSQL) marks(ctx context.Context) (map[string]mark, error) {
	ctx, cancel := within(ctx, p.Timeout)
	defer cancel()
	conn, err := p.asAdmin(ctx, p.Addresses...)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	return p.readMarks(ctx, conn)
}

func (p *PostgreSQL) readMarks(ctx context.Context, conn *pgconn.PgConn) (map[string]mark, error) {
	names := make([]string, len(p.Users))
	for i, name := range p.Users {
		names[i] = literal(name)
	}
	rows, err := query(ctx, conn, "SELECT rolname, coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname IN ("+strings.Join(names, ", ")+")")
	marks := map[string]mark{}
	for _, row := range rows {
		marks[row[0]] = readMark(row[1])
	}
	return marks, err
}

// Barred returns, for each user that the set may not change, the owner of the user.
func (p *PostgreSQL) Barred(ctx context.Context, doc *versions.Document) []error {
	marks, err := p.marks(ctx)
	if err != nil {
		return []error{err}
	}
	return p.barred(marks, doc)
}

func (p *PostgreSQL) barred(marks map[string]mark, doc *versions.Document) (problems []error) {
	for _, name := range p.Users {
		if err := marks[name].barred(p.Set, doc); err != nil {
			problems = append(problems, fmt.Errorf("role %s: %w", name, err))
		}
	}
	return problems
}

// sessions returns the sessions of role at every address.
func (p *PostgreSQL) sessions(ctx context.Context, role string) (found []string, err error) {
	err = p.atEach(ctx, func(address string, conn *pgconn.PgConn) error {
		rows, err := query(ctx, conn, "SELECT count(*), coalesce(host(client_addr), ''), coalesce(application_name, '') FROM pg_stat_activity WHERE usename = "+literal(role)+" GROUP BY 2, 3 ORDER BY 2, 3")
		for _, row := range rows {
			found = append(found, fmt.Sprintf("%s of %s at %s from %q (%q)", row[0], role, address, cmp.Or(row[1], "unknown"), row[2]))
		}
		return err
	})
	return found, err
}

func (p *PostgreSQL) endSessions(ctx context.Context, role string) error {
	return p.atEach(ctx, func(_ string, conn *pgconn.PgConn) error {
		_, err := query(ctx, conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+literal(role))
		return err
	})
}

// atEach calls do with a connection of the administrator at each address.
func (p *PostgreSQL) atEach(ctx context.Context, do func(address string, conn *pgconn.PgConn) error) error {
	for _, address := range p.Addresses {
		conn, err := p.asAdmin(ctx, address)
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

// asAdmin logs the administrator in. If there are several addresses, it uses the one that
// is not a standby.
func (p *PostgreSQL) asAdmin(ctx context.Context, addresses ...string) (*pgconn.PgConn, error) {
	value, err := p.Admin(ctx)
	if err != nil {
		return nil, fmt.Errorf("the administrator's login: %w", err)
	}
	defer value.Wipe()
	var admin login
	if json.Unmarshal(value.Bytes(), &admin) != nil || admin.Username == "" {
		clear(admin.Password)
		return nil, errors.New(`the administrator's login is not {"username":"…","password":"…"}; set it so`)
	}
	config, err := p.config(admin, addresses[0])
	if err != nil {
		return nil, err
	}
	for _, address := range addresses[1:] {
		other, err := p.config(admin, address)
		if err != nil {
			return nil, err
		}
		config.Fallbacks = append(config.Fallbacks, &pgconn.FallbackConfig{Host: other.Host, Port: other.Port, TLSConfig: other.TLSConfig})
	}
	if len(addresses) > 1 {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return admin.connect(ctx, config)
}

// config returns the login settings for one address. It sets every option that could
// otherwise come from the environment or the home folder.
func (p *PostgreSQL) config(l login, address string) (*pgconn.Config, error) {
	at := strings.LastIndex(address, "/")
	host, port, err := net.SplitHostPort(address[:max(at, 0)])
	if err != nil || host == "" || at+1 == len(address) {
		return nil, fmt.Errorf("the address %q is not host:port/database; set it so", address)
	}
	mode, ca := "verify-full", cmp.Or(p.CA, "system")
	if p.Plain || strings.HasPrefix(host, "/") {
		mode, ca = "disable", ""
	}
	settings := ""
	for _, s := range [][2]string{
		{"host", host}, {"port", port}, {"dbname", address[at+1:]}, {"user", l.Username}, {"sslmode", mode}, {"sslrootcert", ca},
		{"sslcert", ""}, {"sslkey", ""}, {"passfile", ""}, {"target_session_attrs", "any"}, {"connect_timeout", "10"}, {"sslnegotiation", ""},
		{"require_auth", ""}, {"channel_binding", "prefer"},
	} {
		settings += s[0] + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s[1]) + "' "
	}
	config, err := pgconn.ParseConfig(settings)
	if err != nil {
		return nil, fmt.Errorf("the database %s: %w", address, err)
	}
	config.RuntimeParams = map[string]string{"application_name": "syncer", "client_encoding": "UTF8"}
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
