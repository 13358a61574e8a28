package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Check returns why keys cannot be rotated. It changes nothing.
func (k *Keys) Check(ctx context.Context, doc *versions.Document) []error {
	problems := k.Barred(ctx, doc)
	if p, ok := k.cloud.(interface{ permitted(context.Context) error }); ok && problems == nil {
		ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
		defer cancel()
		if err := p.permitted(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// Barred names the keys that the set does not know, if they leave no room for two keys of
// the set.
func (k *Keys) Barred(ctx context.Context, doc *versions.Document) []error {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	keys, _, err := k.cloud.listKeys(ctx)
	if err != nil {
		return []error{err}
	}
	if len(doc.Versions) == 0 && k.config.Adopts { // one of them will be adopted
		keys = keys[min(1, len(keys)):]
	}
	if k.cloud.limit()-len(k.unknown(doc, keys)) < 2 {
		return []error{k.full(doc, keys)}
	}
	return nil
}

// full says which keys leave no room.
func (k *Keys) full(doc *versions.Document, keys []key) error {
	text := fmt.Sprintf("%s can have %d keys, and a rotation needs two of them", k.cloud.holder(), k.cloud.limit())
	if unknown := k.unknown(doc, keys); len(unknown) > 0 {
		return fmt.Errorf("%s; the set does not know %s: delete a key that nobody uses, or adopt it", text, strings.Join(unknown, ", "))
	}
	return errors.New(text + "; all keys belong to versions that are still valid")
}

// unknown returns the ids of keys that no version of the set has.
func (k *Keys) unknown(doc *versions.Document, keys []key) (ids []string) {
	for _, key := range keys {
		if !slices.ContainsFunc(doc.Versions, func(v versions.Version) bool { return k.cloud.keyOf(v) == key.id }) {
			ids = append(ids, key.id)
		}
	}
	return ids
}

// explained adds to a refusal which keys leave no room, or that a policy forbids new ones.
func (k *Keys) explained(f *fault, doc *versions.Document, keys []key) error {
	switch {
	case !f.full():
		return f
	case len(keys) < k.cloud.limit():
		return fmt.Errorf("%w; %s has room for a key, so let the organization's policy permit one", f, k.cloud.holder())
	}
	return fmt.Errorf("%w; %w", f, k.full(doc, keys))
}
