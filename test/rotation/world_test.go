package rotation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
)

const set = "shop/db"

// shop is a set with the logins of a database, and what rotates it.
type shop struct {
	*conjurdtest.Server
	t      *testing.T
	db     *pgtest.Server
	name   string // begins the names of its roles
	users  []string
	reader *conjur.Client
}

var shops atomic.Int64

func newShop(t *testing.T) *shop { return newShopOf(t, postgres) }

// newShopOf returns one whose database is db.
func newShopOf(t *testing.T, db *pgtest.Server, options ...conjurdtest.Option) *shop {
	t.Helper()
	s := &shop{Server: conjurdtest.Start(t, options...), t: t, db: db, name: fmt.Sprintf("shop%d", shops.Add(1))}
	s.users = []string{s.name + "_a", s.name + "_b"}
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

// logins are the users that may log in, with what their comments say.
func (s *shop) logins() []string {
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
func (s *shop) database(client *conjur.Client, address string) *actuators.PostgreSQL {
	return &actuators.PostgreSQL{
		Set: set, Addresses: []string{address + "/postgres"}, Users: s.users, Plain: true,
		Admin: func(ctx context.Context) (secret.Value, error) {
			values := client.Variable(ctx, "shop/admin", "")
			if value, ok := values.Found["shop/admin"]; ok {
				return value, nil
			}
			return secret.Value{}, fmt.Errorf("the administrator's login: %w", values.Err)
		},
	}
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
func (s *shop) begun(t *testing.T) (*conjur.Client, *actuators.PostgreSQL, versions.Version) {
	t.Helper()
	client := s.as("rotates", "engine")
	database := s.database(client, s.db.Addr)
	stop := run(t, s.rotator(client, database, nil))
	defer stop()
	return client, database, s.idle("")
}

// run runs an engine until the test, or stop, ends it.
func run(t *testing.T, r *rotation.Rotator) (stop func()) { return proctest.Running(t, r.Run) }

// doc returns the set as it is; an empty one that has not begun.
func (s *shop) doc() *versions.Document {
	s.t.Helper()
	held, err := rotation.Set{Conjur: s.reader, ID: set}.Read(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if held.Document == nil {
		return versions.New("us")
	}
	return held.Document
}

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

// look returns the primary, and whether the set is idle.
func (s *shop) look(ctx context.Context) (primary string, idle bool, err error) {
	held, err := rotation.Set{Conjur: s.reader, ID: set}.Read(ctx)
	if err != nil || held.Document == nil {
		return "", false, err
	}
	v, ok := held.Primary()
	return v.ID, ok && held.Stage() == "idle", nil
}

// steer asks for a new version, once the command before was answered.
func (s *shop) steer(ctx context.Context) error {
	for {
		err := rotation.Set{Conjur: s.reader, ID: set}.Steer(ctx, versions.Command{Verb: "now", At: time.Now()})
		if !errors.Is(err, rotation.ErrPending) || ctx.Err() != nil {
			return err
		}
		sleep(ctx)
	}
}

// sleep is between two looks.
func sleep(ctx context.Context) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
}

// until waits until the set is as it should be.
func (s *shop) until(what string, is func(*versions.Document) bool) (doc *versions.Document) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() && doc != nil {
			s.t.Logf("the set: %s", told(doc))
		}
	}()
	proctest.Eventually(s.t, what, func() bool { doc = s.doc(); return is(doc) })
	return doc
}

func told(d *versions.Document) string {
	var text strings.Builder
	for _, v := range d.Versions {
		fmt.Fprintf(&text, "%s %s; ", v.ID, v.State)
	}
	for _, e := range d.Log {
		text.WriteString(e.What + ", ")
	}
	return text.String()
}

// idle waits until the set is idle with another primary than that, and returns
// it.
func (s *shop) idle(not string) versions.Version {
	s.t.Helper()
	doc := s.until("a set that is idle with another primary than "+strconv.Quote(not), func(d *versions.Document) bool {
		primary, ok := d.Primary()
		return ok && primary.ID != not && d.Stage() == "idle"
	})
	primary, _ := doc.Primary()
	return primary
}

// rotate has a new version made, and waits until the old one is gone.
func (s *shop) rotate() versions.Version {
	s.t.Helper()
	old, _ := s.doc().Primary()
	if err := s.steer(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return s.idle(old.ID)
}
