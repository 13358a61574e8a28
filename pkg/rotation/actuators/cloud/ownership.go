package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// strangerError is the refusal of a key that belongs to another holder than the set's.
type strangerError struct{ key, owner, holder string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("the key %s belongs to %s instead of %s", e.key, e.owner, e.holder)
}

func (e *strangerError) Unwrap() error { return actuators.ErrRefused }

// adopted returns why a set cannot adopt a key. Its id must be that of a key of the
// holder, because Syncer later ends the key with this id.
func (k *Keys) adopted(ctx context.Context, v versions.Version) error {
	for _, name := range []string{accessKeyID, secretAccessKey, keyID, clientSecret} {
		if text := string(v.Parts[name].Bytes()); text != strings.TrimSpace(text) {
			return fmt.Errorf("%w: the adopted part %s begins or ends with white space; correct its variable", actuators.ErrRefused, name)
		}
	}
	if err := k.verify(ctx, v); err != nil {
		return err
	}
	keys, _, err := k.listKeys(ctx)
	if err != nil {
		return err
	}
	id := k.cloud.keyOf(v)
	i := slices.IndexFunc(keys, func(key key) bool { return key.id == id })
	if i < 0 {
		return fmt.Errorf("%w: %s has no key %s; correct the variables that the set adopts", actuators.ErrRefused, k.cloud.holder(), id)
	}
	if !strings.HasPrefix(string(v.Parts[clientSecret].Bytes()), keys[i].hint) {
		return fmt.Errorf("%w: the secret with the id %s has another beginning than the adopted part %s; correct the variables that the set adopts", actuators.ErrRefused, id, clientSecret)
	}
	return nil
}

// gone returns nil if a key that the cloud does not list was deleted. The key may also
// belong to another holder: somebody may have changed the settings of the set, or Syncer's
// own identity.
func (k *Keys) gone(ctx context.Context, v versions.Version, at time.Time) error {
	err := k.cloud.verify(ctx, v)
	later := &actuators.LaterError{Until: time.Now().Add(time.Minute)}
	stranger, other := errors.AsType[*strangerError](err)
	switch {
	case other:
		later.Why = fmt.Sprintf("%v: to go on, delete the key, or name its holder in the set again", stranger)
	case err == nil:
		later.Why = fmt.Sprintf("the key %s is valid, but it is not at %s: give Syncer the right account of the cloud, or delete the key", k.cloud.keyOf(v), k.cloud.holder())
	case errors.Is(err, actuators.ErrRefused):
		return k.invisible(v.ID, at.Sub(v.Since))
	default:
		return err
	}
	return later
}
