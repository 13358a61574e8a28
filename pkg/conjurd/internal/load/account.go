package load

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Account creates the account with its user admin, root policy and token key,
// unless it exists. If tokenKey is nil, Account generates a key.
func Account(tx *store.Tx, account string, tokenKey *rsa.PrivateKey, now time.Time) error {
	if have, err := tx.TokenKey(account); err != nil || have != nil {
		return err
	}
	if account == "" || strings.ContainsAny(account, ":/\x00 ") {
		return fmt.Errorf("account name %q: use letters, digits, - and _", account)
	}
	key, err := slosilo.NewKey(tokenKey)
	if err != nil {
		return err
	}
	if err := tx.PutTokenKey(account, key.Marshal()); err != nil {
		return err
	}
	admin := string(policy.MakeRef(account, "user", "admin"))
	root := string(policy.MakeRef(account, "policy", policy.RootPolicy))
	for _, id := range []string{admin, root} {
		if err := tx.PutObject(id, &store.Object{CreatedAt: now, Owner: admin}); err != nil {
			return err
		}
		if err := tx.PutMembership(store.Membership{Role: id, Member: admin, Admin: true, Ownership: true}); err != nil {
			return err
		}
	}
	return tx.PutCredentials(admin, &store.Credentials{APIKey: NewAPIKey(), RotatedAt: now})
}

// ErrTaken means that a host with this name exists and another creator made it.
var ErrTaken = errors.New("there is a host of that name, which the host factory did not make")

// Host creates a host for a host factory. The factory owns the host, and the host
// joins the factory's layers. A host that the factory created earlier gets a new
// API key and is otherwise unchanged.
func Host(tx *store.Tx, factory string, id policy.Ref, notes []policy.Annotation, now time.Time) (*store.Object, []byte, error) {
	key := NewAPIKey()
	have, err := tx.Object(string(id))
	if err != nil {
		return nil, nil, err
	}
	if have != nil {
		return have, key, renew(tx, factory, string(id), have, key, now)
	}
	f, err := tx.Object(factory)
	if err != nil || f == nil {
		return nil, nil, err
	}
	o := &store.Object{CreatedAt: now, Owner: factory}
	for _, n := range notes {
		o.Annotations = append(o.Annotations, store.Annotation{Name: n.Name, Value: n.Value, Policy: f.Policy})
	}
	errs := []error{
		tx.PutObject(string(id), o),
		tx.PutMembership(store.Membership{Role: string(id), Member: factory, Admin: true, Ownership: true}),
		tx.PutCredentials(string(id), &store.Credentials{APIKey: key, RotatedAt: now}),
	}
	for _, layer := range slices.DeleteFunc(f.Layers, func(l string) bool { return !tx.Exists(l) }) {
		errs = append(errs, tx.PutMembership(store.Membership{Role: layer, Member: string(id)}))
	}
	return o, key, errors.Join(errs...)
}

func renew(tx *store.Tx, factory, id string, o *store.Object, key []byte, now time.Time) error {
	cred, err := tx.Credentials(id)
	if err != nil {
		return err
	}
	if cred == nil || o.Owner != factory {
		return ErrTaken
	}
	cred.APIKey, cred.RotatedAt = key, now
	return tx.PutCredentials(id, cred)
}
