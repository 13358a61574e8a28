// Package kubesecrets has the sink for Kubernetes Secrets.
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

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// Sink is the sink for targets that are Kubernetes Secrets: a part is a key of the
// Secret's data. It is safe for use by several goroutines, but not
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
type Sink struct {
	cluster interface {
		secrets(namespace string) Secrets
	}
	now func() time.Time

	// Remarker, when not nil, is called after each write with what is lacking in
	// our rights, nil meaning nothing. It must not block.
	Remarker Remarker
}

// Remarker is called with what keeps a subject from going as well as it could; nil
// means nothing does.
type Remarker interface {
	Remark(subject string, err error)
}

// Secrets is the requests for the Secrets of a namespace.
type Secrets interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error)
	Create(context.Context, *corev1.Secret, metav1.CreateOptions) (*corev1.Secret, error)
	Update(context.Context, *corev1.Secret, metav1.UpdateOptions) (*corev1.Secret, error)
	Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Secret, error)
}

// New makes the sink, without asking the API server anything. The client needs the
// verbs get and patch for Secrets, or get and update, and create for targets that are
// made when missing.
func New[S Secrets](client interface{ Secrets(namespace string) S }) *Sink {
	return &Sink{cluster: cluster[S]{client}, now: time.Now}
}

// cluster is a client, whatever its own type for the requests is.
type cluster[S Secrets] struct {
	client interface{ Secrets(namespace string) S }
}

func (c cluster[S]) secrets(namespace string) Secrets { return c.client.Secrets(namespace) }

// Version is the version in the status of a target that is a Secret.
func Version(uid types.UID, resourceVersion string) string {
	return string(uid) + "/" + resourceVersion
}

// sight is how a Secret is, and what it holds of ours.
func (k *Sink) sight(r records.Record, live *corev1.Secret, ours map[string][]byte) records.Sight {
	return records.Sight{Version: Version(live.UID, live.ResourceVersion), Revision: revisionOf(r, live.Annotations, ours)}
}

// Read finds the keys that are ours. The state is stale when our field manager
// does not own all that the target names, because somebody else wrote them. A
// Secret that does not exist is nothing if the target is to be created, and a
// [*sinks.MissingError] otherwise. One that is not the object that the target was
// defined by is an error.
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
	state, err := stateOf(live, t)
	if err != nil {
		return sinks.State{}, failed(t, err)
	}
	ours := map[string][]byte{}
	for key, value := range state.Parts {
		ours[key] = value.Bytes()
	}
	state.Sight = k.sight(r, live, ours)
	return state, nil
}

// absent says why a Secret that is not there is not created; nil when it is.
func absent(s *targets.Secret) error {
	switch {
	case !s.Create:
		return &sinks.MissingError{Namespace: s.Namespace, Name: s.Name}
	case s.UID != "":
		return errUndefined
	}
	return nil
}

// stateOf takes the values that are ours out of the Secret.
func stateOf(live *corev1.Secret, t *targets.Target) (sinks.State, error) {
	owned, err := ownedFields(live.ManagedFields)
	if err != nil {
		return sinks.State{}, err
	}
	state := sinks.State{Members: membersOf(live, owned), Sets: setsOf(live)}
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
// already. A change that no retry can bring about is a [*sinks.RefusedError], and is
// not asked for; of that kind are a Secret that is immutable or too large, and
// content that does not fit the Secret's type. After an error the data is as
// before, or as wanted if the answer was lost.
//
// A Secret that was deleted and made anew since its definition, or else its
// state, was read is not written to, as it may hold another definition: that is
// an error, and goes with the next definition, or Read.
func (k *Sink) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	left := r.Status.Sight
	if err := ctx.Err(); err != nil || c.Empty() && c.Members == nil && c.Sets == nil {
		return left, err
	}
	uid, _, _ := strings.Cut(left.Version, "/")
	seen := types.UID(cmp.Or(r.Spec.Secret.UID, uid))
	var err error
	for attempt := range maxAttempts {
		if err = pause(ctx, attempt); err != nil {
			break
		}
		if left, err = k.apply(ctx, r, c, seen); !errors.Is(err, errConflict) {
			break
		}
	}
	return left, failed(r.Spec, err)
}

// apply tries once. seen is which Secret it must be, "" when there was none.
func (k *Sink) apply(ctx context.Context, r records.Record, c sinks.Changes, seen types.UID) (records.Sight, error) {
	t, before := r.Spec, r.Status.Sight
	live, err := k.get(ctx, t)
	switch {
	case err != nil:
		return before, err
	case live != nil && seen != "" && live.UID != seen:
		return before, errReplaced
	case live == nil && c.Parts == nil:
		return before, nil // what should go is gone
	case live == nil:
		if err := absent(t.Secret); err != nil {
			return before, err
		}
		live = newSecret(t.Secret)
	}
	defer clearData(live.Data)
	e, err := k.edit(live, t, c)
	if err != nil {
		return before, err
	}
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
	return left, nil
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
