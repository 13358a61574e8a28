package actuators

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// rights are the privileges that the database reports for the administrator and the
// users.
type rights struct {
	admin                         string
	version                       int // as server_version_num: 150019
	superuser, createRole, signal bool
	users                         []roleRights
}

type roleRights struct {
	name             string
	exists           bool
	superuser, admin bool   // admin: the administrator may grant the role
	role             string // the role in which its sessions start; "": its own
	member           bool   // of that role
}

func (*PostgreSQL) statements(users []string, endSessions bool) []string {
	all := []string{"CREATE ROLE owner; -- owns the tables, has no login"}
	var names []string
	for _, user := range users {
		names = append(names, identifier(user))
		all = append(all, fmt.Sprintf("CREATE ROLE %[1]s NOLOGIN IN ROLE owner; ALTER ROLE %[1]s SET role TO owner;", identifier(user)))
	}
	all = append(all, "CREATE ROLE syncer LOGIN CREATEROLE PASSWORD '…';",
		"GRANT "+strings.Join(names, ", ")+" TO syncer WITH ADMIN OPTION; -- needed from PostgreSQL 16 on")
	if endSessions {
		all = append(all, "GRANT pg_signal_backend TO syncer;")
	}
	return all
}

// findObstacles finds missing rights, users that could not use each other's tables, and addresses
// that accept a wrong password.
func (p *PostgreSQL) findObstacles(ctx context.Context, users []string, endSessions bool) (problems []error) {
	for _, address := range p.Addresses {
		for _, name := range users {
			err := p.guess(ctx, name, address)
			if err != nil {
				problems = append(problems, err)
			}
			if unreachable(err) || code(err) == protocolViolation {
				break // for the other users it would report the same
			}
		}
	}
	if len(problems) == 0 {
		if _, err := p.uses(ctx, users[0]); err != nil {
			problems = append(problems, err)
		}
	}
	conn, err := p.primary(ctx)
	if err != nil {
		return append(problems, err)
	}
	defer conn.Close(ctx)
	r, err := p.rights(ctx, conn, users)
	if err != nil {
		return append(problems, err)
	}
	return append(problems, r.missing(endSessions)...)
}

// guess tries a wrong password. It sends the settings of an administrator, which a pooler
// refuses before it looks at the login.
func (p *PostgreSQL) guess(ctx context.Context, name, address string) error {
	err := p.logIn(ctx, login{Username: name, Password: []byte("not the password"), privileged: true}, address)
	switch {
	case code(err) == invalidPassword:
		return nil
	case unreachable(err):
		return err
	case code(err) == protocolViolation:
		return fmt.Errorf("%s: %w", address, err)
	}
	return fmt.Errorf("%s does not refuse %s with a wrong password as it should; if its pg_hba.conf says trust, put scram-sha-256 there: %w", address, name, err)
}

// unreachable reports whether a connection failed before the login, such as in TLS.
func unreachable(err error) bool {
	var failed net.Error
	var distrusted *tls.CertificateVerificationError
	return errors.As(err, &failed) || errors.As(err, &distrusted) || refusesTLS(err)
}

func (p *PostgreSQL) rights(ctx context.Context, conn *pgconn.PgConn, users []string) (r rights, err error) {
	rows, err := query(ctx, conn, "SELECT current_user, pg_catalog.current_setting('server_version_num'), rolsuper, rolcreaterole, pg_catalog.pg_has_role('pg_signal_backend', 'MEMBER') FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user")
	if err != nil {
		return r, err
	}
	yes := func(text string) bool { return text == "t" }
	for _, row := range rows {
		version, err := strconv.Atoi(row[1])
		if err != nil {
			return r, errors.New("the server's version is not a number")
		}
		r = rights{admin: row[0], version: version, superuser: yes(row[2]), createRole: yes(row[3]), signal: yes(row[4])}
	}
	for _, name := range users {
		u := roleRights{name: name}
		rows, err := query(ctx, conn, `SELECT r.rolsuper, pg_catalog.pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION'), coalesce(o.rolname, ''), coalesce(pg_catalog.pg_has_role(r.oid, o.oid, 'MEMBER'), false)
			FROM pg_catalog.pg_roles r LEFT JOIN LATERAL (
				SELECT pg_catalog.substr(c, 6) AS name FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) c
				WHERE s.setrole OPERATOR(pg_catalog.=) r.oid AND pg_catalog.starts_with(c, 'role=') AND s.setdatabase OPERATOR(pg_catalog.=) ANY (
					ARRAY[0::pg_catalog.oid, (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())])
				ORDER BY s.setdatabase DESC LIMIT 1
			) s ON true LEFT JOIN pg_catalog.pg_roles o ON o.rolname OPERATOR(pg_catalog.=) s.name::pg_catalog.name WHERE r.rolname OPERATOR(pg_catalog.=) `+literal(name))
		if err != nil {
			return r, err
		}
		for _, row := range rows {
			u.exists, u.superuser, u.admin, u.role, u.member = true, yes(row[0]), yes(row[1]), row[2], yes(row[3])
		}
		r.users = append(r.users, u)
	}
	return r, nil
}

// missing returns the missing grants, as SQL where SQL is sufficient.
func (r rights) missing(endSessions bool) (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	admin := identifier(r.admin)
	if !r.superuser && !r.createRole {
		wrong("%s may not change roles: ALTER ROLE %s CREATEROLE", r.admin, admin)
	}
	if !r.superuser && !r.signal && endSessions {
		wrong("%s may not end sessions: GRANT pg_signal_backend TO %s", r.admin, admin)
	}
	owner := ""
	for _, u := range r.users {
		if owner == "" {
			owner = u.role
		}
	}
	for _, u := range r.users {
		name := identifier(u.name)
		switch {
		case !u.exists:
			wrong("there is no user %s: CREATE ROLE %s", u.name, name)
			continue
		case u.superuser && !r.superuser:
			wrong("%s is a superuser, whom %s may not change: ALTER ROLE %s NOSUPERUSER", u.name, r.admin, name)
		case r.version >= 160000 && !r.superuser && !u.admin:
			wrong("%s may not change %s: GRANT %s TO %s WITH ADMIN OPTION", r.admin, u.name, name, admin)
		}
		switch {
		case owner == "":
			wrong("what %s makes is closed to the other users: GRANT OWNER TO %s; ALTER ROLE %s SET role TO OWNER, where OWNER is a role without login that owns the tables", u.name, name, name)
		case u.role != owner:
			wrong("what %s makes does not belong to %s: GRANT %s TO %s; ALTER ROLE %s SET role TO %s", u.name, owner, identifier(owner), name, name, identifier(owner))
		case !u.member:
			wrong("%s is no member of %s: GRANT %s TO %s", u.name, owner, identifier(owner), name)
		}
	}
	return problems
}
