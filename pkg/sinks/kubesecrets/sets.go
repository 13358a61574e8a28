package kubesecrets

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// SetsOf reads the summary of sets of versions from targets.RotationAnnotation. It
// ignores an annotation of another form, and one that our field manager does not own.
// Ownership proves nothing, because anybody may use the name of our field manager.
func SetsOf(about metav1.ObjectMeta) (sets map[string]targets.DeliveredSet) {
	owned, err := ownedFields(about.ManagedFields)
	if err != nil || !owned.has("metadata", "annotations", targets.RotationAnnotation) {
		return nil
	}
	if json.Unmarshal([]byte(about.Annotations[targets.RotationAnnotation]), &sets) != nil {
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
