package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Environment is the sink for targets whose parts become environment variables of a
// command. It holds them only in memory. The zero Environment is empty and ready to
// use. It is safe for concurrent use.
type Environment struct {
	mu    sync.Mutex
	byKey map[targets.Key]map[string]secret.Value
}

// CheckEnvironmentName returns an error if a part's name is not a valid name of an
// environment variable. A shell must accept the name (POSIX.1, Base Definitions,
// 3.216 Name).
func CheckEnvironmentName(name string) error {
	if len(validation.IsCIdentifier(name)) > 0 {
		return fmt.Errorf("%q cannot be the name of an environment variable; use letters, digits and _, and no digit first", name)
	}
	return nil
}

// Read returns the applied parts.
func (e *Environment) Read(ctx context.Context, r records.Record) (State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return State{Parts: copyParts(e.byKey[r.Spec.Key]), Mode: r.Spec.File.Mode}, ctx.Err()
}

// longestVariable is Linux's limit for one "NAME=value" with its terminating byte:
// MAX_ARG_STRLEN of execve(2), for pages of 4 KiB.
const longestVariable = 32 * 4096

// Apply stores the parts. A value that contains a NUL byte or is too long is an
// error, because no environment can hold it.
func (e *Environment) Apply(ctx context.Context, r records.Record, c Changes) (records.Sight, error) {
	if err := ctx.Err(); err != nil || c.Empty() {
		return records.Sight{}, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Parts)) {
		errs = append(errs, CheckEnvironmentName(name))
		value := c.Parts[name].Bytes()
		if bytes.IndexByte(value, 0) >= 0 {
			errs = append(errs, fmt.Errorf("the value of %q has a NUL byte, which no environment can hold; deliver it as a file", name))
		}
		if n := len(name) + len("=") + len(value) + 1; n > longestVariable {
			errs = append(errs, fmt.Errorf("the value of %q has %d bytes, more than one environment variable can hold; deliver it as a file", name, len(value)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return records.Sight{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	secret.Wipe(e.byKey[r.Spec.Key])
	if e.byKey == nil {
		e.byKey = map[targets.Key]map[string]secret.Value{}
	}
	e.byKey[r.Spec.Key] = copyParts(c.Parts)
	return records.Sight{}, nil
}

// Variables lists all variables as "NAME=value", in ascending order. They are
// strings, which cannot be cleared.
func (e *Environment) Variables() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var variables []string
	for _, parts := range e.byKey {
		for name, value := range parts {
			variables = append(variables, name+"="+string(value.Bytes()))
		}
	}
	slices.Sort(variables)
	return variables
}

func copyParts(parts map[string]secret.Value) map[string]secret.Value {
	if parts == nil {
		return nil
	}
	copied := make(map[string]secret.Value, len(parts))
	for name, value := range parts {
		copied[name] = secret.New(bytes.Clone(value.Bytes()))
	}
	return copied
}
