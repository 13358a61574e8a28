// Package rotation changes version sets in Conjur. An operator can change them by hand
// ([Manual]). A controller changes them automatically, as [versions.Next] decides
// ([Rotator]).
package rotation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Conjur is the part of the Conjur client that a set needs.
type Conjur interface {
	Versions(ctx context.Context, id string) ([]uint64, conjur.Reading)
	VariableAt(ctx context.Context, id string, version uint64) (secret.Value, conjur.Reading)
	SetAll(ctx context.Context, values []conjur.NewValue) error
	Set(ctx context.Context, id string, value secret.Value) error
	Check(ctx context.Context, t *conjur.Token, id, privilege string) conjur.Reading
}

// Client is the part of the Conjur client that a Rotator needs.
type Client interface {
	Conjur
	Variable(ctx context.Context, id, etag string) conjur.Values
	Resource(ctx context.Context, t *conjur.Token, id string) (conjur.Resource, conjur.Reading)
	List(ctx context.Context, length, offset int, etag string) (conjur.Page, conjur.Reading)
	Time(ctx context.Context) (time.Time, error)
}

// Errors of a set. They are wrapped.
var (
	// ErrUndeclared means that the policy does not declare the variable, or hides it.
	ErrUndeclared = errors.New("the variable is not declared, or this identity cannot see it")
	// ErrForbidden means that the identity may see the variable but not its value.
	ErrForbidden = errors.New("this identity may not read the set")
	// ErrConflict means that somebody else changed the set in the meantime.
	ErrConflict = errors.New("somebody else changed the set meanwhile")
	// ErrOwned means that a controller rotates the set.
	ErrOwned = errors.New("is rotated by itself")
	// ErrUncertain means that it is unknown whether the set was written.
	ErrUncertain = errors.New("it is not known whether the set was written")
	// ErrEarly means that a write of an earlier process may still be in flight.
	ErrEarly = errors.New("an earlier write of this set may still be in progress; Syncer retries")

	// errNoSet means that a value is not a version set.
	errNoSet = errors.New("it cannot be read")
)

// SetError is an error of one set.
type SetError struct {
	Set string // the variable's id
	Err error
}

func (e *SetError) Error() string { return "set " + e.Set + ": " + e.Err.Error() }

func (e *SetError) Unwrap() error { return e.Err }

// wrapError wraps err as an error of one set; nil stays nil.
func wrapError(set string, err error) error {
	if err == nil {
		return nil
	}
	return &SetError{set, err}
}

// Set is a version set in Conjur.
type Set struct {
	Conjur Conjur
	ID     string // of the variable

	server *server // known facts about the server; nil: none
}

// server is the known facts about the server that stores the sets.
type server struct {
	// uncompared means that the server accepts every write, whatever it is based on.
	uncompared atomic.Bool
	// from is the time from which no unknown write can be in flight, in nanoseconds since
	// begin. On a server without compare-and-swap, nothing is written before it.
	from  atomic.Int64
	begin time.Time
	warn  sync.Once // about a server without compare-and-swap
}

// quiet forbids writes of sets for a while, on a server without compare-and-swap.
func (s *server) quiet(d time.Duration) { s.from.Store(int64(time.Since(s.begin) + d)) }

// untilWrites returns the time until writes of sets are permitted; 0 means now.
func (s *server) untilWrites() time.Duration {
	return max(time.Duration(s.from.Load())-time.Since(s.begin), 0)
}

// Held is a set as it was read.
type Held struct {
	*versions.Document // nil if the variable has no value

	at   uint64 // Conjur's version number of the value; 0: none
	read time.Time
}

// fresh is how long after a read a set may be written without another check.
const fresh = 5 * time.Second

// Read returns the newest value of the set.
func (s Set) Read(ctx context.Context) (Held, error) {
	held, err := s.readNewest(ctx)
	return held, wrapError(s.ID, err)
}

func (s Set) readNewest(ctx context.Context) (Held, error) {
	begin := time.Now()
	at, err := s.readNewestNumber(ctx)
	if err != nil || at == 0 {
		return Held{read: begin}, err
	}
	doc, err := s.readAt(ctx, at)
	return Held{doc, at, begin}, err
}

// readNewestNumber returns the version number of the newest value; 0 if there is none.
func (s Set) readNewestNumber(ctx context.Context) (uint64, error) {
	numbers, reading := s.Conjur.Versions(ctx, s.ID)
	switch {
	case reading.Form == conjur.Missing:
		return 0, ErrUndeclared
	case reading.Err != nil:
		return 0, reading.Err
	case len(numbers) == 0:
		return 0, nil
	}
	return slices.Max(numbers), nil
}

func (s Set) readAt(ctx context.Context, at uint64) (*versions.Document, error) {
	value, reading := s.Conjur.VariableAt(ctx, s.ID, at)
	switch {
	case reading.Form == conjur.Forbidden:
		return nil, fmt.Errorf("%w: %w", ErrForbidden, reading.Err)
	case reading.Err != nil:
		return nil, reading.Err
	}
	defer value.Wipe()
	doc, err := versions.Parse(value.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSet, err)
	}
	return doc, nil
}

// Write sets the variable to doc, together with others, if the variable has not changed
// since the read. On a server without compare-and-swap, Write checks afterwards whether
// that was so. It then writes the others after the set.
func (s Set) Write(ctx context.Context, base Held, doc *versions.Document, others ...conjur.NewValue) error {
	return wrapError(s.ID, s.write(ctx, base, doc, others...))
}

func (s Set) write(ctx context.Context, base Held, doc *versions.Document, others ...conjur.NewValue) error {
	if doc.Identity == "" {
		identified := *doc
		identified.Identity, doc = rand.Text(), &identified
	}
	encoded, err := doc.Encode()
	if err != nil {
		return err
	}
	value := secret.New(encoded)
	defer value.Wipe()
	offered, err := s.swap(ctx, append([]conjur.NewValue{{ID: s.ID, Value: value, Version: &base.at}}, others...)...)
	var refused *conjur.RefusedError
	switch {
	case !offered:
		return s.writeUncompared(ctx, base, doc, value, others)
	case errors.Is(err, ErrConflict):
		return fmt.Errorf("%w; nothing was written, look at it again", err)
	case err == nil, errors.As(err, &refused):
		return err
	}
	return s.explainFailure(err)
}

// swap writes values together, if the first variable still has the version that its value
// names. offered is false if the server has no compare-and-swap; then nothing is written.
func (s Set) swap(ctx context.Context, values ...conjur.NewValue) (offered bool, err error) {
	if s.server != nil && s.server.uncompared.Load() {
		return false, nil
	}
	err = s.Conjur.SetAll(ctx, values)
	var refused *conjur.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		return true, ErrConflict
	case !errors.Is(err, conjur.ErrNotOffered):
		return true, err
	case s.server != nil:
		s.server.uncompared.Store(true)
	}
	return false, nil
}

// explainFailure translates err into its meaning for a write.
func (s Set) explainFailure(err error) error {
	if nothingWritten(err) {
		return fmt.Errorf("nothing was written: %w", err)
	}
	return fmt.Errorf("%w, look at it again: %w", ErrUncertain, err)
}

// nothingWritten reports whether an answer to a write proves that nothing was written.
func nothingWritten(err error) bool {
	var refused *conjur.RefusedError
	var answered *conjur.StatusError
	return errors.As(err, &refused) || errors.As(err, &answered) && answered.Status < http.StatusInternalServerError
}

// writeUncompared writes on a server without compare-and-swap. If the read was a while
// ago, it first checks whether the set has changed. Afterwards it checks whether another
// value was written in between.
func (s Set) writeUncompared(ctx context.Context, base Held, doc *versions.Document, value secret.Value, others []conjur.NewValue) error {
	if s.server != nil && s.server.untilWrites() > 0 {
		return ErrEarly
	}
	if s.server == nil || time.Since(base.read) > fresh {
		at, err := s.readNewestNumber(ctx)
		if err != nil {
			return err
		}
		if at != base.at {
			return fmt.Errorf("%w; nothing was written, look at it again", ErrConflict)
		}
	}
	if err := s.Conjur.Set(ctx, s.ID, value); err != nil {
		return s.explainFailure(err)
	}
	if err := s.settleWrite(ctx, base.at, doc); err != nil {
		return err
	}
	if err := writeValues(ctx, s.Conjur, others); err != nil {
		return fmt.Errorf("it was written, but %w", err)
	}
	return nil
}

// mostLag is how long a server may take to list a value that it accepted.
const mostLag = 30 * time.Second

// awaitListed returns the version number of the newest value, once the server lists the
// write that became at least the number put. Until then, the list says nothing about the
// writes of others.
func (s Set) awaitListed(ctx context.Context, put uint64) (newest uint64, err error) {
	begin, delays := time.Now(), retry.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}.Start()
	for {
		if newest, err = s.readNewestNumber(ctx); err != nil {
			return 0, fmt.Errorf("it was written, but not looked at again: %w", err)
		}
		if newest >= put {
			return newest, nil
		}
		if time.Since(begin) >= mostLag {
			return 0, fmt.Errorf("%w: the server does not list it after %v; rotation needs an address of Conjur at which it can read its own writes", ErrUncertain, mostLag)
		}
		select {
		case <-time.After(delays.NextBackOff()):
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: the server does not list it yet: %w", ErrUncertain, ctx.Err())
		}
	}
}

// settleWrite returns nil if mine, which was written over base, holds. Other documents may
// have been written over base too. Then settleWrite writes the document that holds, adds
// versions that only the others have as retiring, and checks again.
func (s Set) settleWrite(ctx context.Context, base uint64, mine *versions.Document) error {
	holds := mine
	for put := base + 1; ; put++ {
		newest, err := s.awaitListed(ctx, put)
		if err != nil {
			return err
		}
		if newest == put {
			break
		}
		var docs []*versions.Document
		var from uint64 // version number of the document that holds
		for at := base + 1; at <= newest; at++ {
			doc, err := s.readAt(ctx, at)
			switch {
			case errors.Is(err, errNoSet):
				continue // therefore it cannot hold
			case err != nil:
				return s.explainFailure(err)
			case len(docs) == 0 || doc.Supersedes(holds):
				holds, from = doc, at
			}
			docs = append(docs, doc)
		}
		next := holds.Merge(versions.Entry{At: time.Now().UTC()}, docs...)
		if from == newest && len(next.Versions) == len(holds.Versions) {
			break // another process has settled it
		}
		holds = next
		again, err := holds.Encode()
		if err != nil {
			return fmt.Errorf("%w, and the values of both writes do not fit together: %w", ErrConflict, err)
		}
		value := secret.New(again)
		err = s.Conjur.Set(ctx, s.ID, value)
		value.Wipe()
		if err != nil {
			return s.explainFailure(err)
		}
		put = newest
	}
	if !holds.ContainsLastStepOf(mine) {
		return fmt.Errorf("%w; another write came first and holds, so look at the set and repeat", ErrConflict)
	}
	return nil
}

// writeValues writes published values.
func writeValues(ctx context.Context, client Conjur, values []conjur.NewValue) error {
	for _, v := range values {
		if err := client.Set(ctx, v.ID, v.Value); err != nil {
			return fmt.Errorf("%q is not published: %w", v.ID, err)
		}
	}
	return nil
}
