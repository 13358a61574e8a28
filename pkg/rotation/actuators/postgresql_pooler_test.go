package actuators

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

// fileLine is a login in the auth_file of PgBouncer.
func fileLine(name, password string) string { return fmt.Sprintf(`"%s" "%s"`, name, password) }

// pooledDatabase has names that PgBouncer's settings can contain.
func pooledDatabase(t *testing.T) (p *roles, admin string) {
	t.Helper()
	p = databaseOf(t, "pooled")
	p.CA, p.Plain = "", true // as the pooler
	return p, "pooled admin"
}

// TestAClientOfAPoolerUsesItsLogin: a program that is idle behind transaction pooling has
// no session in the database. It is logged in all the same.
func TestAClientOfAPoolerUsesItsLogin(t *testing.T) {
	for _, mode := range []string{"transaction", "session"} {
		for _, auth := range []string{"file", "query"} {
			t.Run(mode+" "+auth, func(t *testing.T) {
				p, admin := pooledDatabase(t)
				first := p.version(0, 1)
				apply(t, p, first)
				settings := fmt.Sprintf("pool_mode = %s\nstats_users = %s", mode, admin)
				logins := []string{fileLine(admin, adminPassword)}
				if auth == "file" {
					logins = append(logins, fileLine(p.Users[0], server.Query(t, "postgres", "SELECT rolpassword FROM pg_authid WHERE rolname = "+literal(p.Users[0]))[0]))
				} else {
					server.Query(t, "postgres", "CREATE ROLE asks SUPERUSER LOGIN PASSWORD 'asks'")
					t.Cleanup(func() { server.Query(t, "postgres", "DROP ROLE asks") })
					settings += "\nauth_user = asks"
					logins = append(logins, fileLine("asks", "asks"))
				}
				pooler := server.Bouncer(t, settings, logins...)
				behind := p.with(func(p *PostgreSQL) { p.Addresses = []string{pooler + "/postgres"} })
				client := behind.session(t, first)
				if _, err := query(t.Context(), client, "SELECT 1"); err != nil {
					t.Fatal(err)
				}
				if mode == "transaction" {
					proctest.Eventually(t, "the end of the session", func() bool {
						uses, err := p.InUse(t.Context(), first)
						return err == nil && len(uses) == 0
					})
				}
				p.Poolers = []string{pooler}
				if got := said(t, p); len(got) > 0 {
					t.Errorf("check says %q", got)
				}
				want := "a client of " + p.Users[0] + " at the pooler " + pooler
				if uses, err := p.InUse(t.Context(), first); err != nil || !strings.Contains(strings.Join(uses, "; "), want) {
					t.Errorf("%q use it: %v", uses, err)
				}
				if err := p.Revoke(t.Context(), first); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("revoked: %v", err)
				}
				if _, err := query(t.Context(), client, "SELECT 1"); err != nil {
					t.Errorf("the client's next query: %v", err)
				}
				good(t, client.Close(t.Context()))
				proctest.Eventually(t, "the client leaves", func() bool {
					uses, err := p.InUse(t.Context(), first)
					return err == nil && len(uses) == 0
				})
				good(t, p.Revoke(t.Context(), first))
			})
		}
	}
}

// TestAPoolWithAFixedUserUsesItsLogin: its clients log in by other names.
func TestAPoolWithAFixedUserUsesItsLogin(t *testing.T) {
	p, admin := pooledDatabase(t)
	p.Users = []string{"fixed", "pooled b"}
	server.Query(t, "postgres", "CREATE ROLE fixed; CREATE ROLE guest LOGIN PASSWORD 'guest'")
	t.Cleanup(func() { server.Query(t, "postgres", "DROP ROLE guest; DROP ROLE fixed; DROP ROLE \"pooled a\"") })
	first := p.version(0, 1)
	apply(t, p, first)
	pooler := server.Bouncer(t, "pool_mode = transaction\nstats_users = "+admin, fileLine(admin, adminPassword), fileLine("guest", "guest"),
		fileLine("fixed", string(first.Parts[password].Bytes())))
	behind := p.with(func(p *PostgreSQL) { p.Addresses = []string{pooler + "/fixed"} })
	conn, err := behind.open(t.Context(), login{Username: "guest", Password: text("guest")}, behind.Addresses[0])
	good(t, err)
	defer conn.Close(t.Context())
	if _, err := query(t.Context(), conn, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "the end of the session", func() bool {
		uses, err := p.InUse(t.Context(), first)
		return err == nil && len(uses) == 0
	})
	p.Poolers = []string{pooler}
	if uses, err := p.InUse(t.Context(), first); err != nil || len(uses) == 0 {
		t.Errorf("%q use it: %v", uses, err)
	}
}

// TestAPoolerThatCannotBeAsked keeps each user, and check names it.
func TestAPoolerThatCannotBeAsked(t *testing.T) {
	p, admin := pooledDatabase(t)
	first := p.version(0, 1)
	apply(t, p, first)
	for name, pooler := range map[string]string{
		"nobody answers":                    proctest.FreeAddress(t),
		"the database answers":              server.Addr,
		"the administrator is not in there": server.Bouncer(t, "stats_users = "+admin),
		"the administrator has no right":    server.Bouncer(t, "", fileLine(admin, adminPassword)),
		"it asks for no password":           server.Bouncer(t, "auth_type = trust\nstats_users = "+admin, fileLine(admin, adminPassword)),
	} {
		p.Poolers = []string{pooler}
		if uses, err := p.InUse(t.Context(), first); err == nil {
			t.Errorf("%s: in use by %q", name, uses)
		}
		if err := p.Revoke(t.Context(), first); err == nil {
			t.Errorf("%s: it is revoked", name)
		}
		if got := strings.Join(said(t, p), "\n"); !strings.Contains(got, "the pooler "+pooler) {
			t.Errorf("%s: check says %s", name, got)
		}
	}
	p.Poolers = nil
	good(t, p.Verify(t.Context(), first))
}

// TestAPoolerAtTheAddressIsRecognized, however it lets users in, and although it ignores
// the settings of a session.
func TestAPoolerAtTheAddressIsRecognized(t *testing.T) {
	p, admin := pooledDatabase(t)
	const ignore = "ignore_startup_parameters = search_path,role,local_preload_libraries,default_transaction_read_only,statement_timeout,row_security"
	server.Query(t, "postgres", "ALTER ROLE "+identifier(admin)+" SET search_path = pg_catalog, pg_temp")
	for name, settings := range map[string]string{
		"no parameters": "", "trust": "auth_type = trust", "MD5": "auth_type = md5", "plain": "auth_type = plain", "session": "pool_mode = session",
		"ignored": ignore, "ignored in transactions": ignore + "\npool_mode = transaction",
	} {
		p.Addresses = []string{server.Bouncer(t, settings, fileLine(admin, adminPassword), fileLine(p.Users[0], "x"), fileLine(p.Users[1], "x")) + "/postgres"}
		got := strings.Join(said(t, p), "\n")
		if !strings.Contains(got, `connection pooler`) || !strings.Contains(got, namePooler) || strings.Contains(got, "pg_hba.conf") {
			t.Errorf("%s: check says %s", name, got)
		}
		if _, err := p.Apply(t.Context(), p.version(0, 1)); err == nil || !strings.Contains(err.Error(), namePooler) {
			t.Errorf("%s: apply says %v", name, err)
		}
	}
}
