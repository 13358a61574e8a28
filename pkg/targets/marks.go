package targets

import "strings"

// FieldManager is the name under which the API server keeps which fields of an
// object are ours.
const FieldManager = "syncer"

// What the very write that changes a Secret's data leaves on it.
const (
	// RevisionAnnotation is a decimal number that is greater after each
	// change, also over a deletion and re-creation of the Secret. One that is
	// filled again with what it held before it was deleted may get the number,
	// and the time, that it had. It says nothing of the content.
	RevisionAnnotation = "conjur.org/secret-revision"
	// RevisedAnnotation is the time of the change (RFC 3339, UTC).
	RevisedAnnotation = "conjur.org/secret-revised"
	// FilledAnnotation is the revision that filled a Secret in which nothing
	// of ours had been: one that nobody can have used before.
	FilledAnnotation = "conjur.org/secret-filled"
	// MembersAnnotation lists, packed, the variables that only a wildcard has
	// brought into the data and that the data do not name; no value.
	MembersAnnotation = "conjur.org/secret-variables"
	// RotationAnnotation has the DeliveredSets that the data show, by variable,
	// in JSON. There is no byte of a key in it.
	RotationAnnotation = "conjur.org/rotation"
)

// PullSecretsAnnotation lists, with commas between them, those of a service
// account's pull Secrets that Syncer has added.
const PullSecretsAnnotation = "conjur.org/pull-secrets"

// Defines reports whether the annotation of a Kubernetes Secret is one of those
// that may say what it is to hold. Those that are written with the data are not.
func Defines(annotation string) bool {
	switch annotation {
	case RevisionAnnotation, RevisedAnnotation, FilledAnnotation, MembersAnnotation, RotationAnnotation:
		return false
	}
	return strings.HasPrefix(annotation, "conjur.org/")
}
