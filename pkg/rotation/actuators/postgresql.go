package actuators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Parts of a login.
const (
	username = "username"
	password = "password"
)

// PostgreSQL rotates the passwords of database roles, which take turns. Each role has one
// version at a time, in the parts "username" and "password". The role's comment holds the
// fence and names the owner of the version. The fields up to Admin are set.
type PostgreSQL struct {
	Set string // the variable's id
	// Addresses are host:port/database each. A host that starts with a slash is the
	// folder of a socket. Every address must accept a login. Changes go to the address
	// that is not a standby.
	Addresses []string
	Users     []string // two or more
	// Admin returns the administrator's login, {"username":…,"password":…}. The role
	// needs CREATEROLE and, from PostgreSQL 16 on, the ADMIN option for each user.
	Admin func(context.Context) (secret.Value, error)

	// Poolers are PgBouncers, host:port each. A client that is logged in there uses its
	// login, with or without a session in the database. The administrator is one of their
	// stats_users.
	Poolers []string

	EndSessions bool   // end the sessions of a refused user; otherwise sessions block the refusal
	CA          string // file with the trusted authorities; "": the system's
	Plain       bool   // without TLS
	// Timeout limits one transaction, a login, and the wait for ended sessions; 0 means
	// 30 s.
	Timeout time.Duration
}

// Prepare returns the username of the next user. No user may have a version of another
// set. A user that accepts no version comes first, because it is not in use.
func (p *PostgreSQL) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	marks, err := p.marks(ctx)
	if err != nil {
		return nil, err
	}
	if problems := p.barred(marks, doc); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	users := slices.SortedStableFunc(slices.Values(p.Users), func(a, b string) int {
		return cmp.Compare(inUse(marks[a]), inUse(marks[b]))
	})
	user, err := turn(doc, username, users)
	if err != nil {
		return nil, err
	}
	uses, err := p.uses(ctx, user)
	if err != nil {
		return nil, err
	}
	if len(uses) > 0 {
		return nil, fmt.Errorf("the next user %s has no version, but has open sessions: %s; end them first", user, strings.Join(uses, "; "))
	}
	return map[string]secret.Value{username: secret.New([]byte(user))}, nil
}

// Apply sets the password of the version's user and allows it to log in. Syncer sends a
// verifier, so that no log of the database contains the password.
func (p *PostgreSQL) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	text, err := verifier(v.Parts[password].Bytes())
	if err != nil {
		return nil, fmt.Errorf("version %s: %w: %w", v.ID, ErrRefused, err)
	}
	err = p.change(ctx, v, "LOGIN PASSWORD "+literal(text), func(m mark) (mark, error) {
		if err := m.barred(p.Set, setOf(v)); err != nil {
			return m, err
		}
		return m.accept(v)
	})
	if code(err) == undefinedObject {
		return nil, fmt.Errorf("%w; create it: CREATE ROLE %s", err, identifier(user(v)))
	}
	return nil, err
}

// Verify logs in at every address and requires SCRAM. If the server asks for no password,
// a login proves nothing.
func (p *PostgreSQL) Verify(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, p.Timeout)
	defer cancel()
	var problems []error
	for _, address := range p.Addresses {
		problems = append(problems, p.logIn(ctx, login{Username: user(v), Password: v.Parts[password].Bytes()}, address))
	}
	return errors.Join(problems...)
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

// Revoke forbids the version's user to log in. If the user already has a version of
// another set, the version is already refused. A session that still exists afterwards
// began at the last moment. It is ended, or the user may log in again and Revoke fails.
func (p *PostgreSQL) Revoke(ctx context.Context, v versions.Version) error {
	refuse := func(state string) error {
		return p.change(ctx, v, "NOLOGIN", func(m mark) (mark, error) {
			if m.foreign(p.Set, setOf(v)) != nil {
				return m, errStands
			}
			return m.refuse(v, state)
		})
	}
	err := refuse(revoking)
	switch {
	case code(err) == undefinedObject, errors.Is(err, errStands):
		return nil
	case err != nil:
		return err
	}
	if err := p.leave(ctx, v); err != nil {
		again := p.change(ctx, v, "LOGIN", func(m mark) (mark, error) { return m.readmit(v) })
		return errors.Join(fmt.Errorf("version %s is not revoked: %w", v.ID, err), unlessItStands(again))
	}
	return unlessItStands(refuse(revoked))
}

func unlessItStands(err error) error {
	if errors.Is(err, errStands) {
		return nil
	}
	return err
}

// leave returns when nobody is logged in, or returns an error if sessions remain.
func (p *PostgreSQL) leave(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, p.Timeout)
	defer cancel()
	if !p.EndSessions {
		uses, err := p.uses(ctx, user(v))
		if err == nil && len(uses) > 0 {
			err = errors.New(strings.Join(uses, "; "))
		}
		return err
	}
	for delays := (retry.Backoff{}).Start(); ; {
		sessions, err := p.sessions(ctx, user(v))
		switch {
		case err != nil:
			return err
		case len(sessions) == 0:
			return nil
		}
		if err := p.endSessions(ctx, user(v)); err != nil {
			return err
		}
		select {
		case <-time.After(delays.NextBackOff()):
		case <-ctx.Done():
			return fmt.Errorf("sessions do not end: %s", strings.Join(sessions, "; "))
		}
	}
}

// InUse returns the sessions and pooled clients of the version's user, unless EndSessions is set.
func (p *PostgreSQL) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	if p.EndSessions {
		return nil, nil
	}
	ctx, cancel := within(ctx, p.Timeout)
	defer cancel()
	return p.uses(ctx, user(v))
}

func user(v versions.Version) string { return string(v.Parts[username].Bytes()) }

// uses returns the sessions of role at every address, and its logins at every pooler. A
// pooler ends the sessions of a client that is idle, while the client stays logged in.
func (p *PostgreSQL) uses(ctx context.Context, role string) ([]string, error) {
	found, err := p.sessions(ctx, role)
	if err != nil || len(p.Poolers) == 0 {
		return found, err
	}
	admin, err := p.adminLogin(ctx)
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
