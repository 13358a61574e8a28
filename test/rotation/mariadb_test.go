//go:build long

package rotation

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
	"github.com/secretsync/syncer/test/proctest"
)

// inMariaDB are the logins of a shop in a MariaDB: of one user, or of two who take turns.
type inMariaDB struct {
	*shop
	server *logintest.MariaDB
	users  []string
}

// startMariaDB starts one with an administrator, and returns what makes shops with users
// there.
func startMariaDB(t *testing.T, users int) func(*testing.T) *shop {
	t.Helper()
	server := logintest.StartMariaDB(t)
	server.Query(t, `CREATE DATABASE syncer; CREATE TABLE syncer.logins (user VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, mark VARCHAR(1024) CHARACTER SET utf8mb4 NOT NULL);
		CREATE USER syncer@'%' IDENTIFIED BY 'admin'; GRANT CREATE USER, PROCESS ON *.* TO syncer@'%';
		GRANT SELECT, INSERT, UPDATE ON syncer.logins TO syncer@'%'; GRANT SELECT ON mysql.global_priv TO syncer@'%'`)
	return func(t *testing.T) *shop {
		s := newShop(t)
		in := inMariaDB{shop: s, server: server, users: s.users[:users]}
		for _, user := range in.users {
			server.Query(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED VIA mysql_native_password USING 'invalid'", user))
		}
		s.logins = in
		return s
	}
}

func (s inMariaDB) address() string { return s.server.Addr }

func (s inMariaDB) actuator(client *conjur.Client, address string) login {
	server := &actuators.MySQL{Addresses: []string{address}, Plain: true, Admin: func(context.Context) (secret.Value, error) {
		return secret.New([]byte(`{"username":"syncer","password":"admin"}`)), nil
	}}
	if len(s.users) > 1 {
		return &actuators.Turns{Set: set, Users: s.users, Server: server}
	}
	return &actuators.Overlap{Set: set, User: s.users[0], Server: server, Current: func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		return held.Document, err
	}}
}

func (s inMariaDB) logIn(username, password string) error {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = username, password, "tcp", s.server.Addr
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	var user string
	return db.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user)
}

// left are the digests of the passwords of users that are not locked.
func (s inMariaDB) left() (all []string) {
	s.t.Helper()
	for _, row := range s.server.Query(s.t, "SELECT Priv FROM mysql.global_priv WHERE User IN ('"+strings.Join(s.users, "', '")+"') AND COALESCE(JSON_VALUE(Priv, '$.account_locked'), 0) = 0") {
		for _, part := range strings.Split(row, `"*`)[1:] {
			all = append(all, part[:8])
		}
	}
	return all
}

func TestNoLoginFailsWhileMariaDBRotates(t *testing.T) {
	for users, name := range map[int]string{1: "one user", 2: "two users"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startMariaDB(t, users)(t).lives(elsewhere())
		})
	}
}

func TestWithTheGateForcedOpenLoginsToMariaDBFail(t *testing.T) {
	t.Parallel()
	startMariaDB(t, 1)(t).failsWithoutTheGate()
}

func TestFaultsAtEachBoundaryOfMariaDB(t *testing.T) {
	for users, name := range map[int]string{1: "one user", 2: "two users"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			survive(t, startMariaDB(t, users))
		})
	}
}
