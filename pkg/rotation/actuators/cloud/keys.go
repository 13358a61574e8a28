// Package cloud rotates keys that a cloud issues: those of a user of AWS, a service account
// of Google Cloud, or an application of Azure.
//
// The cloud makes a key and shows its secret only once. Therefore a version first records
// an intent: the keys that exist before. If a process dies between the creation of a key
// and its record, nobody has the secret. The next process finds that key by comparing the
// cloud's keys with the intent and with the set (decision 054).
package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Defaults of Config.
const (
	defaultDeleteAfter = 30 * time.Minute
	defaultTimeout     = 30 * time.Second
)

// Config configures the keys of one set.
type Config struct {
	// Current reads the set again. The caller wipes the result.
	Current func(context.Context) (*versions.Document, error)
	// Adopts means that the first version has a key that exists already.
	Adopts bool
	// DeleteAfter is how long a key stays inactive before it is deleted. Default: 30m.
	DeleteAfter time.Duration
	// Unused is how long ago the last use of a key must be before it counts as unused. 0
	// means that the cloud is not asked.
	Unused time.Duration
	// Consistent is how long a change may take to be visible everywhere in the cloud.
	// Default: 30s for AWS, 2m for the others.
	Consistent time.Duration
	// Timeout limits one act. Default: 30s.
	Timeout time.Duration
}

// key is a key as the cloud lists it, without its secret.
type key struct {
	id      string
	created time.Time
	active  bool
	mark    string // the version that it was created for, in a cloud with marks
	hint    string // the first characters of its secret, if the cloud shows them
	// uploaded means that the cloud did not create it.
	uploaded bool
}

// provider is the part of a cloud that Keys needs. Its errors are of type [fault], or
// wrap [actuators.ErrRefused] if a key is not accepted.
type provider interface {
	// holder names the owner of the keys, such as "the IAM user shop".
	holder() string
	// limit is the maximum number of keys.
	limit() int
	// marks reports whether the cloud stores the purpose of a key with it.
	marks() bool
	// listKeys returns all keys, and the time of the cloud's clock.
	listKeys(ctx context.Context) ([]key, time.Time, error)
	// create makes a key for a version. It returns the key's id and the version's parts.
	create(ctx context.Context, v versions.Version) (string, map[string]secret.Value, error)
	// disable makes a key inactive; false means that this cloud can only delete keys.
	disable(ctx context.Context, id string) (bool, error)
	remove(ctx context.Context, id string) error
	// complete returns the parts that a version with an adopted key lacks.
	complete(v versions.Version) map[string]secret.Value
	// keyOf returns the id of a version's key; empty if it has none yet.
	keyOf(v versions.Version) string
	verify(ctx context.Context, v versions.Version) error
	// lastUsed returns when a key was used last, by the local clock, and by what; zero if
	// that is never or not known.
	lastUsed(ctx context.Context, id string) (time.Time, string, error)
}

// Keys is an Actuator for keys that a cloud issues. The id of a key is its fence: a late
// act can affect only the key that it names. One goroutine uses it.
type Keys struct {
	config Config
	cloud  provider

	prepared string               // the last intent of this process
	sent     map[string]bool      // by version: a request may have created a key
	minted   map[string]minted    // by version: created by this process, and not yet in the set
	first    map[string]time.Time // by version, or by key: when this process first waited for it
	off      map[string]time.Time // by key: since when it is inactive, by the local clock
	removed  map[string]bool      // by key: deleted by this process
}

// minted is a key that only this process knows.
type minted struct {
	id    string
	parts map[string]secret.Value
}

func newKeys(config Config, consistent time.Duration, cloud provider) *Keys {
	config.DeleteAfter = cmp.Or(config.DeleteAfter, defaultDeleteAfter)
	config.Consistent = cmp.Or(config.Consistent, consistent)
	config.Timeout = cmp.Or(config.Timeout, defaultTimeout)
	return &Keys{
		config: config, cloud: cloud, sent: map[string]bool{}, minted: map[string]minted{},
		first: map[string]time.Time{}, off: map[string]time.Time{}, removed: map[string]bool{},
	}
}

// Prepare returns the intent of a new version. There must be room for its key.
func (k *Keys) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	if err := k.settle(ctx, doc); err != nil {
		return nil, err
	}
	keys, at, err := k.listKeys(ctx)
	if err != nil {
		return nil, err
	}
	if len(keys) >= k.cloud.limit() && !(k.config.Adopts && len(doc.Versions) == 0) {
		return nil, k.full(doc, keys)
	}
	k.prepared = intentOf(keys, at)
	return map[string]secret.Value{intentPart: secret.New([]byte(k.prepared))}, nil
}

// Apply creates the key of a version, unless the version has one. If an earlier request
// may have created a key, Apply first removes that key, because nobody has its secret.
func (k *Keys) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	if err := k.settle(ctx, v.Set); err != nil {
		return nil, err
	}
	if k.cloud.keyOf(v) != "" {
		return k.applied(ctx, v)
	}
	if m, ok := k.minted[v.ID]; ok {
		return clones(m.parts), nil
	}
	keys, at, err := k.listKeys(ctx)
	if err == nil {
		err = k.clear(ctx, v, keys, at)
	}
	if err != nil {
		return nil, err
	}
	if err := k.still(ctx, v, versions.Pending); err != nil {
		return nil, err
	}
	k.sent[v.ID] = true
	id, parts, err := k.cloud.create(ctx, v)
	if f, ok := errors.AsType[*fault](err); ok && f.known() {
		return nil, fmt.Errorf("%w: %w", actuators.ErrRefused, k.explained(f, v.Set, keys))
	} else if err != nil {
		return nil, err
	}
	parts[intentPart] = secret.Value{}
	k.minted[v.ID] = minted{id, parts}
	return clones(parts), nil
}

// applied verifies a version that has its key, and returns the parts that it lacks.
func (k *Keys) applied(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	lacks, check := k.cloud.complete(v), k.verify
	if v.Parts[intentPart].Len() > 0 { // it was adopted
		lacks[intentPart], check = secret.Value{}, k.adopted
	}
	if err := check(ctx, v); err != nil {
		return nil, err
	}
	return lacks, nil
}

// Verify uses a key. The cloud may not know a new key everywhere at once.
func (k *Keys) Verify(ctx context.Context, v versions.Version) error {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	return k.verify(ctx, v)
}

func (k *Keys) verify(ctx context.Context, v versions.Version) error {
	id := k.cloud.keyOf(v)
	if id == "" {
		return fmt.Errorf("%w: version %s has no key yet", actuators.ErrRefused, v.ID)
	}
	err := k.cloud.verify(ctx, v)
	_, stranger := errors.AsType[*strangerError](err)
	if errors.Is(err, actuators.ErrRefused) && !stranger && (v.State == versions.Pending || v.State == versions.Accepted) {
		if until := k.since(id).Add(k.config.Consistent); time.Now().Before(until) {
			return &actuators.LaterError{Why: fmt.Sprintf("%s does not accept the new key %s everywhere yet; Syncer tries it for %v", k.cloud.holder(), id, k.config.Consistent), Until: time.Now().Add(time.Second)}
		}
	}
	return err
}

// Revoke makes the key of a version inactive, and deletes it after DeleteAfter.
func (k *Keys) Revoke(ctx context.Context, v versions.Version) error {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	if err := k.settle(ctx, v.Set); err != nil {
		return err
	}
	keys, at, err := k.listKeys(ctx)
	if err != nil {
		return err
	}
	id := k.cloud.keyOf(v)
	switch _, intended := v.Parts[intentPart]; {
	case id == "" && intended: // it was dropped before its key was recorded
		return k.clear(ctx, v, keys, at)
	case id == "", intended: // another actuator made it, or it was never accepted as adopted
		return nil
	}
	i := slices.IndexFunc(keys, func(key key) bool { return key.id == id })
	if i < 0 {
		return k.gone(ctx, v, at)
	}
	if err := k.still(ctx, v, versions.Revoking); err != nil {
		return err
	}
	return k.end(ctx, keys[i], "", at, v.Since)
}

// InUse names the key of a version if it was used within Unused.
func (k *Keys) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, k.config.Timeout)
	defer cancel()
	id := k.cloud.keyOf(v)
	if id == "" || v.Forced || k.config.Unused == 0 {
		return nil, nil
	}
	at, by, err := k.cloud.lastUsed(ctx, id)
	if err != nil { // AWS refuses this call for a key that does not exist
		keys, _, unknown := k.listKeys(ctx)
		if unknown == nil && !slices.ContainsFunc(keys, func(key key) bool { return key.id == id }) {
			return nil, nil
		}
	}
	if err != nil || at.IsZero() || time.Since(at) > k.config.Unused {
		return nil, err
	}
	return []string{strings.TrimSpace(fmt.Sprintf("the key %s, last used %s %s", id, at.UTC().Format("2006-01-02T15:04Z"), by))}, nil
}

func (k *Keys) still(ctx context.Context, v versions.Version, state versions.State) error {
	doc, err := actuators.Still(ctx, k.config.Current, v, state)
	if err != nil {
		return err
	}
	doc.Wipe()
	return nil
}

// since returns when this process first asked for what.
func (k *Keys) since(what string) time.Time {
	if k.first[what].IsZero() {
		k.first[what] = time.Now()
	}
	return k.first[what]
}

func clones(parts map[string]secret.Value) map[string]secret.Value {
	copied := map[string]secret.Value{}
	for name, part := range parts {
		copied[name] = clone(part)
	}
	return copied
}

func clone(part secret.Value) secret.Value { return secret.New(slices.Clone(part.Bytes())) }
