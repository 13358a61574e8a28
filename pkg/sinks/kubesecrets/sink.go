// Package kubesecrets implements the sink for Kubernetes Secrets.
package kubesecrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Sink is the sink for targets that are Kubernetes Secrets. A part is a key of the
// Secret's data. It is safe for concurrent use, but not for two simultaneous
// changes of one target.
//
// A change is one server-side apply, so readers find either the old or the new
// keys. Our keys are those that our field manager owns or that the target names.
// The sink keeps all other keys, the conjur-map, foreign labels, annotations and
// owner references. It keeps the Secret even after the removal of its last key. A
// key that the Secret's type requires cannot be removed. Its value then becomes
// blank, and Read does not return it as a part.
//
// The sink clears foreign values as soon as it has examined an answer. The client
// library makes copies that cannot be cleared.
type Sink struct {
	cluster interface {
		secrets(namespace string) Secrets
	}
	now func() time.Time

	// Remarker, if not nil, is called after each write with the missing permission,
	// or with nil if none is missing. It must not block.
	Remarker Remarker
}

// Remarker receives the reason why a subject works only in part. nil means that it
// works fully.
type Remarker interface {
	Remark(subject string, err error)
}

// Secrets makes requests for the Secrets of a namespace.
type Secrets interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error)
	Create(context.Context, *corev1.Secret, metav1.CreateOptions) (*corev1.Secret, error)
	Update(context.Context, *corev1.Secret, metav1.UpdateOptions) (*corev1.Secret, error)
	Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Secret, error)
}

// New returns the sink. It makes no request. The client needs the verbs get and
// patch for Secrets, or get and update. It also needs create for targets that the
// sink may create.
func New[S Secrets](client interface{ Secrets(namespace string) S }) *Sink {
	return &Sink{cluster: cluster[S]{client}, now: time.Now}
}

// cluster adapts a client with any type of request interface.
type cluster[S Secrets] struct {
	client interface{ Secrets(namespace string) S }
}

func (c cluster[S]) secrets(namespace string) Secrets { return c.client.Secrets(namespace) }

// Version returns the version in the status of a target that is a Secret.
func Version(uid types.UID, resourceVersion string) string {
	return string(uid) + "/" + resourceVersion
}

// sight returns the state of a Secret and our part of its content.
func (k *Sink) sight(r records.Record, live *corev1.Secret, ours map[string][]byte) records.Sight {
	revision := revisionOf(r, stampOf(live.Annotations), ours)
	if memos, ok := live.Annotations[targets.RestartsAnnotation]; ok {
		revision.Restarts = memos
	}
	return records.Sight{Version: Version(live.UID, live.ResourceVersion), Revision: revision, Outline: outline(r.Fingerprint, live, revision, ours)}
}

// Read returns the keys that are ours. The state is stale if our field manager does
// not own all keys that the target names, because another client wrote them. A
// missing Secret yields an empty state if the target may be created, and a
// [*sinks.MissingError] otherwise. It is an error if the Secret is not the object
// that holds the target's definition.
func (k *Sink) Read(ctx context.Context, r records.Record) (sinks.State, error) {
	t := r.Spec
	live, err := k.get(ctx, t)
	switch {
	case err != nil:
		return sinks.State{}, failed(t, err)
	case live == nil:
		return sinks.State{Sight: records.Sight{Revision: r.Status.Revision}}, failed(t, absent(t.Secret))
	}
	defer clearData(live.Data)
	if t.Secret.UID != "" && string(live.UID) != t.Secret.UID {
		return sinks.State{}, failed(t, errReplaced)
	}
	owned, err := ownedFields(live.ManagedFields)
	if err != nil {
		return sinks.State{}, failed(t, err)
	}
	kept := keep(live, owned)
	state := stateOf(live, owned, t)
	state.Seen = kept
	ours := map[string][]byte{}
	for key, value := range state.Parts {
		ours[key] = value.Bytes()
	}
	state.Sight = k.sight(r, live, ours)
	return state, nil
}

// absent returns the reason why a missing Secret is not created, or nil if it may
// be created.
func absent(s *targets.Secret) error {
	switch {
	case !s.Create:
		return &sinks.MissingError{Namespace: s.Namespace, Name: s.Name}
	case s.UID != "":
		return errUndefined
	}
	return nil
}

// stateOf extracts our values from the Secret. owned are the fields of our field manager.
func stateOf(live *corev1.Secret, owned fieldTree, t *targets.Target) sinks.State {
	state := sinks.State{Members: membersOf(live, owned), Sets: SetsOf(live.ObjectMeta)}
	named, blank := NamedKeys(t), blankKeys(live.Type, live.Data)
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
	return state
}

// maxAttempts bounds the attempts of Apply while other clients change the Secret.
const maxAttempts = 16

// Apply makes the changes. It writes only keys that the wanted parts or the changes
// name. It writes nothing if everything is already as wanted. A change that no
// retry can achieve is a [*sinks.RefusedError], and causes no request. Such changes
// concern an immutable Secret, a Secret that is too large, or content that does not
// fit the Secret's type. After an error the data is as before, or as wanted if the
// answer was lost. [sinks.ErrOutdated] means that nothing was written, because the state
// that Recognize returned is not the present one.
//
// Apply does not write to a Secret that was deleted and created again since its
// definition or its state was read. It may hold another definition. Apply returns
// an error, which the next definition or Read resolves.
func (k *Sink) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	left := r.Status.Sight
	if err := ctx.Err(); err != nil || c.Empty() && c.Members == nil && c.Sets == nil {
		return left, err
	}
	uid, _, _ := strings.Cut(left.Version, "/")
	seen := types.UID(cmp.Or(r.Spec.Secret.UID, uid))
	var err error
	live := known(r, c)
	for attempt := range maxAttempts {
		if err = pause(ctx, attempt); err != nil {
			break
		}
		left, err = k.apply(ctx, r, c, seen, live)
		if _, unread := r.Seen.(outlined); unread && (errors.Is(err, errConflict) || errors.Is(err, errReplaced)) {
			return left, sinks.ErrOutdated
		}
		if !errors.Is(err, errConflict) {
			break
		}
		live = nil
	}
	return left, failed(r.Spec, err)
}

// apply makes one attempt. seen is the UID that the Secret must have, or "" if
// there was none. live is the result of known; nil means that apply reads the Secret.
func (k *Sink) apply(ctx context.Context, r records.Record, c sinks.Changes, seen types.UID, live *corev1.Secret) (records.Sight, error) {
	t, before, known := r.Spec, r.Status.Sight, live != nil
	var err error
	if !known {
		live, err = k.get(ctx, t)
	}
	switch {
	case err != nil:
		return before, err
	case live != nil && seen != "" && live.UID != seen:
		return before, errReplaced
	case live == nil && c.Parts == nil:
		return before, nil // the keys to remove are already gone
	case live == nil:
		if err := absent(t.Secret); err != nil {
			return before, err
		}
		live = newSecret(t.Secret)
	}
	if !known { // otherwise the caller still needs the values
		defer clearData(live.Data)
	}
	e, err := k.edit(live, t, c)
	if err != nil {
		return before, err
	}
	e.known = known
	if e.idle() {
		return k.sight(r, live, e.content(live.Type)), nil
	}
	after, err := k.write(ctx, r, live, e)
	if err != nil {
		return before, err
	}
	defer clearData(after.Data)
	left := k.sight(r, after, e.content(live.Type))
	left.Rivals = rivalsOf(live, e)
	for _, key := range e.removed {
		if _, ok := after.Data[key]; ok {
			return left, fmt.Errorf("the key %q was removed, but is still there: %w", key, errConflict)
		}
	}
	return left, e.kept(t, after)
}

// pause waits a random time before another attempt, and not before the first.
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
