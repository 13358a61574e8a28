// Package actuators informs outside systems of versions: a database, Conjur itself, or
// any service or command that accepts requests.
package actuators

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/advice"
	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// ErrRefused means that the outcome of an act is known and negative. It is wrapped. After
// any other error the outcome is unknown, and the act is repeated.
var ErrRefused = errors.New("refused")

// Actuator makes an outside system accept and refuse the versions of one set. It stores
// two things beside the object that it changes. Version.Fence is stored as
// [versions.Apply] and [versions.Revoke] require. The owner is the set's id and the
// identity of Version.Set. Repeating an act is harmless. The actuator does not touch
// objects of another set, unless Version.Set was claimed since.
type Actuator interface {
	// Apply makes the outside accept a version under its fence. It returns the parts that
	// the outside minted, or nil. The caller writes them to the set before anything else
	// happens.
	Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error)
	// Verify uses a version at every address.
	Verify(ctx context.Context, v versions.Version) error
	// Revoke makes the outside refuse a version. A version that does not exist there is
	// already refused.
	Revoke(ctx context.Context, v versions.Version) error
}

// within limits an act by the configured timeout, in addition to the caller's own limit.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(timeout, 30*time.Second))
}

// setOf returns the set of a version. It returns an empty set for a version that no
// document returned.
func setOf(v versions.Version) *versions.Document {
	if v.Set == nil {
		return versions.New("")
	}
	return v.Set
}

// Preparer is an Actuator that decides some parts of a version before it is made, such as
// the next user. The error says why no version may begin now.
type Preparer interface {
	Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error)
}

// User is an Actuator that can list the users of a version, each under a name that an
// operator recognizes.
type User interface {
	InUse(ctx context.Context, v versions.Version) ([]string, error)
}

// Fenced is an Actuator that can find out in advance which objects the set may not
// change. Another set, or a later state of this set, owns them. Each error says what to
// do.
type Fenced interface {
	Barred(ctx context.Context, doc *versions.Document) []error
}

// Checker is an Actuator that can find obstacles for a set in advance. Each problem says
// what to do about it.
type Checker interface {
	Check(ctx context.Context, doc *versions.Document) []error
}

// turn returns the first name that no version has in that part. Retired versions have no
// parts. The error means that all names are in use.
func turn(doc *versions.Document, part string, names []string) (string, error) {
	var taken []string
	for _, v := range doc.Versions {
		if v.State != versions.Retired {
			taken = append(taken, string(v.Parts[part].Bytes()))
		}
	}
	for _, name := range names {
		if !slices.Contains(taken, name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("no user or host is free, because each has a version that is still valid: %q", taken)
}

// LaterError means that an act has begun and must be repeated to finish it. Nothing has
// failed. For example, a key stays inactive for a while before it is deleted.
type LaterError struct {
	Why   string
	Until time.Time // by the local clock
}

func (e *LaterError) Error() string { return e.Why }

// Still reads a set again. It returns an error if the set's record of a version has
// changed since the decision to act. The caller wipes the result.
func Still(ctx context.Context, set func(context.Context) (*versions.Document, error), v versions.Version, state versions.State) (*versions.Document, error) {
	doc, err := set(ctx)
	if err != nil {
		return nil, err
	}
	now, ok := doc.Version(v.ID)
	sameLen := func(a, b secret.Value) bool { return a.Len() == b.Len() }
	if !ok || now.State != state || now.Fence != v.Fence || !maps.EqualFunc(now.Parts, v.Parts, sameLen) {
		doc.Wipe()
		return nil, fmt.Errorf("the set changed after %s was checked; Syncer retries", v.ID)
	}
	return doc, nil
}

const noTLS = `the server has no TLS: enable it there and name its CA in "ca", or set "plain: true"`

const namePooler = `write the database itself into "address", and a PgBouncer into "pooler"`

const nameCA = `name the file with its CA certificate in "ca"`

// trust returns the settings of TLS for a set: the authorities are those of a file, or the
// system's if it has none.
func trust(ca, host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host}
	if ca == "" {
		return config, nil
	}
	roots, err := certs.ReadRoots(ca)
	if err != nil {
		return nil, fmt.Errorf("the set's ca: %w", err)
	}
	config.RootCAs = roots
	return config, nil
}

// logIn logs a user in at one address, and out. The error is ErrRefused if the server refuses.
type logIn func(ctx context.Context, user string, password []byte, address string) error

// atEach logs in at all addresses, so that each problem is reported.
func (logIn logIn) atEach(ctx context.Context, addresses []string, user string, password []byte) error {
	var problems []error
	for _, address := range addresses {
		problems = append(problems, logIn(ctx, user, password, address))
	}
	return errors.Join(problems...)
}

// guess tries a wrong password at all addresses. Where it is accepted, a login proves
// nothing.
func (logIn logIn) guess(ctx context.Context, addresses, users []string, step string) (problems []error) {
	for _, address := range addresses {
		for _, user := range users {
			err := logIn(ctx, user, []byte("not the password"), address)
			if errors.Is(err, ErrRefused) {
				continue
			}
			if err == nil {
				err = fmt.Errorf("%s accepts a wrong password of %s; %s", address, user, step)
			}
			problems = append(problems, err)
			break // for the other users it would report the same
		}
	}
	return problems
}

// dial connects to an address, by TLS unless the server is plain.
func dial(ctx context.Context, address, ca string, plain bool) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	config, err := trust(ca, host)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil || plain {
		return conn, err
	}
	secure := tls.Client(conn, config)
	within, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := secure.HandshakeContext(within); err != nil {
		_ = conn.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			err = advice.Add(errors.New("it does not answer in TLS"), `if it has no TLS, enable it there and name its CA in "ca", or set "plain: true"`)
		}
		return nil, err
	}
	return secure, nil
}

// handshakeTime limits the wait for TLS. A server without TLS may not answer at all.
const handshakeTime = 5 * time.Second

// sqlAdvice says what to do about an answer of PostgreSQL, by its code.
var sqlAdvice = map[string]string{
	invalidPassword:       "check the password of the user",
	invalidAuthorization:  "the server does not let this user log in; check pg_hba.conf and whether the role may log in",
	insufficientPrivilege: "grant the right; \"syncer rotate check\" lists each one that is missing",
	protocolViolation:     "so refuses a connection pooler, such as PgBouncer; " + namePooler + "; there its auth_file and stats_users need the administrator",
	"3D000":               "there is no such database; correct the database in the address",
	"53300":               "the server has too many sessions; end sessions or raise max_connections",
	"57P03":               "the server refuses sessions while it starts or stops; Syncer retries",
	"25006":               "the server is a standby; use the address of the primary",
}

// advise adds to an error of the outside what to do about it, if that is known.
func advise(err error) error {
	if step, ok := sqlAdvice[code(err)]; ok {
		return advice.Add(err, step)
	}
	if refusesTLS(err) {
		return advice.Add(err, noTLS)
	}
	return advice.Connection(err, nameCA)
}

// refusesTLS reports whether the server offers no TLS. The driver has no type for this error.
func refusesTLS(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server refused TLS connection")
}
