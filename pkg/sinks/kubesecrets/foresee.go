package kubesecrets

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// sighting is the state of a Secret in a watch. It contains no value.
type sighting struct {
	uid             types.UID
	resourceVersion string
	kind            corev1.SecretType
	stamp           records.Stamp
	fingerprint     fingerprint.Fingerprint // of the keys that our field manager owns
	outline         string
	// blank means that the Secret has no data except the map, and nothing of ours.
	blank, hasMap bool
	mapSize       int
}

// mostStamp bounds the stamp in a sighting, in bytes. A longer one is not from Syncer. It
// would take memory outside the budget of the namespace.
const mostStamp = 100

// RecordBeforeFirstSync records the state of a Secret in a watch, so that the first sync
// need not read it (decision 058). It keeps no reference to the Secret's values.
func RecordBeforeFirstSync(set *records.Set, live *corev1.Secret) {
	set.RecordBeforeFirstSync(targets.KubeSecretKey(live.Namespace, live.Name), func() any {
		owned, err := ownedFields(live.ManagedFields)
		if err != nil || live.Annotations[targets.MembersAnnotation] != "" || live.Annotations[targets.RotationAnnotation] != "" {
			return nil
		}
		stamp := stampOf(live.Annotations)
		if len(stamp.Number)+len(stamp.Revised)+len(stamp.Filled) > mostStamp {
			return nil
		}
		ours, unset := map[string][]byte{}, blankKeys(live.Type, live.Data)
		for key := range ourKeys(live, owned, nil) {
			if !unset[key] {
				ours[key] = live.Data[key]
			}
		}
		text, hasMap := live.Data[targets.ConjurMapKey]
		rest := len(live.Data)
		if hasMap {
			rest--
		}
		return &sighting{
			uid: live.UID, resourceVersion: live.ResourceVersion, kind: live.Type,
			stamp: stamp, fingerprint: set.Fingerprint("", ours), outline: outline(set.Fingerprint, live, records.Revision{Stamp: stamp}, ours),
			blank:  rest == 0 && owned.Empty() && stamp.Number == "" && (live.Immutable == nil || !*live.Immutable),
			hasMap: hasMap, mapSize: len(text),
		}
	})
}

// foreseen returns the state of a Secret in a watch; nil if it is unknown, or if the Secret
// was read or written since.
func foreseen(r records.Record) *sighting {
	seen, _ := r.Seen.(*sighting)
	if seen == nil || r.Spec.Secret.UID != "" && string(seen.uid) != r.Spec.Secret.UID {
		return nil
	}
	return seen
}

// Recognize returns what Read would return. Before the first sync, a watch must have shown
// the Secret. It must hold nothing of ours, or exactly the wanted parts under our ownership.
// Later, an outline must have the wanted keys and other values. In place of a value that
// differs, the state has zeros of another length. The other parts share their bytes with
// the wanted ones.
func (k *Sink) Recognize(r records.Record, wanted map[string]secret.Value) (state sinks.State, ok bool) {
	if r.Status.Version != "" {
		return recognizeOutline(r, wanted)
	}
	seen := foreseen(r)
	if seen == nil {
		return state, false
	}
	ours := map[string][]byte{}
	if !seen.blank {
		if !wantsAllNamed(r.Spec, wanted) {
			return state, false
		}
		for key, value := range wanted {
			ours[key] = value.Bytes()
		}
		if r.Fingerprint("", ours) != seen.fingerprint {
			return state, false
		}
		state.Parts = maps.Clone(wanted)
	}
	state.Sight = records.Sight{Version: Version(seen.uid, seen.resourceVersion), Revision: revisionOf(r, seen.stamp, ours), Outline: seen.outline}
	state.Seen = seen
	return state, true
}

// known returns the Secret as an apply needs it. Either this sync has read it, or it has an
// outline, or a watch has shown that it holds nothing of ours. Otherwise known returns nil.
// Only the values of our keys are genuine. With an outline, they are not, so no key may keep
// its value.
func known(r records.Record, c sinks.Changes) *corev1.Secret {
	read, ok := r.Seen.(*corev1.Secret)
	if outlined, unread := r.Seen.(outlined); unread && len(c.Kept) == 0 {
		read, ok = outlined.Secret, true
	}
	if ok && r.Status.Version == Version(read.UID, read.ResourceVersion) {
		return read
	}
	seen := foreseen(r)
	if seen == nil || !seen.blank || c.Members != nil || r.Status.Version != Version(seen.uid, seen.resourceVersion) {
		return nil
	}
	live := &corev1.Secret{Type: seen.kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Spec.Secret.Namespace, Name: r.Spec.Secret.Name, UID: seen.uid, ResourceVersion: seen.resourceVersion,
	}}
	if seen.hasMap {
		live.Data = map[string][]byte{targets.ConjurMapKey: make([]byte, seen.mapSize)}
	}
	return live
}

// keep returns what known needs of a Secret that was read, although the values of others
// will be cleared. It returns nil if a write needs these values.
func keep(live *corev1.Secret, owned fieldTree) any {
	if ruleOf(live.Type).required != nil || owned.has("data", targets.ConjurMapKey) {
		return nil
	}
	kept := *live
	kept.Data = maps.Clone(live.Data)
	return &kept
}
