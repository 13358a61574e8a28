package actuators

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/secretsync/syncer/pkg/secret"
)

// PostgreSQL is a [Server] whose users are database roles. The role's comment holds the
// mark. The fields up to Admin are set.
type PostgreSQL struct {
	// Addresses are host:port/database each. A host that starts with a slash is the
	// folder of a socket. Every address must accept a login. Changes go to the address
	// that is not a standby.
	Addresses []string
	// Admin returns the administrator's login, {"username":…,"password":…}. The role
	// needs CREATEROLE and, from PostgreSQL 16 on, the ADMIN option for each user.
	Admin func(context.Context) (secret.Value, error)

	// Poolers are PgBouncers, host:port each. A client that is logged in there uses its
	// login, with or without a session in the database. The administrator is one of their
	// stats_users.
	Poolers []string

	CA    string // file with the trusted authorities; "": the system's
	Plain bool   // without TLS
}

// admit sets the password of a role and allows it to log in. Syncer sends a verifier, so
// that no log of the database contains the password.
func (p *PostgreSQL) admit(ctx context.Context, role string, password []byte, next func(mark) (mark, error)) error {
	options := "LOGIN"
	if password != nil {
		text, err := verifier(password)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		options += " PASSWORD " + literal(text)
	}
	err := p.change(ctx, role, options, next)
	if code(err) == undefinedObject {
		return fmt.Errorf("%w; create it: CREATE ROLE %s", err, identifier(role))
	}
	return err
}

func (p *PostgreSQL) refuse(ctx context.Context, role string, next func(mark) (mark, error)) error {
	err := p.change(ctx, role, "NOLOGIN", next)
	if code(err) == undefinedObject {
		return errStands
	}
	return err
}

// verify logs in at every address and requires SCRAM. If the server asks for no password,
// a login proves nothing.
func (p *PostgreSQL) verify(ctx context.Context, role string, password []byte) error {
	return logIn(func(ctx context.Context, role string, password []byte, address string) error {
		return p.logIn(ctx, login{Username: role, Password: password}, address)
	}).atEach(ctx, p.Addresses, role, password)
}

func (p *PostgreSQL) logIn(ctx context.Context, l login, address string) error {
	conn, err := p.open(ctx, l, address)
	switch code(err) {
	case "":
	case invalidPassword, invalidAuthorization, insufficientPrivilege:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// uses returns the sessions of role at every address, and its logins at every pooler. A
// pooler ends the sessions of a client that is idle, while the client stays logged in.
func (p *PostgreSQL) uses(ctx context.Context, role string) ([]string, error) {
	found, err := p.sessions(ctx, role)
	if err != nil || len(p.Poolers) == 0 {
		return found, err
	}
	admin, err := adminLogin(ctx, p.Admin)
	if err != nil {
		return nil, err
	}
	defer clear(admin.Password)
	for _, address := range p.Poolers {
		clients, err := p.pooled(ctx, admin, role, address)
		if err != nil {
			return nil, err
		}
		found = append(found, clients...)
	}
	return found, nil
}

// pooled returns the logins of role at one PgBouncer. Where a pool has a fixed user, the
// clients have other names, and only the pool shows the role.
func (p *PostgreSQL) pooled(ctx context.Context, admin login, role, address string) (found []string, err error) {
	admin.privileged = false // the console is not a database, and refuses other settings
	conn, err := p.open(ctx, admin, address+"/pgbouncer")
	if err != nil {
		return nil, fmt.Errorf("the pooler %s, whose auth_file and stats_users need the administrator: %w", address, err)
	}
	defer conn.Close(ctx)
	clients, err := show(ctx, conn, "CLIENTS")
	if err != nil {
		return nil, fmt.Errorf("the pooler %s: %w", address, err)
	}
	pools, err := show(ctx, conn, "POOLS")
	if err != nil {
		return nil, fmt.Errorf("the pooler %s: %w", address, err)
	}
	for _, client := range clients {
		if client["user"] == role {
			found = append(found, fmt.Sprintf("a client of %s at the pooler %s from %q (%q)", role, address, client["addr"], client["application_name"]))
		}
	}
	for _, pool := range pools {
		if pool["user"] != role {
			continue
		}
		for column, count := range pool {
			if strings.HasPrefix(column, "cl_") && count != "0" {
				found = append(found, fmt.Sprintf("a pool of %s at the pooler %s, with the database %q and %s = %s", role, address, pool["database"], column, count))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// show returns the rows of a list of PgBouncer's console by the names of their columns,
// whose places differ between versions.
func show(ctx context.Context, conn *pgconn.PgConn, list string) (rows []map[string]string, err error) {
	results, err := conn.Exec(ctx, "SHOW "+list).ReadAll()
	if err != nil {
		return nil, advise(err)
	}
	if len(results) != 1 || !slices.ContainsFunc(results[0].FieldDescriptions, func(f pgconn.FieldDescription) bool { return f.Name == "user" }) {
		return nil, fmt.Errorf("SHOW %s lists no users; name the address of a PgBouncer", list)
	}
	for _, row := range results[0].Rows {
		named := map[string]string{}
		for i, f := range results[0].FieldDescriptions {
			named[f.Name] = string(row[i])
		}
		rows = append(rows, named)
	}
	return rows, nil
}
