package actuators

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/secretsync/syncer/pkg/secret"
)

// marks returns the marks of the users that have an account.
func (m *MySQL) marks(ctx context.Context, users []string) (map[string]mark, error) {
	s, err := m.primary(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	marks := map[string]mark{}
	for _, user := range users {
		accounts, err := s.accounts(ctx, user)
		if err != nil {
			return nil, err
		}
		text, err := s.mark(ctx, user)
		if err != nil {
			return nil, err
		}
		if len(accounts) > 0 {
			marks[user] = readMark(text)
		}
	}
	return marks, nil
}

// admit lets all accounts of a user log in. MariaDB gets the digest of the password, and
// MySQL the password.
func (m *MySQL) admit(ctx context.Context, user string, password []byte, next func(mark) (mark, error)) error {
	return m.changeUser(ctx, user, next, func(s *mysqlSession, accounts []string) []string {
		statement := "ALTER USER " + strings.Join(accounts, ", ")
		switch {
		case password == nil:
		case s.maria:
			statement = identified(accounts, []string{digestOf(password)})
		default:
			by := " IDENTIFIED BY " + quoteMySQL(string(password))
			return []string{"ALTER USER " + strings.Join(accounts, by+", ") + by + " ACCOUNT UNLOCK"}
		}
		return []string{statement + " ACCOUNT UNLOCK"}
	})
}

func (m *MySQL) refuse(ctx context.Context, user string, next func(mark) (mark, error)) error {
	err := m.changeUser(ctx, user, next, func(_ *mysqlSession, accounts []string) []string {
		return []string{"ALTER USER " + strings.Join(accounts, ", ") + " ACCOUNT LOCK"}
	})
	if errors.Is(err, errNoAccount) {
		return errStands
	}
	return err
}

// changeUser changes all accounts of a user. The new mark is written first. After a crash between
// the two, the mark still permits the same act, and forbids those that it forbade before.
func (m *MySQL) changeUser(ctx context.Context, user string, next func(mark) (mark, error), statements func(*mysqlSession, []string) []string) error {
	return m.locked(ctx, func(s *mysqlSession) error {
		accounts, err := s.accounts(ctx, user)
		if err != nil {
			return err
		}
		if len(accounts) == 0 {
			return s.nobody(user)
		}
		text, err := s.mark(ctx, user)
		if err != nil {
			return err
		}
		is, err := next(readMark(text))
		if err != nil {
			return err
		}
		return s.change(ctx, user, is.in(text), statements(s, namesOf(accounts))...)
	})
}

// most is two: the Go driver refuses a server that asks for a third password.
func (m *MySQL) most() int { return 2 }

// places returns the accounts of the user.
func (m *MySQL) places(ctx context.Context, user string) (names []string, err error) {
	s, err := m.primary(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	accounts, err := s.accounts(ctx, user)
	if err == nil && len(accounts) == 0 {
		err = s.nobody(user)
	}
	return namesOf(accounts), err
}

func namesOf(accounts []mysqlAccount) (names []string) {
	for _, a := range accounts {
		names = append(names, a.name)
	}
	return names
}

func (m *MySQL) readAccount(ctx context.Context, place, user string, known []secret.Value) (account, error) {
	s, err := m.primary(ctx)
	if err != nil {
		return account{}, err
	}
	defer s.close()
	is, err := m.readAccountIn(ctx, s, place, user, known)
	return is.account, err
}

// lookedAt is an account, as one session sees it.
type lookedAt struct {
	account
	digests []string // of the other passwords, on MariaDB
	half    bool     // a removal on MySQL did not finish
}

// readAccountIn compares digests. MySQL has a salt in each, so there the known passwords are tried.
func (m *MySQL) readAccountIn(ctx context.Context, s *mysqlSession, place, user string, known []secret.Value) (is lookedAt, err error) {
	is.accepts = make([]bool, len(known))
	accounts, err := s.accounts(ctx, user)
	if err != nil {
		return is, err
	}
	text, err := s.mark(ctx, place)
	if err != nil {
		return is, err
	}
	text, is.half = strings.CutSuffix(text, discarding)
	if owner, err := hex.DecodeString(text); err == nil && len(owner) == len(is.owner) {
		copy(is.owner[:], owner)
	}
	at := slices.IndexFunc(accounts, func(a mysqlAccount) bool { return a.name == place })
	if at < 0 {
		return is, s.nobody(user)
	}
	if err := accounts[at].usable(); err != nil {
		return is, err
	}
	if !s.maria {
		return is, m.tryOut(ctx, s, &is, accounts, known, user)
	}
	is.digests = accounts[at].digests
	for i, password := range known {
		digest := digestOf(password.Bytes())
		if password.Len() > 0 && slices.Contains(is.digests, digest) {
			is.accepts[i] = true
			is.digests = slices.DeleteFunc(is.digests, func(other string) bool { return other == digest })
		}
	}
	for _, digest := range is.digests {
		is.others = append(is.others, cmp.Or(digest[:min(len(digest), 9)], "the empty password"))
	}
	return is, nil
}

// tryOut finds out which known passwords MySQL accepts. If it stores more than these, the
// others are not known. After half a removal, the other one is a copy.
func (m *MySQL) tryOut(ctx context.Context, s *mysqlSession, is *lookedAt, accounts []mysqlAccount, known []secret.Value, user string) error {
	if len(accounts) > 1 {
		return fmt.Errorf("the user has %d accounts, and MySQL tells only by log-ins which passwords each has; keep one account", len(accounts))
	}
	stored := accounts[0].stored
	for i, password := range known {
		if password.Len() == 0 {
			continue
		}
		err := m.logIn(ctx, user, password.Bytes(), s.address)
		switch {
		case err == nil:
			is.accepts[i] = true
			stored--
		case !errors.Is(err, ErrRefused):
			return err
		}
	}
	for range stored {
		if !is.half {
			is.others = append(is.others, "one that MySQL stores beside")
		}
	}
	return nil
}

// setPasswords changes one account. The seal is written first, so a crash leaves a user that belongs
// to the setPasswords, whose next act is the same.
func (m *MySQL) setPasswords(ctx context.Context, place, user string, was account, known []secret.Value, wanted []bool, owner seal) error {
	return m.locked(ctx, func(s *mysqlSession) error {
		is, err := m.readAccountIn(ctx, s, place, user, known)
		if err != nil {
			return err
		}
		if !slices.Equal(is.accepts, was.accepts) || !slices.Equal(is.others, was.others) || is.owner != was.owner {
			return errors.New("it changed after it was looked at; Syncer retries")
		}
		var stay, add []string
		for i, password := range known {
			switch {
			case wanted[i] && is.accepts[i]:
				stay = append(stay, string(password.Bytes()))
			case wanted[i]:
				add = append(add, string(password.Bytes()))
			}
		}
		if n := len(stay) + len(add) + len(is.others); n > m.most() {
			return fmt.Errorf("it would have %d passwords, and many clients can use only two; remove one that the set does not know: %s", n, strings.Join(is.others, ", "))
		}
		text := hex.EncodeToString(owner[:])
		if same := slices.Equal(is.accepts, wanted) && !is.half; same && is.owner.is(owner) {
			return nil
		} else if same {
			return s.change(ctx, place, text)
		}
		if !s.maria {
			statements, err := retained(place, stay, add, len(is.others))
			if err == nil && len(add) == 0 {
				err = s.change(ctx, place, text+discarding, statements...)
				statements = nil
			}
			if err == nil {
				err = s.change(ctx, place, text, statements...)
			}
			return err
		}
		for _, password := range slices.Concat(stay, add) {
			is.digests = append(is.digests, digestOf([]byte(password)))
		}
		if len(is.digests) == 0 {
			is.digests = []string{noPassword}
		}
		return s.change(ctx, place, text, identified([]string{place}, is.digests))
	})
}

// discarding follows the seal while a password is removed from MySQL. After a crash, the old
// password that MySQL still stores may be a copy of that which stays.
const discarding = " discarding"

// retained returns the statements that change the passwords of an account of MySQL. It
// stores a password and an old one. RETAIN makes the password the old one, and loses the
// one before. Which of two it stores as the old one, it does not tell. So the one that
// stays is made the password before the old one is discarded.
func retained(account string, stay, add []string, others int) ([]string, error) {
	by := func(password string) string {
		return "ALTER USER " + account + " IDENTIFIED BY " + quoteMySQL(password)
	}
	discard := "ALTER USER " + account + " DISCARD OLD PASSWORD"
	switch {
	case len(add) == 1 && len(stay)+others == 1:
		return []string{by(add[0]) + " RETAIN CURRENT PASSWORD"}, nil
	case len(add) == 1:
		return []string{by(add[0])}, nil
	case others > 0:
		return nil, fmt.Errorf("MySQL does not tell which of the two passwords is the one that the set does not know; remove one yourself: %s", discard)
	case len(stay) == 0: // nobody knows this one
		stay = []string{rand.Text()}
	}
	return []string{by(stay[0]), discard}, nil
}

// change writes a mark, then runs statements. An implicit commit of a statement cannot undo
// the mark.
func (s *mysqlSession) change(ctx context.Context, name, mark string, statements ...string) error {
	if _, err := s.query(ctx, "INSERT INTO syncer.logins (user, mark) VALUES (?, ?) ON DUPLICATE KEY UPDATE mark = ?", name, mark, mark); err != nil {
		return err
	}
	for _, statement := range statements {
		if err := s.alter(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// mark returns the text that is stored for a user or an account.
func (s *mysqlSession) mark(ctx context.Context, name string) (string, error) {
	rows, err := s.query(ctx, "SELECT mark FROM syncer.logins WHERE user = ?", name)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// verify logs in at every address. The account whose host part fits Syncer's address counts.
func (m *MySQL) verify(ctx context.Context, user string, password []byte) error {
	return logIn(m.logIn).atEach(ctx, m.Addresses, user, password)
}

func (m *MySQL) logIn(ctx context.Context, user string, password []byte, address string) error {
	s, err := m.open(ctx, login{Username: user, Password: password}, address)
	// The driver calls it malformed if the server goes on to a third password.
	if slices.Contains([]uint16{accessDenied, lockedMySQL, lockedMariaDB}, mysqlErrorNumber(err)) || errors.Is(err, mysql.ErrMalformPkt) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err == nil {
		s.close()
	}
	return err
}

func (m *MySQL) sessions(ctx context.Context, user string) ([]string, error) {
	return m.sessionsBefore(ctx, user, time.Now().Add(time.Hour))
}

func (m *MySQL) uses(ctx context.Context, user string) ([]string, error) {
	return m.sessions(ctx, user)
}

// sessionsBefore returns the sessions that are in their present state since before a time.
// When a session began, the server does not tell. Sessions whose log-in is in progress are
// among them: their password is compared with those that the user had when it began.
func (m *MySQL) sessionsBefore(ctx context.Context, user string, before time.Time) (found []string, err error) {
	least := int(time.Since(before) / time.Second)
	err = m.eachSession(ctx, user, func(s *mysqlSession, id, host, seconds string) error {
		if n, err := strconv.Atoi(seconds); err != nil || n > least {
			found = append(found, fmt.Sprintf("the session %s of %s at %s from %q", id, user, s.address, host))
		}
		return nil
	})
	return found, err
}

// eachSession calls do for each session of a user at each address. Without the privilege
// PROCESS, the list would have only the administrator's sessions.
func (m *MySQL) eachSession(ctx context.Context, user string, do func(s *mysqlSession, id, host, seconds string) error) error {
	return m.atEach(ctx, func(s *mysqlSession, err error) error {
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.missing(ctx, "PROCESS"); err != nil {
			return err
		}
		rows, err := s.query(ctx, "SELECT ID, HOST, COALESCE(TIME, 0), USER FROM information_schema.PROCESSLIST WHERE USER = ? ORDER BY ID", user)
		for _, row := range rows {
			if row[3] == user { // the server compares without regard to case
				err = errors.Join(err, do(s, row[0], row[1], row[2]))
			}
		}
		return err
	})
}

func (m *MySQL) endSessions(ctx context.Context, user string) error {
	return m.eachSession(ctx, user, func(s *mysqlSession, id, _, _ string) error {
		if _, err := s.query(ctx, "KILL CONNECTION "+id); mysqlErrorNumber(err) != noSuchThread {
			return err
		}
		return nil
	})
}
