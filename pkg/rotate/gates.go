package rotate

import (
	"context"
	"time"

	"github.com/secretsync/syncer/pkg/versions"
)

// Answer is whether a gate is open. The zero Answer is shut.
type Answer struct {
	Open bool
	// Waits names what a shut gate waits for, and the safe way out if there is
	// one.
	Waits string
	// Until is when to ask again; zero: nothing says when.
	Until time.Time
}

// Consumers says how far those are who use the versions of one set. It is asked
// again and again while a gate is shut, by one goroutine, and may remember what
// it has seen; what it remembers opens no gate for another version or step.
type Consumers interface {
	// Introduced answers for gate A: every consumer has v, from the step of
	// v or a later one.
	Introduced(ctx context.Context, doc *versions.Document, v versions.Version) Answer
	// Left answers for gate B, without keep or grace: every consumer uses the
	// primary of doc instead of v, from the step of v or a later one, and the
	// migration is done.
	Left(ctx context.Context, doc *versions.Document, v versions.Version) Answer
}

// Shown is what one target, a Kubernetes Secret, shows of a set.
type Shown struct {
	Namespace, Name string
	Step            uint64
	Primary         string    // the version's id
	Since           time.Time // when it was first seen to show this step, by this process
}

// Targets says what the targets of a set show. Its error says that not all of
// them are known.
type Targets interface {
	Shown(set string) ([]Shown, error)
}
