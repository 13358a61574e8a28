package actuators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Parts of a login.
const (
	username = "username"
	password = "password"
)

// Turns rotates the passwords of users of a server, who take turns. Each user has one
// version at a time, in the parts "username" and "password". Beside the user, the server
// holds a mark: the fence, and the owner of the version.
type Turns struct {
	Set         string   // the variable's id
	Users       []string // two or more
	EndSessions bool     // end the sessions of a refused user; otherwise sessions block the refusal
	// Current reads the set again, right before a change. The caller wipes the result. nil
	// means that the server compares marks itself.
	Current func(context.Context) (*versions.Document, error)
	// Timeout limits one act, and the wait for ended sessions; 0 means 30 s.
	Timeout time.Duration
	Server  Server
}

// Server is a server whose users take turns. The context of each call has a deadline.
type Server interface {
	// marks returns the marks of the users that exist.
	marks(ctx context.Context, users []string) (map[string]mark, error)
	// admit lets a user log in, with the given password or, if it is nil, with that
	// which it has. next computes the new mark from the present one, right before the
	// change. An error of next leaves the user as it is, and is returned.
	admit(ctx context.Context, user string, password []byte, next func(mark) (mark, error)) error
	// refuse lets a user no longer log in. It returns errStands if the user does not exist.
	refuse(ctx context.Context, user string, next func(mark) (mark, error)) error
	// sessions returns the sessions of a user at every address, each for an operator.
	sessions(ctx context.Context, user string) ([]string, error)
	// uses returns the sessions, and what else uses the login.
	uses(ctx context.Context, user string) ([]string, error)
	loginServer
}

// loginServer is the part of a server that does not depend on how its logins rotate.
type loginServer interface {
	// verify logs in at every address. The error is ErrRefused if one refuses.
	verify(ctx context.Context, user string, password []byte) error
	endSessions(ctx context.Context, user string) error
	// findObstacles returns the obstacles to a rotation, each with its fix.
	findObstacles(ctx context.Context, users []string, endSessions bool) []error
	// statements create the administrator "syncer" with its rights, and the users. "…"
	// stands for a password.
	statements(users []string, endSessions bool) []string
}

// Statements returns what an administrator of the server runs before the first rotation.
// Each "…" stands for a password.
func (t *Turns) Statements() []string { return t.Server.statements(t.Users, t.EndSessions) }

// Check returns the obstacles to a rotation, among them users of another set.
func (t *Turns) Check(ctx context.Context, doc *versions.Document) []error {
	within, cancel := within(ctx, t.Timeout)
	defer cancel()
	problems := t.Server.findObstacles(within, t.Users, t.EndSessions)
	marks, err := t.Server.marks(within, t.Users)
	if err != nil {
		if len(problems) > 0 { // which says more
			return problems
		}
		return []error{err}
	}
	return append(problems, t.barred(marks, doc)...)
}

// Barred returns, for each user that the set may not change, the owner of the user.
func (t *Turns) Barred(ctx context.Context, doc *versions.Document) []error {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	marks, err := t.Server.marks(ctx, t.Users)
	if err != nil {
		return []error{err}
	}
	return t.barred(marks, doc)
}

func (t *Turns) barred(marks map[string]mark, doc *versions.Document) (problems []error) {
	for _, name := range t.Users {
		if err := marks[name].barred(t.Set, doc); err != nil {
			problems = append(problems, fmt.Errorf("user %s: %w", name, err))
		}
	}
	return problems
}

// Prepare returns the username of the next user. No user may have a version of another
// set. A user that accepts no version comes first, because it is not in use.
func (t *Turns) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	marks, err := t.Server.marks(ctx, t.Users)
	if err != nil {
		return nil, err
	}
	if problems := t.barred(marks, doc); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	users := slices.SortedStableFunc(slices.Values(t.Users), func(a, b string) int {
		return cmp.Compare(inUse(marks[a]), inUse(marks[b]))
	})
	user, err := turn(doc, username, users)
	if err != nil {
		return nil, err
	}
	uses, err := t.Server.uses(ctx, user)
	if err != nil {
		return nil, err
	}
	if len(uses) > 0 {
		return nil, fmt.Errorf("the next user %s has no version, but has open sessions: %s; end them first", user, strings.Join(uses, "; "))
	}
	return map[string]secret.Value{username: secret.New([]byte(user))}, nil
}

// Apply sets the password of the version's user and allows it to log in.
func (t *Turns) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	err := t.Server.admit(ctx, user(v), v.Parts[password].Bytes(), t.marked(ctx, v, func(m mark) (mark, error) {
		if err := m.barred(t.Set, setOf(v)); err != nil {
			return m, err
		}
		return m.accept(v)
	}))
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", user(v), err)
	}
	return nil, nil
}

// marked returns next with the set as the owner of the new mark.
func (t *Turns) marked(ctx context.Context, v versions.Version, next func(mark) (mark, error)) func(mark) (mark, error) {
	return func(m mark) (mark, error) {
		m, err := next(m)
		if err == nil && t.Current != nil {
			var doc *versions.Document
			if doc, err = Still(ctx, t.Current, v, v.State); err == nil {
				doc.Wipe()
			}
		}
		return m.of(t.Set, setOf(v)), err
	}
}

// Verify logs in at every address.
func (t *Turns) Verify(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	return t.Server.verify(ctx, user(v), v.Parts[password].Bytes())
}

// Revoke forbids the version's user to log in. If the user already has a version of
// another set, the version is already refused. A session that still exists afterwards
// began at the last moment. It is ended, or the user may log in again and Revoke fails.
func (t *Turns) Revoke(ctx context.Context, v versions.Version) error {
	refuse := func(state string) error {
		ctx, cancel := within(ctx, t.Timeout)
		defer cancel()
		return t.Server.refuse(ctx, user(v), t.marked(ctx, v, func(m mark) (mark, error) {
			if m.foreign(t.Set, setOf(v)) != nil {
				return m, errStands
			}
			return m.refuse(v, state)
		}))
	}
	if err := refuse(revoking); errors.Is(err, errStands) {
		return nil
	} else if err != nil {
		return fmt.Errorf("user %s: %w", user(v), err)
	}
	if err := t.leave(ctx, v); err != nil {
		return errors.Join(fmt.Errorf("version %s is not revoked: %w", v.ID, err), unlessItStands(t.readmit(ctx, v)))
	}
	return unlessItStands(refuse(revoked))
}

func (t *Turns) readmit(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	return t.Server.admit(ctx, user(v), nil, t.marked(ctx, v, func(m mark) (mark, error) { return m.readmit(v) }))
}

func unlessItStands(err error) error {
	if errors.Is(err, errStands) {
		return nil
	}
	return err
}

// leave returns when nobody is logged in, or returns an error if sessions remain.
func (t *Turns) leave(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	if !t.EndSessions {
		uses, err := t.Server.uses(ctx, user(v))
		if err == nil && len(uses) > 0 {
			err = errors.New(strings.Join(uses, "; "))
		}
		return err
	}
	for delays := (retry.Backoff{}).Start(); ; {
		sessions, err := t.Server.sessions(ctx, user(v))
		switch {
		case err != nil:
			return err
		case len(sessions) == 0:
			return nil
		}
		if err := t.Server.endSessions(ctx, user(v)); err != nil {
			return err
		}
		select {
		case <-time.After(delays.NextBackOff()):
		case <-ctx.Done():
			return fmt.Errorf("sessions do not end: %s", strings.Join(sessions, "; "))
		}
	}
}

// InUse returns the uses of the version's user, unless EndSessions is set.
func (t *Turns) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	if t.EndSessions {
		return nil, nil
	}
	ctx, cancel := within(ctx, t.Timeout)
	defer cancel()
	return t.Server.uses(ctx, user(v))
}

func user(v versions.Version) string { return string(v.Parts[username].Bytes()) }
