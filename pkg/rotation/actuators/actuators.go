// Package actuators informs outside systems of versions: a database, Conjur itself, or
// any service or command that accepts requests.
package actuators

import (
	"cmp"
	"context"
	"errors"
	"time"

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
