package actuators

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

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
