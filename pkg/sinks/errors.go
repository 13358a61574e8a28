package sinks

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/targets"
)

// MissingError means that a Kubernetes Secret does not exist and must not be
// created. Delivery follows as soon as somebody creates it.
type MissingError struct{ Namespace, Name string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no Secret %s/%s; create it, or set create: true for it", e.Namespace, e.Name)
}

// RefusedError means that a target cannot hold the wanted content, so nothing was
// sent, or that it holds other content than was sent. A retry cannot succeed until the definition, a value or the target changes.
type RefusedError struct {
	Target targets.Key
	Reason string // says what to do; contains no value
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Target, e.Reason) }

// TargetError is any other error of a target. Its text names the target.
type TargetError struct {
	Target targets.Key
	Err    error
}

func (e *TargetError) Error() string { return fmt.Sprintf("%s: %v", e.Target, e.Err) }

// Unwrap returns the error without the target's name.
func (e *TargetError) Unwrap() error { return e.Err }
