package actuators

import (
	"cmp"
	"context"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/go-sql-driver/mysql"

	"github.com/secretsync/syncer/internal/advice"
	"github.com/secretsync/syncer/pkg/secret"
)

// MySQL is a [Server] and an [Account] of MariaDB from 10.4 on, and of MySQL from 8.0.14
// on. A user has an account for each host part, such as 'shop'@'10.%', and each account has
// its passwords. The table syncer.logins holds the marks and seals.
type MySQL struct {
	// Addresses are host:port each. Every address must accept a login. Changes go to the
	// address that is not read-only.
	Addresses []string
	Admin     func(context.Context) (secret.Value, error) // {"username":…,"password":…}
	CA        string                                      // file with the trusted authorities; "": the system's
	Plain     bool                                        // without TLS
}

// Numbers of the server's errors that count as a known outcome.
const (
	accessDenied   = 1045
	noSuchThread   = 1094
	weakPassword   = 1819
	lockedMySQL    = 3118
	lockedMariaDB  = 4151
	nativePassword = "mysql_native_password"
)

// sqlErrors says what to do about an answer of the server, by its number.
var sqlErrors = map[uint16]string{
	accessDenied: "check the password; an account with a narrower host part, or an anonymous user, may come before the user's",
	1040:         "the server has too many sessions; end sessions or raise max_connections",
	1130:         "no account of the user fits the address of Syncer; create one",
	1142:         `grant the right; "syncer rotate check" lists each one that is missing`,
	1227:         `grant the right; "syncer rotate check" lists each one that is missing`,
	1290:         "the server is read-only; use the address of the primary",
	1396:         "the server refuses the digest of a password if a password check is installed: SET GLOBAL strict_password_validation = OFF",
}

func mysqlErrorNumber(err error) uint16 {
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return answer.Number
	}
	return 0
}

func adviseMySQL(err error) error {
	if step, ok := sqlErrors[mysqlErrorNumber(err)]; ok {
		return advice.Add(err, step)
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return advice.Add(err, noTLS)
	}
	return advice.Connection(err, nameCA)
}

// mysqlSession is a session at one address.
type mysqlSession struct {
	*sql.Conn
	pool    *sql.DB
	address string
	maria   bool   // a MariaDB
	server  string // where it runs, which distinguishes servers
}

func (s *mysqlSession) close() { _, _ = s.Conn.Close(), s.pool.Close() }

// query returns the rows of a statement. Its arguments are not part of its text.
func (s *mysqlSession) query(ctx context.Context, text string, args ...any) (all [][]string, err error) {
	rows, err := s.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.address, adviseMySQL(err))
	}
	defer rows.Close()
	names, err := rows.Columns()
	for err == nil && rows.Next() {
		row, to := make([]string, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		err = rows.Scan(to...)
		all = append(all, row)
	}
	return all, errors.Join(err, rows.Err())
}

// alter runs a statement that may contain a password. So its text stays out of the error.
func (s *mysqlSession) alter(ctx context.Context, statement string) error {
	_, err := s.ExecContext(ctx, statement)
	if n := mysqlErrorNumber(err); n != 0 {
		err = &mysql.MySQLError{Number: n, Message: "a user cannot be changed"}
	}
	if mysqlErrorNumber(err) == weakPassword {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return adviseMySQL(err)
}

// open logs in at one address. The driver takes the password as a string. The string shares
// bytes of the login, which the caller clears.
func (m *MySQL) open(ctx context.Context, l login, address string) (*mysqlSession, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Logger = "tcp", address, l.Username, &mysql.NopLogger{}
	config.Passwd = unsafe.String(unsafe.SliceData(l.Password), len(l.Password))
	config.Timeout = 10 * time.Second
	if !m.Plain {
		if config.TLS, err = trust(m.CA, host); err != nil {
			return nil, err
		}
	}
	if l.privileged { // the meaning of quotes is fixed, and a suspended process loses its session and its lock
		config.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES'", "autocommit": "1", "wait_timeout": "5"}
		err = config.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"))
	}
	connector, err2 := mysql.NewConnector(config)
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("%s: %w", address, adviseMySQL(err))
	}
	return &mysqlSession{Conn: conn, pool: pool, address: address}, nil
}

// atEach calls do with a session of the administrator at each address, or with the error.
func (m *MySQL) atEach(ctx context.Context, do func(s *mysqlSession, err error) error) error {
	admin, err := adminLogin(ctx, m.Admin)
	if err != nil {
		return err
	}
	defer clear(admin.Password)
	for _, address := range m.Addresses {
		s, err := m.open(ctx, admin, address)
		if err = do(s, err); err != nil {
			return err
		}
	}
	return nil
}

// primary returns a session at the address that accepts changes. Two of them are an error,
// because the lock of one does not count on the other, such as in a Galera cluster.
func (m *MySQL) primary(ctx context.Context) (found *mysqlSession, err error) {
	var problems []error
	err = m.atEach(ctx, func(s *mysqlSession, err error) error {
		var rows [][]string
		if err == nil {
			rows, err = s.query(ctx, "SELECT VERSION(), @@global.read_only, CONCAT_WS(' ', @@hostname, @@port, @@datadir)")
		}
		switch {
		case err != nil:
			problems = append(problems, err)
		case rows[0][1] != "0" && rows[0][1] != "OFF", found != nil && found.server == rows[0][2]:
		case found != nil:
			problems = append(problems, fmt.Errorf("%s and %s both accept changes; set read_only on replicas, and name one node of a cluster", found.address, s.address))
			found.close()
			s.close()
			return errors.Join(problems...)
		default:
			s.maria, s.server, found = strings.Contains(rows[0][0], "MariaDB"), rows[0][2], s
			return nil
		}
		if s != nil {
			s.close()
		}
		return nil
	})
	if err == nil && found == nil {
		err = cmp.Or(errors.Join(problems...), fmt.Errorf("each address is read-only: %s; add the address of the primary", strings.Join(m.Addresses, ", ")))
	}
	return found, err
}

// locked calls do with the only session that changes logins. The server ends this session
// when the process is suspended, and only then another process gets the lock. So whatever
// do has read holds until its last statement.
func (m *MySQL) locked(ctx context.Context, do func(s *mysqlSession) error) error {
	s, err := m.primary(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	rows, err := s.query(ctx, "SELECT COALESCE(GET_LOCK('syncer.logins', 10), 0), @@session.sql_mode, @@session.wait_timeout")
	switch {
	case err != nil:
		return err
	case rows[0][0] != "1":
		return fmt.Errorf("%s: another session has the lock syncer.logins; Syncer retries", s.address)
	case rows[0][1] != "STRICT_ALL_TABLES" || rows[0][2] != "5":
		return fmt.Errorf("%s: a proxy between Syncer and the server changes the settings of the session; name the server itself", s.address)
	}
	return do(s)
}

// mysqlAccount is one account of a user, and its passwords.
type mysqlAccount struct {
	name    string   // as in SQL
	digests []string // those of MariaDB
	stored  int      // how many passwords MySQL stores
	plugins []string // those other than nativePassword, on MariaDB
	locked  bool
}

// accounts returns the accounts of a user.
func (s *mysqlSession) accounts(ctx context.Context, user string) (all []mysqlAccount, err error) {
	text := "SELECT Host, Priv FROM mysql.global_priv WHERE User = ? ORDER BY Host"
	if !s.maria {
		text = "SELECT Host, (authentication_string <> '') + COALESCE(JSON_CONTAINS_PATH(User_attributes, 'one', '$.additional_password'), 0), account_locked FROM mysql.user WHERE User = ? ORDER BY Host"
	}
	rows, err := s.query(ctx, text, user)
	for _, row := range rows {
		a := mysqlAccount{name: quoteMySQL(user) + "@" + quoteMySQL(row[0])}
		if !s.maria {
			if a.stored, err = strconv.Atoi(row[1]); err != nil {
				return nil, err
			}
			a.locked = row[2] == "Y"
			all = append(all, a)
			continue
		}
		type alternative struct {
			Plugin string
			Digest string `json:"authentication_string"`
		}
		var is struct {
			alternative
			Or     []alternative `json:"auth_or"` // an empty one stands for the first above
			Role   bool          `json:"is_role"`
			Locked bool          `json:"account_locked"`
		}
		if err := json.Unmarshal([]byte(row[1]), &is); err != nil {
			return nil, fmt.Errorf("mysql.global_priv has no JSON for %s: %w", a.name, err)
		}
		a.locked = is.Locked
		for _, one := range append(slices.DeleteFunc(is.Or, func(one alternative) bool { return one == alternative{} }), is.alternative) {
			if one.Plugin != "" && one.Plugin != nativePassword {
				a.plugins = append(a.plugins, one.Plugin)
			} else if one.Digest != noPassword {
				a.digests = append(a.digests, one.Digest)
			}
		}
		if !is.Role {
			all = append(all, a)
		}
	}
	return all, err
}

// usable returns an error if clients could not use a further password of the account. With
// another plugin in the list, or with a third password, some drivers refuse the server.
func (a mysqlAccount) usable() error {
	if len(a.plugins) > 0 {
		return fmt.Errorf("the account %s has the plugin %s; give it %s only: ALTER USER %s IDENTIFIED VIA %s USING '…'", a.name, strings.Join(a.plugins, ", "), nativePassword, a.name, nativePassword)
	}
	if len(a.digests) > 2 {
		return fmt.Errorf("the account %s has %d passwords, of which some drivers can use only two; remove some: ALTER USER %s IDENTIFIED VIA %s USING '…'", a.name, len(a.digests), a.name, nativePassword)
	}
	return nil
}

var errNoAccount = errors.New("it does not exist")

// The ends of statements that create an account whose password nobody knows.
const (
	unusableMaria = "IDENTIFIED VIA " + nativePassword + " USING '" + noPassword + "'"
	unusableMySQL = "IDENTIFIED BY RANDOM PASSWORD"
)

// nobody returns the error for a user without an account, with the statement that creates it.
func (s *mysqlSession) nobody(user string) error {
	unusable := unusableMySQL
	if s.maria {
		unusable = unusableMaria
	}
	return fmt.Errorf("%w; create the user %s: CREATE USER %s@'%%' %s", errNoAccount, user, quoteMySQL(user), unusable)
}

// adminAccount is the administrator's account, as in SQL and as the list of privileges has it.
// Only the last @ separates the host part.
const adminAccount = `CONCAT('\'', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '\'@\'', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '\'')`

// missing returns an error with the fix if the administrator has none of some privileges,
// which mean the same.
func (s *mysqlSession) missing(ctx context.Context, rights ...string) error {
	rows, err := s.query(ctx, "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = "+adminAccount)
	if err != nil || slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(rights, row[0]) }) {
		return err
	}
	if rows, err = s.query(ctx, "SELECT "+adminAccount); err != nil {
		return err
	}
	return fmt.Errorf("%s: the administrator needs this privilege, and not by a role: GRANT %s ON *.* TO %s", s.address, rights[0], rows[0][0])
}

// noPassword is a digest that no password has.
const noPassword = "invalid"

// digestOf returns the digest that MariaDB stores for a password. Nobody can log in with it.
func digestOf(password []byte) string {
	once := sha1.Sum(password)
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

// identified returns the statement that gives accounts of MariaDB a list of passwords.
func identified(accounts, digests []string) string {
	list := " IDENTIFIED VIA " + nativePassword + " USING '" + strings.Join(digests, "' OR "+nativePassword+" USING '") + "'"
	return "ALTER USER " + strings.Join(accounts, list+", ") + list
}

// quoteMySQL quotes a text for SQL under the session's sql_mode.
func quoteMySQL(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
