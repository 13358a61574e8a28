package kubesecrets

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// Members and sets are recorded in annotations, so that they exist as long as the
// content does.

// mostMembers bounds the ids of one Secret, in bytes. targets.MaxEntries bounds
// their number. The limits are needed because every writer of the Secret may use
// the name of our field manager.
const mostMembers = 1 << 20

// membersOf reads the annotation, if we own it.
func membersOf(live *corev1.Secret, owned fieldTree) []string {
	if !owned.has("metadata", "annotations", targets.MembersAnnotation) {
		return nil
	}
	packed := base64.NewDecoder(base64.StdEncoding, bytes.NewBufferString(live.Annotations[targets.MembersAnnotation]))
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil
	}
	return decodeMembers(io.LimitReader(unpacked, mostMembers))
}

// membersAnnotation returns the annotation for the members. It is compressed,
// because Kubernetes limits the size of annotations.
func membersAnnotation(ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	_, err := w.Write(encodeMembers(ids))
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer accepts every write
	}
	return map[string]string{targets.MembersAnnotation: base64.StdEncoding.EncodeToString(packed.Bytes())}
}

// membersFault returns the reason why a Secret cannot hold the members, or "".
func (e *secretEdit) membersFault(live *corev1.Secret) string {
	size := 0
	for key, value := range live.Annotations {
		if key != targets.MembersAnnotation {
			size += len(key) + len(value)
		}
	}
	for key, value := range membersAnnotation(e.members) {
		size += len(key) + len(value)
	}
	if e.members == nil || size <= validation.TotalAnnotationSizeLimitB && len(e.members) <= targets.MaxEntries && len(encodeMembers(e.members)) <= mostMembers {
		return ""
	}
	return fmt.Sprintf("the ids of the %d variables that a wildcard brings in do not fit its annotations; divide them among several Secrets by prefix/*", len(e.members))
}

func encodeMembers(ids []string) []byte {
	text, err := json.Marshal(ids)
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}

// decodeMembers returns nil for anything but a list of at most targets.MaxEntries ids. A forged
// list can have ten times as many, so it is decoded only up to the first id too many.
func decodeMembers(text io.Reader) (ids []string) {
	list := json.NewDecoder(text)
	if begin, err := list.Token(); err != nil || begin != json.Delim('[') {
		return nil
	}
	for list.More() {
		var id string
		if len(ids) == targets.MaxEntries || list.Decode(&id) != nil {
			return nil
		}
		ids = append(ids, id)
	}
	if _, err := list.Token(); err != nil { // the end of the list
		return nil
	}
	if _, err := list.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return ids
}

// SetsOf reads the summary of sets of versions from targets.RotationAnnotation. It
// ignores an annotation of another form, and one that our field manager does not own.
// Ownership proves nothing, because anybody may use the name of our field manager.
func SetsOf(about metav1.ObjectMeta) (sets map[string]targets.DeliveredSet) {
	text := about.Annotations[targets.RotationAnnotation]
	if text == "" {
		return nil
	}
	owned, err := ownedFields(about.ManagedFields)
	if err != nil || !owned.has("metadata", "annotations", targets.RotationAnnotation) || json.Unmarshal([]byte(text), &sets) != nil {
		return nil
	}
	return sets
}

// encodeSets returns the annotation, or "" for no sets.
func encodeSets(sets *map[string]targets.DeliveredSet) string {
	if sets == nil || len(*sets) == 0 {
		return ""
	}
	text, err := json.Marshal(*sets)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(text)
}
