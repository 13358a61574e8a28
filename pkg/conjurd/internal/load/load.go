// Package load loads a policy text into a store: all of it or nothing.
package load

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Mode says how a load may change existing objects.
type Mode int

const (
	// Add only adds, and does not change existing objects.
	Add Mode = iota
	// Update also changes objects, and applies the text's deletions.
	Update
	// Replace also deletes objects that an earlier load of the policy created and
	// that the text omits.
	Replace
)

// Errors without a position in the text. Errors with a position are *policy.Error.
var (
	ErrEmpty    = errors.New("policy_text is not present")
	ErrDeletion = errors.New("policy_text may not contain deletion statements")
)

// NoBranchError means that the policy to load into does not exist.
type NoBranchError struct{ Policy policy.Ref }

func (e *NoBranchError) Error() string { return e.Policy.NotFound() }

// Request is one load.
type Request struct {
	Account string
	Branch  string // id of the policy; "root" for the root policy
	Mode    Mode
	Text    []byte
	// Role is the caller. Outside the branch, the load can only touch objects on
	// which Role has the privilege.
	Role     string
	ClientIP string
	Now      time.Time
	// May, unless it is nil, runs in the transaction before the load. Its error ends
	// the load.
	May func(*store.Tx) error
}

// Created is a user or host that did not exist before.
type Created struct {
	Role   string // full name
	APIKey string
}

// Result of a load.
type Result struct {
	Created  []Created // in the order of the text
	Version  uint64    // of the policy
	Warnings []string
}

// Parse parses the text and performs the checks that need no store.
func (r *Request) Parse() (*policy.Statements, error) {
	if len(bytes.TrimSpace(r.Text)) == 0 {
		return nil, ErrEmpty
	}
	st, err := policy.Parse(policy.NewNamespace(r.Account, r.Branch), r.Text)
	if err != nil {
		return nil, err
	}
	if r.Mode == Add && st.Deleting() {
		return nil, ErrDeletion
	}
	return st, nil
}

// policy returns the full name of the policy to load into.
func (r *Request) policy() string { return string(policy.MakeRef(r.Account, "policy", r.Branch)) }

// Replaceable reports whether the roles may replace the policy. They need the
// privilege update on everything in it, because a replacement can delete it. The
// genuine server does not count users, and nothing below the root policy.
func (r *Request) Replaceable(tx *store.Tx, roles store.Roles) bool {
	for id, o := range tx.Objects(r.Account + ":") {
		if (r.inBranch(policy.Ref(id)) || o.Policy == r.policy()) && !tx.Allowed(roles, "update", id, o) {
			return false
		}
	}
	return true
}

// Apply applies the statements from r.Parse to the store. After an error the caller
// must roll the transaction back.
func Apply(tx *store.Tx, r Request, st *policy.Statements) (*Result, error) {
	if r.May != nil {
		if err := r.May(tx); err != nil {
			return nil, err
		}
	}
	if !tx.Exists(r.policy()) {
		return nil, &NoBranchError{policy.Ref(r.policy())}
	}
	l := loader{
		tx: tx, req: r, branch: r.policy(), ns: policy.NewNamespace(r.Account, r.Branch),
		roles: tx.RolesOf(r.Role), st: st, res: &Result{Warnings: st.Warnings}, touched: map[policy.Ref]bool{},
	}
	// Removals come last, so that an object that the text both creates and removes
	// is absent afterwards.
	for _, step := range []func() error{l.drop, l.declare, l.relate, l.deleteRelations, l.delete} {
		clear(l.touched) // owners may have changed
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := tx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(r.Text)
	version, err := tx.AddPolicyVersion(l.branch, store.PolicyVersion{
		CreatedAt: r.Now, FinishedAt: r.Now, Text: string(r.Text), SHA256: hex.EncodeToString(sum[:]),
		ClientIP: r.ClientIP, Role: r.Role,
	})
	l.res.Version = version
	return l.res, err
}

// loader is the state of one Apply.
type loader struct {
	tx     *store.Tx
	req    Request
	branch string // full name of the policy to load into
	ns     policy.Namespace
	roles  store.Roles // of the caller
	st     *policy.Statements
	res    *Result
	// touched holds the objects that mayTouch has passed. A statement can name one
	// object, which may be large, with each item of a list.
	touched map[policy.Ref]bool
}

// drop, in a Replace, deletes the objects that the branch declared and the text
// omits.
func (l *loader) drop() error {
	if l.req.Mode != Replace {
		return nil
	}
	keep := map[string]bool{}
	for _, rec := range l.st.Records {
		keep[string(rec.ID)] = true
	}
	var gone []string
	for _, id := range l.tx.Declared(l.branch) {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	if err := l.deleteObjects(gone); err != nil {
		return err
	}
	return l.tx.Forget(map[string]bool{l.branch: true}, false)
}

// delete removes the objects that the text names, with everything that depends on
// them.
func (l *loader) delete() error {
	var gone []string
	for _, ref := range l.st.Deletes {
		if ref == policy.MakeRef(l.req.Account, "user", "admin") || ref == policy.MakeRef(l.req.Account, "policy", policy.RootPolicy) {
			return &policy.Error{Message: ref.Title() + " cannot be deleted"}
		}
		gone = append(gone, string(ref))
	}
	if err := l.deleteObjects(gone); err != nil {
		return err
	}
	if !l.tx.Exists(l.branch) {
		return &policy.Error{Message: policy.Ref(l.branch).Title() + " cannot be deleted by a load into it"}
	}
	l.res.Created = slices.DeleteFunc(l.res.Created, func(c Created) bool { return !l.tx.Exists(c.Role) })
	return nil
}

// deleteObjects deletes the objects, and all objects that they own and declared. It
// checks each: an object of this branch may own another branch.
func (l *loader) deleteObjects(ids []string) error {
	seen := map[string]bool{}
	for todo := slices.Clone(ids); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := l.mayTouch(policy.Ref(id)); err != nil {
			return err
		}
		todo = append(append(todo, l.tx.Owned(id)...), l.tx.Declared(id)...)
	}
	return l.tx.DeleteObjects(ids...)
}

// known checks that the objects to which the text refers exist.
func (l *loader) known(refs ...policy.Ref) error {
	for _, ref := range refs {
		if !l.tx.Exists(string(ref)) {
			return l.st.NotFound(ref)
		}
	}
	return nil
}

// mayTouch checks that ref lies in the branch, was declared by it, or belongs to
// the caller. Therefore the privilege to load one branch does not extend to others.
func (l *loader) mayTouch(ref policy.Ref) error {
	if l.req.inBranch(ref) || l.touched[ref] {
		return l.tx.Err()
	}
	o, err := l.tx.Object(string(ref))
	if err != nil || o == nil || o.Policy == l.branch || l.roles[o.Owner] || l.roles[string(ref)] && ref.Kind() == "policy" {
		l.touched[ref] = true
		return err
	}
	return &policy.Error{Message: fmt.Sprintf("%s is outside of %s and not owned by %s",
		ref.Title(), policy.Ref(l.branch).Title(), policy.Ref(l.req.Role).Title())}
}

// inBranch reports whether the policy to load into contains the object.
func (r *Request) inBranch(ref policy.Ref) bool {
	switch kind := ref.Kind(); {
	case r.Branch == policy.RootPolicy:
		return ref.Account() == r.Account
	case kind == "user":
		in := "@" + strings.ReplaceAll(r.Branch, "/", "-")
		last := max(strings.LastIndexByte(ref.ID(), '@'), 0) // a user's name may contain @
		return strings.HasSuffix(ref.ID(), in) || strings.HasPrefix(ref.ID()[last:], in+"-")
	}
	return strings.HasPrefix(ref.ID(), r.Branch+"/")
}

// NewAPIKey generates a key in the genuine server's format: lower-case letters and
// digits, 280 random bits.
func NewAPIKey() []byte {
	b := make([]byte, 35)
	_, _ = rand.Read(b) // never fails
	return []byte(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)))
}
