package sinks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// FieldManager is the name under which the API server keeps which fields of a
// Secret are ours.
const FieldManager = "syncer"

// What the very write that changes a Secret's data leaves on it.
const (
	// RevisionAnnotation is a decimal number that is greater after each
	// change, also over a deletion and re-creation of the Secret. It says
	// nothing of the content.
	RevisionAnnotation = "conjur.org/secret-revision"
	// RevisedAnnotation is the time of the change (RFC 3339, UTC).
	RevisedAnnotation = "conjur.org/secret-revised"
	// FilledAnnotation is the revision that filled a Secret in which nothing
	// of ours had been: one that nobody can have used before.
	FilledAnnotation = "conjur.org/secret-filled"
)

// KubeSecrets is the sink for targets that are Kubernetes Secrets: a part is a
// key of the Secret's data. It is safe for use by several goroutines, but not
// for two changes of one target at a time.
//
// A change is one server-side apply, so readers find the old keys or the new
// ones. Ours are the keys that our field manager owns or the target names;
// all others, the conjur-map, foreign labels, annotations and owner references
// stay as they are, and so does the Secret itself when the last key goes. The
// keys that a Secret of its type must have cannot go; what is in their place
// then holds nothing, and is not read as a part.
//
// Values that are not ours are cleared as soon as an answer was looked at. The
// client library makes copies that nobody can clear.
type KubeSecrets struct {
	secrets corev1client.SecretsGetter
	now     func() time.Time

	mu   sync.Mutex // never held over I/O
	seen map[targets.Key]identity
}

// identity is which Secret was seen last under a name, and in which state.
type identity struct {
	uid     types.UID
	version string
}

// NewKubeSecrets makes the sink, without asking the API server anything. The
// client needs the verbs get and patch for Secrets, and create for targets
// that are made when missing.
func NewKubeSecrets(secrets corev1client.SecretsGetter) *KubeSecrets {
	return &KubeSecrets{secrets: secrets, now: time.Now, seen: map[targets.Key]identity{}}
}

// Seen gives the resource version of the Secret as it was last read or
// written, "" when it was not or is gone: an event with that version tells
// nothing new.
func (k *KubeSecrets) Seen(namespace, name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[targets.KubeSecretKey(namespace, name)].version
}

// Forget drops what is known of a Secret that is no longer kept in sync.
func (k *KubeSecrets) Forget(namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.seen, targets.KubeSecretKey(namespace, name))
}

func (k *KubeSecrets) remember(s *targets.Secret, live *corev1.Secret) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[targets.KubeSecretKey(s.Namespace, s.Name)] = identity{live.UID, live.ResourceVersion}
}

func (k *KubeSecrets) last(s *targets.Secret) identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[targets.KubeSecretKey(s.Namespace, s.Name)]
}

// Read finds the keys that are ours. The state is stale when our field manager
// does not own all that the target names, because somebody else wrote them. A
// Secret that does not exist is nothing if the target is to be created, and a
// [*MissingError] otherwise.
func (k *KubeSecrets) Read(ctx context.Context, t *targets.Target) (State, error) {
	live, err := k.get(ctx, t)
	switch {
	case err != nil:
		return State{}, failed(t, err)
	case live == nil:
		k.Forget(t.Secret.Namespace, t.Secret.Name)
		if !t.Secret.Create {
			return State{}, &MissingError{t.Secret.Namespace, t.Secret.Name}
		}
		return State{}, nil
	}
	defer clearData(live.Data)
	state, err := stateOf(live, t)
	if err != nil {
		return State{}, failed(t, err)
	}
	k.remember(t.Secret, live)
	return state, nil
}

// stateOf takes the values that are ours out of the Secret.
func stateOf(live *corev1.Secret, t *targets.Target) (State, error) {
	owned, err := ownedFields(live.ManagedFields)
	if err != nil {
		return State{}, err
	}
	var state State
	named, blank := namedKeys(t), blankKeys(live.Type, live.Data)
	for key := range ourKeys(live, owned, named) {
		if blank[key] {
			continue
		}
		if state.Parts == nil {
			state.Parts = map[string]secret.Value{}
		}
		state.Parts[key] = secret.New(live.Data[key])
		delete(live.Data, key)
		state.Stale = state.Stale || named[key] && !owned.has("data", key)
	}
	return state, nil
}

// maxAttempts is how often Apply tries when others change the Secret all the
// time.
const maxAttempts = 16

// Apply makes the changes. It writes no key that is neither in the parts
// wanted nor named by the changes, and nothing at all when all is as wanted
// already. A change that no retry can bring about is a [*RefusedError]; of
// that kind are a Secret that is immutable or too large, and content that does
// not fit the Secret's type. After an error the data is as before, or as
// wanted if the answer was lost.
//
// A Secret that was deleted and made anew since the last Read is not written
// to, as it may hold another definition: that is an error, and goes with the
// next Read.
func (k *KubeSecrets) Apply(ctx context.Context, t *targets.Target, c Changes) error {
	if err := ctx.Err(); err != nil || c.Empty() {
		return err
	}
	seen := k.last(t.Secret).uid
	var err error
	for attempt := range maxAttempts {
		if err = pause(ctx, attempt); err != nil {
			break
		}
		if err = k.apply(ctx, t, c, seen); !errors.Is(err, errConflict) {
			break
		}
	}
	return failed(t, err)
}

// apply tries once. seen is the Secret's identity at the last Read, "" when
// there was none.
func (k *KubeSecrets) apply(ctx context.Context, t *targets.Target, c Changes, seen types.UID) error {
	live, err := k.get(ctx, t)
	switch {
	case err != nil:
		return err
	case live != nil && seen != "" && live.UID != seen:
		return errReplaced
	case live == nil && c.Parts == nil:
		return nil // what should go is gone
	case live == nil && !t.Secret.Create:
		return &MissingError{t.Secret.Namespace, t.Secret.Name}
	case live == nil:
		live = newSecret(t.Secret)
	}
	defer clearData(live.Data)
	e, err := k.edit(live, t, c)
	if err != nil {
		return err
	}
	if e.idle() {
		k.remember(t.Secret, live)
		return nil
	}
	if len(e.shared) > 0 {
		if live.ResourceVersion, err = k.ownAlone(ctx, t, live, e.shared); err != nil {
			return err
		}
	}
	after, err := k.write(ctx, t, live, e)
	if err != nil {
		return err
	}
	defer clearData(after.Data)
	k.remember(t.Secret, after)
	for _, key := range e.removed {
		if _, ok := after.Data[key]; ok {
			return fmt.Errorf("the key %q was removed, but is still there: %w", key, errConflict)
		}
	}
	return nil
}

// pause waits a random time before another attempt, none before the first.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(time.Duration(attempt) * 4 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func clearData(data map[string][]byte) {
	for _, value := range data {
		clear(value)
	}
}
