package load

import (
	"crypto/rsa"
	"fmt"
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
