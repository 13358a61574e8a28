package actuators

import (
	"context"
	"fmt"
)

// loginsTable holds the marks and seals.
const loginsTable = "CREATE DATABASE IF NOT EXISTS syncer; CREATE TABLE IF NOT EXISTS syncer.logins (user VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, mark VARCHAR(1024) CHARACTER SET utf8mb4 NOT NULL)"

const grantLogins = "GRANT SELECT, INSERT, UPDATE ON syncer.logins TO "

func (m *MySQL) statements(users []string, endSessions bool) []string {
	const admin, onMySQL = "'syncer'@'%'", "; -- MySQL: "
	tls := ""
	if !m.Plain {
		tls = " REQUIRE SSL"
	}
	all := []string{
		loginsTable + ";", "CREATE USER IF NOT EXISTS " + admin + " IDENTIFIED BY '…'" + tls + ";",
		"GRANT CREATE USER, PROCESS ON *.* TO " + admin + ";", grantLogins + admin + ";", "GRANT SELECT ON mysql.global_priv TO " + admin + onMySQL + "mysql.user",
	}
	if endSessions {
		all = append(all, "GRANT CONNECTION ADMIN ON *.* TO "+admin+onMySQL+"CONNECTION_ADMIN")
	}
	for _, user := range users {
		all = append(all, "CREATE USER "+quoteMySQL(user)+"@'%' "+unusableMaria+onMySQL+unusableMySQL)
	}
	return all
}

// findObstacles finds missing rights, accounts that cannot be changed, and addresses that accept a
// wrong password.
func (m *MySQL) findObstacles(ctx context.Context, users []string, endSessions bool) (problems []error) {
	problems = logIn(m.logIn).guess(ctx, m.Addresses, users, "drop accounts that have the plugin unix_socket or no password, and skip-grant-tables")
	s, err := m.primary(ctx)
	if err != nil {
		return append(problems, err)
	}
	defer s.close()
	add := func(err error) { problems = append(problems, err) }
	need := [][]string{{"CREATE USER"}, {"PROCESS"}}
	if endSessions && s.maria {
		need = append(need, []string{"CONNECTION ADMIN", "SUPER"})
	} else if endSessions {
		need = append(need, []string{"CONNECTION_ADMIN", "SUPER"})
	}
	for _, rights := range need {
		if err := s.missing(ctx, rights...); err != nil {
			add(err)
		}
	}
	rows, err := s.query(ctx, "SELECT "+adminAccount)
	if err != nil {
		return append(problems, err)
	}
	admin := rows[0][0]
	if _, err := s.query(ctx, "INSERT INTO syncer.logins (user, mark) SELECT user, mark FROM syncer.logins AS old WHERE 1 = 0 ON DUPLICATE KEY UPDATE mark = ''"); err != nil {
		add(fmt.Errorf("%w; run: %s; %s%s", err, loginsTable, grantLogins, admin))
	}
	accounts := "mysql.user"
	if s.maria {
		accounts = "mysql.global_priv"
		rows, err := s.query(ctx, "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'PASSWORD VALIDATION' AND PLUGIN_STATUS = 'ACTIVE' AND @@strict_password_validation")
		if err != nil {
			add(err)
		}
		for _, row := range rows {
			add(fmt.Errorf("the plugin %s refuses digests of passwords: SET GLOBAL strict_password_validation = OFF", row[0]))
		}
	}
	for _, user := range append([]string{""}, users...) {
		all, err := s.accounts(ctx, user)
		if err != nil {
			return append(problems, fmt.Errorf("%w; GRANT SELECT ON %s TO %s", err, accounts, admin))
		}
		if user != "" && len(all) == 0 {
			add(s.nobody(user))
		}
		for _, a := range all {
			if user == "" {
				add(fmt.Errorf("the account %s without a name comes before accounts with a wider host part, so their users cannot log in: DROP USER %s", a.name, a.name))
			} else if err := a.usable(); err != nil {
				add(err)
			} else if a.locked && len(users) == 1 { // of several, those without a version are locked
				add(fmt.Errorf("the account %s is locked: ALTER USER %s ACCOUNT UNLOCK", a.name, a.name))
			}
		}
	}
	return problems
}
