package conjurd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// LoadMode says how a policy load may change existing objects.
type LoadMode = load.Mode

// The modes correspond to methods of the HTTP interface.
const (
	Add     = load.Add     // POST: only adds
	Update  = load.Update  // PATCH: also changes, and applies !delete, !revoke and !deny
	Replace = load.Replace // PUT: also deletes what the branch held and the text omits
)

// Role is a user or host that a policy load created.
type Role struct {
	ID     string // full: "account:host:app/web"
	APIKey string
}

// LoadPolicy loads a text in Conjur's policy language into a branch, as the
// account's admin. The branch is "root" or the id of a policy. On an error nothing
// is loaded. LoadPolicy returns the users and hosts that it created, in the order
// of the text.
func (s *Server) LoadPolicy(ctx context.Context, mode LoadMode, branch string, text io.Reader) ([]Role, error) {
	b, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("policy for %s: %w", branch, err)
	}
	req := load.Request{
		Account: s.opt.Account, Branch: branch, Mode: mode, Text: b,
		Role: s.admin(), ClientIP: "127.0.0.1", Now: s.now(),
	}
	select {
	case s.loading <- struct{}{}:
		defer func() { <-s.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	res, err := s.load(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("policy for %s: %w", branch, err)
	}
	roles := make([]Role, len(res.Created))
	for i, c := range res.Created {
		roles[i] = Role{ID: c.Role, APIKey: c.APIKey}
	}
	return roles, nil
}

// load runs one load. The caller holds the slot s.loading.
func (s *Server) load(ctx context.Context, req load.Request) (res *load.Result, err error) {
	st, err := req.Parse()
	if err != nil {
		return nil, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		res, err = load.Apply(tx, req, st)
		return err
	})
	return res, err
}

func (s *Server) admin() string { return roleOf(s.opt.Account, "admin") }

// Set gives a variable of the account a new value. id has no account and no kind.
func (s *Server) Set(ctx context.Context, id string, value []byte) error {
	return s.SetMany(ctx, map[string][]byte{id: value})
}

// SetMany sets all values. On an error it sets none, and the error names every
// invalid id.
func (s *Server) SetMany(ctx context.Context, values map[string][]byte) error {
	return s.update(ctx, func(tx *store.Tx) error {
		var faults []error
		for _, id := range slices.Sorted(maps.Keys(values)) {
			value := values[id]
			full := policy.MakeRef(s.opt.Account, "variable", id)
			err := s.checkValue(value)
			if err == nil && !tx.Exists(string(full)) {
				err = errors.New("there is no such variable")
			}
			if err == nil {
				_, err = tx.SetValue(string(full), value)
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("variable %s: %w", id, err))
			}
		}
		return errors.Join(faults...)
	})
}

var (
	errEmptyValue = errors.New("'value' may not be empty")
	errLongValue  = errors.New("'value' is too large")
)

// checkValue reports whether the value is allowed.
func (s *Server) checkValue(value []byte) error {
	if isBlank(value) {
		return errEmptyValue
	}
	if int64(len(value)) > s.maxValue() {
		return errLongValue
	}
	return nil
}

// isBlank reports whether the value is only ASCII white space, which the genuine
// server treats as empty.
func isBlank(value []byte) bool {
	for _, c := range value {
		if c != ' ' && (c < '\t' || c > '\r') {
			return false
		}
	}
	return true
}
