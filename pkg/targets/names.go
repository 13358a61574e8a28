package targets

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FieldManager is the name under which the API server records the fields that Syncer
// owns.
const FieldManager = "syncer"

// The annotations that Syncer writes together with a Secret's data.
const (
	// RevisionAnnotation is a decimal number that increases with each change, even if the
	// Secret is deleted and created again. If the Secret is filled again with its content
	// from before the deletion, it may get its previous number and time. The number is
	// independent of the content.
	RevisionAnnotation = "conjur.org/secret-revision"
	// RevisedAnnotation is the time of the change (RFC 3339, UTC).
	RevisedAnnotation = "conjur.org/secret-revised"
	// FilledAnnotation is the revision that filled a Secret without any of our content.
	// Nobody can have used the Secret before that revision.
	FilledAnnotation = "conjur.org/secret-filled"
	// RestartsAnnotation contains, by workload, the RestartMemo of the Secret, in JSON.
	RestartsAnnotation = "conjur.org/restarted"
	// MembersAnnotation lists, in packed form, the variables in the data that only a
	// wildcard includes and that the data do not name. It contains no value.
	MembersAnnotation = "conjur.org/secret-variables"
	// RotationAnnotation contains the DeliveredSets in the data, by variable, in JSON. It
	// contains no byte of a key.
	RotationAnnotation = "conjur.org/rotation"
)

// PullSecretsAnnotation lists the pull Secrets that Syncer has added to a service
// account, separated by commas.
const PullSecretsAnnotation = "conjur.org/pull-secrets"

// Defines reports whether the annotation of a Kubernetes Secret may define its content.
// Annotations that Syncer writes with the data do not.
func Defines(annotation string) bool {
	switch annotation {
	case RevisionAnnotation, RevisedAnnotation, FilledAnnotation, RestartsAnnotation, MembersAnnotation, RotationAnnotation:
		return false
	}
	return strings.HasPrefix(annotation, "conjur.org/")
}

// ManagedLabel is the label of the Secrets that Syncer fills if no names are given; its
// value is ManagedValue. Both come from the Secrets Provider's annotation reference.
const (
	ManagedLabel = "conjur.org/managed-by-provider"
	ManagedValue = "true"
)

// ConjurMapKey is the data key of a Kubernetes Secret that maps its other keys to
// variables.
const ConjurMapKey = "conjur-map"

// DataKey is the data key of a variable that no map names. It is the variable's id, with
// a dot for each character that a data key cannot contain, as in the Secrets Provider.
// Some ids result in a key that Kubernetes refuses.
func DataKey(variable string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-._", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '.'
	}, variable)
}

// DataKeyFault returns why a Secret's data cannot contain a key, or "".
func DataKeyFault(key string) string {
	switch {
	case key == "":
		return "is empty"
	case key == ConjurMapKey:
		return "is that of the map itself"
	case key != DataKey(key):
		return "has characters other than letters, digits, -, _ and ."
	case key == "." || strings.HasPrefix(key, ".."):
		return "is . or begins with .., which Kubernetes does not allow"
	case len(key) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("is longer than %d bytes", validation.DNS1123SubdomainMaxLength)
	}
	return ""
}

// PathConflict is a group whose file conflicts with the file of another group.
type PathConflict struct {
	Group, Other string
	Err          error // names both groups
}

// PathConflicts finds conflicting targets. Two targets conflict if they have the same
// path. They also conflict if one is below another, and the other is a file or a separate
// folder.
func PathConflicts(ts []*Target) []PathConflict {
	var conflicts []PathConflict
	owner := map[string]string{} // path → group
	for _, t := range ts {
		if first, ok := owner[t.File.Path]; ok {
			conflicts = append(conflicts, PathConflict{t.Group, first, fmt.Errorf("the groups %q and %q have the same path %q; give one of them another", first, t.Group, t.File.Path)})
			continue
		}
		owner[t.File.Path] = t.Group
	}
	for _, t := range ts {
		for dir := filepath.Dir(t.File.Path); dir != "."; dir = filepath.Dir(dir) {
			if other, ok := owner[dir]; ok {
				conflicts = append(conflicts, PathConflict{t.Group, other, fmt.Errorf("%.300q of the group %q is below %q, where the group %q has its own file or folder", t.File.Path, t.Group, dir, other)})
			}
		}
	}
	return conflicts
}
