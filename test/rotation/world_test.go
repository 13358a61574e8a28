package rotation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

const set = "shop/db"

// shop is a set with the logins of a database, and what rotates it.
type shop struct {
	*conjurdtest.Server
	settest.Operator
	t      *testing.T
	db     *pgtest.Server
	name   string // begins the names of its roles
	users  []string
	reader *conjur.Client
	logins served
}

// served is the server of a shop's logins.
type served interface {
	// address returns host:port.
	address() string
	actuator(client *conjur.Client, address string) login
	// logIn logs in as an application does, and uses the server.
	logIn(username, password string) error
	// left returns the logins that work, or an error. In an idle set, that is one.
	left() []string
}

// login is an actuator of logins.
type login interface {
	actuators.Actuator
	actuators.Preparer
}

var shops atomic.Int64

func newShop(t *testing.T) *shop { return newShopOf(t, postgres) }

// newShopOf returns one whose database is db.
func newShopOf(t *testing.T, db *pgtest.Server, options ...conjurdtest.Option) *shop {
	t.Helper()
	s := &shop{Server: conjurdtest.Start(t, options...), t: t, db: db, name: fmt.Sprintf("shop%d", shops.Add(1))}
	s.users, s.logins = []string{s.name + "_a", s.name + "_b"}, inPostgres{s}
	s.Policy(`
- !policy
  id: shop
  body:
  - !variable db
  - !variable db/control
  - !variable admin
  - !variable url
- !host rotates
- !host app
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable shop/db, !variable shop/db/control, !variable shop/url] }
- !permit { role: !host rotates, privileges: [read, execute], resource: !variable shop/admin }
- !permit { role: !host app, privileges: [read, execute], resource: !variable shop/db }
`)
	s.Set("shop/admin", fmt.Sprintf(`{"username":"%s_admin","password":"admin"}`, s.name))
	s.createRoles()
	t.Cleanup(s.dropRoles)
	s.reader = s.as("rotates", "reader")
	s.Operator = settest.Operator{T: t, Steered: rotation.Set{Conjur: s.reader, ID: set}}
	return s
}

func (s *shop) createRoles() {
	sql := fmt.Sprintf("CREATE ROLE %[1]s_owner; CREATE ROLE %[1]s_admin LOGIN CREATEROLE PASSWORD 'admin';", s.name)
	for _, user := range s.users {
		sql += fmt.Sprintf("CREATE ROLE %[2]s NOLOGIN IN ROLE %[1]s_owner; ALTER ROLE %[2]s SET role TO %[1]s_owner;", s.name, user)
	}
	s.db.Query(s.t, "postgres", sql)
}

func (s *shop) dropRoles() {
	s.db.Query(s.t, "postgres", fmt.Sprintf("DROP ROLE IF EXISTS %[1]s_a, %[1]s_b, %[1]s_admin; DROP ROLE IF EXISTS %[1]s_owner", s.name))
}

// inPostgres are the logins of a shop, in its PostgreSQL.
type inPostgres struct{ *shop }

func (s inPostgres) address() string { return s.db.Addr }

func (s inPostgres) actuator(client *conjur.Client, address string) login {
	return s.database(client, address)
}

func (s inPostgres) logIn(username, password string) error { return logIn(username, password) }

// left are the users that may log in.
func (s inPostgres) left() []string {
	s.t.Helper()
	return s.db.Query(s.t, "postgres", fmt.Sprintf("SELECT rolname FROM pg_roles WHERE rolname LIKE '%s\\_%%' AND rolname NOT LIKE '%%admin' AND rolcanlogin ORDER BY 1", s.name))
}

// as returns a client of a host, which the server knows by version.
func (s *shop) as(host, version string) *conjur.Client {
	s.t.Helper()
	client, err := s.connect(host, version)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

func (s *shop) connect(host, version string) (*conjur.Client, error) {
	return conjur.New(conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6, HTTPTimeout: 10 * time.Second, Version: version,
		Authenticator: authn.APIKey{Login: "host/" + host, Key: secret.New([]byte(s.HostKey(host)))},
	})
}

// database is the actuator, at an address.
func (s *shop) database(client *conjur.Client, address string) *actuators.Turns {
	return &actuators.Turns{Set: set, Users: s.users, Server: &actuators.PostgreSQL{
		Addresses: []string{address + "/postgres"}, Plain: true,
		Admin: func(ctx context.Context) (secret.Value, error) {
			values := client.Variable(ctx, "shop/admin", "")
			if value, ok := values.Found["shop/admin"]; ok {
				return value, nil
			}
			return secret.Value{}, fmt.Errorf("the administrator's login: %w", values.Err)
		},
	}}
}

// rotator rotates the set without any wait but for its consumers, or as it is
// adjusted.
func (s *shop) rotator(client *conjur.Client, actuator actuators.Actuator, consumers rotation.Consumers, adjust ...func(*rotation.Config)) *rotation.Rotator {
	s.t.Helper()
	values, err := variables.New(client, variables.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	config := rotation.Config{
		Conjur: client, Changes: values, Owner: "us", Interval: 20 * time.Millisecond, Timeout: 30 * time.Second,
		Retry: 10 * time.Millisecond, Watch: time.Nanosecond, Log: zap.NewNop(),
		Sets: []rotation.Plan{{
			ID: set, Generate: generate.Config{Password: &generate.Password{}}, Actuator: actuator, Outside: "postgresql", Consumers: consumers,
			Policy: versions.Policy{GiveUp: time.Hour},
		}},
	}
	for _, adjust := range adjust {
		adjust(&config)
	}
	return rotation.New(config)
}

// begun returns the engine's client, the database and the primary of a set that has
// its first version. No engine runs.
func (s *shop) begun(t *testing.T) (*conjur.Client, *actuators.Turns, versions.Version) {
	t.Helper()
	client := s.as("rotates", "engine")
	database := s.database(client, s.db.Addr)
	stop := run(t, s.rotator(client, database, nil))
	defer stop()
	return client, database, s.Idle("")
}

// run runs an engine until the test, or stop, ends it.
func run(t *testing.T, r *rotation.Rotator) (stop func()) { return proctest.Running(t, r.Run) }

// at returns the set as it was at one of its values.
func (s *shop) at(ctx context.Context, n uint64) *versions.Document {
	value, reading := s.reader.VariableAt(ctx, set, n)
	doc, err := versions.Parse(value.Bytes())
	if err := errors.Join(reading.Err, err); err != nil {
		s.t.Error(err)
		return versions.New("us")
	}
	return doc
}
