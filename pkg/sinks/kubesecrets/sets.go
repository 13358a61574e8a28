package kubesecrets

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// setsOf reads what a Secret shows of sets of versions.
func setsOf(live *corev1.Secret) map[string]targets.DeliveredSet {
	return ParseSets(live.Annotations[targets.RotationAnnotation])
}

// ParseSets reads targets.RotationAnnotation. What is not of its form says
// nothing.
func ParseSets(annotation string) (sets map[string]targets.DeliveredSet) {
	if json.Unmarshal([]byte(annotation), &sets) != nil {
		return nil
	}
	return sets
}

// encodeSets returns the annotation; "" for no sets.
func encodeSets(sets *map[string]targets.DeliveredSet) string {
	if sets == nil || len(*sets) == 0 {
		return ""
	}
	text, err := json.Marshal(*sets)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}
