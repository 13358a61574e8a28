package sinks

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/targets"
)

// MissingError says that a Kubernetes Secret is not there and is not to be
// created. It is delivered as soon as somebody creates it.
type MissingError struct{ Namespace, Name string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no Secret %s/%s; create it, or set create: true for it", e.Namespace, e.Name)
}

// RefusedError says that a target cannot take what it is to hold, so that
// nothing was sent. No retry mends it, only a change of the definition, of a
// value or of what is there.
type RefusedError struct {
	Target targets.Key
	Reason string // says what to do; holds no value
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Target, e.Reason) }
