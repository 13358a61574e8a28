// Package actuators has the outside learn of a version: a database, Conjur
// itself, whatever answers a request or a command.
package actuators

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// ErrRefused says that the outcome of an act is known and is no. It is wrapped.
// After every other error the outcome is unknown, and the act is repeated.
var ErrRefused = errors.New("refused")

// Actuator has something outside accept and refuse the versions of one set. It
// keeps Version.Fence beside what it changes, as [versions.Apply] and
// [versions.Revoke] want it, and whose set it is: the set's id and the identity of
// Version.Set. Repeating an act is harmless. What belongs to another set is left
// alone, unless Version.Set was claimed since.
type Actuator interface {
	// Apply has a version accepted under its fence. It returns the parts that
	// the outside minted, or nil; they are written to the set before anything
	// else happens.
	Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error)
	// Verify uses a version, at every address.
	Verify(ctx context.Context, v versions.Version) error
	// Revoke has a version refused. One that is not there is refused already.
	Revoke(ctx context.Context, v versions.Version) error
}

// within bounds an act by the time that is set, beside the caller's own bound.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(timeout, 30*time.Second))
}

// setOf returns the set of a version; an empty one for a version that no document
// returned.
func setOf(v versions.Version) *versions.Document {
	if v.Set == nil {
		return versions.New("")
	}
	return v.Set
}

// Preparer is an Actuator that decides some parts of a version before it is made,
// such as whose turn it is. The error says why no version may begin now.
type Preparer interface {
	Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error)
}

// User is an Actuator that sees who uses a version: each as a person would name
// it.
type User interface {
	InUse(ctx context.Context, v versions.Version) ([]string, error)
}

// Fenced is an Actuator that sees beforehand what the set may not change, as another
// set has it, or a later state of this one. Each error says what to do.
type Fenced interface {
	Barred(ctx context.Context, doc *versions.Document) []error
}

// Checker is an Actuator that can say beforehand what stands in the way of a set:
// each problem with what to do about it.
type Checker interface {
	Check(ctx context.Context, doc *versions.Document) []error
}
