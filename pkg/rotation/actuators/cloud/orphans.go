package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// intentPart is the part of a pending version that has no key yet. It disappears when
// the key is recorded, so that no consumer sees it.
const intentPart = "intent"

// intent records the known facts before a key is created.
type intent struct {
	At   time.Time `json:"at"`   // by the cloud's clock, in whole seconds
	Keys []string  `json:"keys"` // all that exist
}

func intentOf(keys []key, at time.Time) string {
	in := intent{At: at.UTC().Truncate(time.Second), Keys: []string{}}
	for _, key := range keys {
		in.Keys = append(in.Keys, key.id)
	}
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // encoding can fail only for a year above 9999
	}
	return string(text)
}

// listKeys returns the keys of the cloud, without those that this process has deleted.
func (k *Keys) listKeys(ctx context.Context) ([]key, time.Time, error) {
	keys, at, err := k.cloud.listKeys(ctx)
	keys = slices.DeleteFunc(keys, func(key key) bool { return k.removed[key.id] })
	return keys, at, err
}

// settle ends the keys that this process created but that the set did not record. Only
// this process ever had their secrets.
func (k *Keys) settle(ctx context.Context, doc *versions.Document) error {
	for version, m := range k.minted {
		v, known := doc.Version(version)
		switch has := k.cloud.keyOf(v); {
		case known && has == m.id:
		case known && has == "" && v.State == versions.Pending:
			continue
		default:
			if err := k.delete(ctx, m.id); err != nil {
				return err
			}
		}
		for _, part := range m.parts {
			part.Wipe()
		}
		delete(k.minted, version)
	}
	return nil
}

// clear removes the keys that an earlier attempt for a version may have left. It first
// waits until a request of that attempt, to the cloud or to Conjur, must have taken effect.
func (k *Keys) clear(ctx context.Context, v versions.Version, keys []key, at time.Time) error {
	text := v.Parts[intentPart]
	var in intent
	if err := json.Unmarshal(text.Bytes(), &in); err != nil {
		return fmt.Errorf("%w: version %s has neither a key nor a readable intent", actuators.ErrRefused, v.ID)
	}
	if k.prepared == string(text.Bytes()) && !k.sent[v.ID] {
		return nil // nothing was sent
	}
	if err := k.invisible(v.ID, at.Sub(in.At)); err != nil {
		return err
	}
	for _, key := range keys {
		mine, err := k.orphan(ctx, v, in, key)
		if err == nil && mine {
			err = k.still(ctx, v, v.State)
		}
		switch {
		case err != nil:
			return err
		case mine && k.cloud.marks():
			err = k.delete(ctx, key.id)
		case mine:
			err = k.end(ctx, key, " (created for "+v.ID+" and never recorded)", at, key.created.Add(k.config.DeleteAfter))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// orphan reports whether a key was created for a version and never recorded. A mark of the
// cloud tells that. Without marks, the key must be younger than the version's intent, no
// version may have it, and nobody may have used it.
func (k *Keys) orphan(ctx context.Context, v versions.Version, in intent, found key) (bool, error) {
	if found.uploaded || slices.Contains(in.Keys, found.id) || len(k.unknown(v.Set, []key{found})) == 0 {
		return false, nil
	}
	if k.cloud.marks() {
		return found.mark == markOf(v), nil
	}
	if found.created.Before(in.At) {
		return false, nil
	}
	used, _, err := k.cloud.lastUsed(ctx, found.id)
	return used.IsZero(), err
}

// markOf is the text by which a cloud with marks recognizes a version's key.
func markOf(v versions.Version) string { return "syncer " + v.Set.Identity + " " + v.ID }

// invisible returns a LaterError while the cloud may not show yet what an earlier request
// did. A request that was decided long ago was sent long ago.
func (k *Keys) invisible(what string, ago time.Duration) error {
	if rest := time.Until(k.since(what).Add(k.config.Consistent)); rest > 0 && ago < 10*k.config.Consistent {
		return &actuators.LaterError{Why: fmt.Sprintf("an earlier request may still take effect at %s; Syncer looks again for %v", k.cloud.holder(), rest.Round(time.Second)), Until: time.Now().Add(min(rest, time.Second))}
	}
	return nil
}

// end makes a key inactive, and deletes it after DeleteAfter. A key that an earlier
// process made inactive has been so since from, by the cloud's clock. Origin explains the
// key to an operator.
func (k *Keys) end(ctx context.Context, old key, origin string, at, from time.Time) error {
	off, seen := k.off[old.id]
	switch {
	case old.active && seen && time.Since(off) > k.config.Consistent:
		return &actuators.LaterError{Why: fmt.Sprintf("somebody activated the key %s%s again, so Syncer leaves it; to go on, deactivate or delete it", old.id, origin), Until: time.Now().Add(time.Minute)}
	case old.active && !seen:
		can, err := k.cloud.disable(ctx, old.id)
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !can {
			return k.delete(ctx, old.id)
		}
		off = time.Now()
		k.off[old.id] = off
	case !seen:
		off = time.Now().Add(from.Sub(at))
		k.off[old.id] = off
	}
	until := off.Add(k.config.DeleteAfter)
	if time.Now().Before(until) {
		return &actuators.LaterError{Why: fmt.Sprintf("the key %s%s is inactive, and is deleted %v after that", old.id, origin, k.config.DeleteAfter), Until: until}
	}
	return k.delete(ctx, old.id)
}

func (k *Keys) delete(ctx context.Context, id string) error {
	if err := k.cloud.remove(ctx, id); err != nil && !missing(err) {
		return err
	}
	k.removed[id] = true
	delete(k.off, id)
	return nil
}

func missing(err error) bool {
	f, ok := errors.AsType[*fault](err)
	return ok && f.missing()
}
