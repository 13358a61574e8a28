package targets

import "strings"

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
