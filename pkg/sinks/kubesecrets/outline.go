package kubesecrets

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// An outline lets the sink change a plain Secret by one apply, without a read before
// (decision 069). It belongs to one resource version, and the apply names that version. A
// plain Secret has the type Opaque and is mutable. Our apply alone owns our keys, and it
// owns nothing else that the outline and the status do not tell.
//
// The first byte of an outline says whether we created the Secret. The fingerprint of the names
// of our keys follows, and then the fingerprint of each value, in the order of the names.
// Fingerprints are cut off, so that an outline is small.
const (
	byOthers       = "-"
	byUs           = "+"
	cutFingerprint = 8
)

// Limits of a plain Secret. Together, the sizes are less than a Secret may have.
const (
	mostOutlined   = 16        // keys of ours
	largestOthers  = 256 << 10 // data of others, in bytes
	largestWritten = 512 << 10 // our data, in bytes
)

// outlined is a Secret as its outline shows it. A value that is not as wanted is not known.
type outlined struct{ *corev1.Secret }

// fingerprinter is the method Fingerprint of a record or a Set.
type fingerprinter func(head string, parts map[string][]byte) fingerprint.Fingerprint

func (fingerprint fingerprinter) names(names []string) string {
	p := fingerprint("names "+strings.Join(names, "/"), nil)
	return string(p[:cutFingerprint])
}

func (fingerprint fingerprinter) value(name string, value []byte) string {
	p := fingerprint("value", map[string][]byte{name: value})
	return string(p[:cutFingerprint])
}

// outline returns the outline of a Secret whose keys of ours have this content. It returns
// "" if the Secret is not plain.
func outline(fingerprint fingerprinter, live *corev1.Secret, revision records.Revision, ours map[string][]byte) string {
	others, origin, names := 0, byOthers, slices.Sorted(maps.Keys(ours))
	for key, value := range live.Data {
		if _, own := ours[key]; !own {
			others += len(value)
		}
	}
	if live.Labels[managedByLabel] == targets.FieldManager {
		origin = byUs
	}
	if live.Type != corev1.SecretTypeOpaque || live.Immutable != nil && *live.Immutable || len(ours) > mostOutlined || others > largestOthers ||
		revision.Stamp.Number == "" || revision.Restarts != live.Annotations[targets.RestartsAnnotation] ||
		!ownsOnly(live.ManagedFields, names, plainFields(names, revision, origin)) {
		return ""
	}
	text := origin + fingerprint.names(names)
	for _, name := range names {
		text += fingerprint.value(name, ours[name])
	}
	return text
}

// annotationsOf returns the annotations of a plain Secret that are ours.
func annotationsOf(revision records.Revision) map[string]string {
	annotations := map[string]string{}
	setStamp(annotations, revision.Stamp)
	if revision.Restarts != "" {
		annotations[targets.RestartsAnnotation] = revision.Restarts
	}
	return annotations
}

// plainFields returns the fields of a plain Secret that our apply owns, as the API server
// writes them.
func plainFields(names []string, revision records.Revision, origin string) string {
	fields := dataFields(names)
	for name := range annotationsOf(revision) {
		fields.Insert(fieldpath.MakePathOrDie("metadata", "annotations", name))
	}
	if origin == byUs {
		fields.Insert(fieldpath.MakePathOrDie("metadata", "labels", managedByLabel))
		fields.Insert(fieldpath.MakePathOrDie("type"))
	}
	return encode(fields).GetRawString()
}

// ownsOnly reports whether our only entry is an apply of these fields, and no other entry
// has one of the names.
func ownsOnly(entries []metav1.ManagedFieldsEntry, names []string, fields string) bool {
	own := 0
	for _, e := range entries {
		text := e.FieldsV1.GetRawString()
		switch {
		case isApplied(e) && text == fields:
			own++
		case isOurs(e), slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, `"f:`+name+`"`) }):
			return false
		}
	}
	return own == 1
}

// recognizeOutline returns the state of a Secret whose outline has the wanted keys, and
// another value of at least one. A wildcard may ask what the existing values contain.
func recognizeOutline(r records.Record, wanted map[string]secret.Value) (state sinks.State, ok bool) {
	text, fingerprint, s := r.Status.Outline, fingerprinter(r.Fingerprint), r.Spec.Secret
	names := slices.Sorted(maps.Keys(wanted))
	head := 1 + cutFingerprint
	if len(text) != head+cutFingerprint*len(names) || text[1:head] != fingerprint.names(names) || !wantsAllNamed(r.Spec, wanted) ||
		slices.ContainsFunc(r.Spec.Parts(), func(part *targets.Target) bool { return part.Expanded != nil }) {
		return state, false
	}
	uid, version, _ := strings.Cut(r.Status.Version, "/")
	live := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: types.UID(uid), ResourceVersion: version, Annotations: annotationsOf(r.Status.Revision),
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: targets.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(plainFields(names, r.Status.Revision, text[:1])),
		}},
	}}
	if text[:1] == byUs {
		live.Labels = map[string]string{managedByLabel: targets.FieldManager}
	}
	size, differs := 0, false
	state = sinks.State{Sight: r.Status.Sight, Parts: map[string]secret.Value{}, Seen: outlined{live}}
	for i, name := range names {
		value := wanted[name]
		size += value.Len()
		if at := head + cutFingerprint*i; text[at:at+cutFingerprint] != fingerprint.value(name, value.Bytes()) {
			value, differs = secret.New(make([]byte, value.Len()+1)), true
		}
		state.Parts[name], live.Data[name] = value, value.Bytes()
	}
	return state, differs && size <= largestWritten
}

// wantsAllNamed reports whether all named keys are wanted. Another client may have written
// one that is not.
func wantsAllNamed(t *targets.Target, wanted map[string]secret.Value) bool {
	for key := range NamedKeys(t) {
		if _, ok := wanted[key]; !ok {
			return false
		}
	}
	return true
}
