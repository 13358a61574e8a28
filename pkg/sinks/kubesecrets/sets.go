package kubesecrets

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// setsOf reads the summary of sets of versions from a Secret.
func setsOf(live *corev1.Secret) map[string]targets.DeliveredSet {
	return ParseSets(live.Annotations[targets.RotationAnnotation])
}

// ParseSets reads targets.RotationAnnotation. It ignores an annotation of another
// form.
func ParseSets(annotation string) (sets map[string]targets.DeliveredSet) {
	if json.Unmarshal([]byte(annotation), &sets) != nil {
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
