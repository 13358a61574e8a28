package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/secretsync/syncer/pkg/targets"
)

// ManagedLabel is the label of the Secrets that are to be filled when no names
// are given; its value is ManagedValue. Both are of the Secrets Provider's
// annotation reference.
const (
	ManagedLabel = "conjur.org/managed-by-provider"
	ManagedValue = "true"
)

// ours begins the annotations of interest.
const ours = "conjur.org/"

// Secret is what is of interest in a Kubernetes Secret, without any value. It
// is not changed once it is made. The structure has a size that Go allocates
// exactly: in what is left over behind a smaller one, bytes of values that were
// there before it stay in memory.
type Secret struct {
	// ObjectMeta has the namespace, the name, the UID, the resource version, when
	// it was made, and the annotations that begin with "conjur.org/", without those that are
	// written together with the data.
	metav1.ObjectMeta
	// Map is the text under the data key targets.ConjurMapKey; nil: there is none.
	Map  *string
	Type corev1.SecretType
}

// GetObjectKind returns no kind: the API never sees a Secret of ours.
func (s *Secret) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the Secret itself, since nobody changes it.
func (s *Secret) DeepCopyObject() runtime.Object { return s }

// ConjurMap returns Map's text, and whether there is one.
func (s *Secret) ConjurMap() (text string, ok bool) {
	if s.Map == nil {
		return "", false
	}
	return *s.Map, true
}

// strip takes what is of interest out of a Secret and wipes its values, which
// nobody else may refer to.
func strip(s *corev1.Secret) *Secret {
	stripped := &Secret{Type: s.Type, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, CreationTimestamp: s.CreationTimestamp, Annotations: ownOf(s.Annotations),
	}}
	if conjurMap, ok := s.Data[targets.ConjurMapKey]; ok {
		stripped.Map = new(string(conjurMap))
	}
	for _, value := range s.Data {
		clear(value)
	}
	return stripped
}

func ownOf(m map[string]string) map[string]string {
	var own map[string]string
	for key, value := range m {
		switch key {
		case targets.RevisionAnnotation, targets.RevisedAnnotation, targets.FilledAnnotation, targets.MembersAnnotation, targets.RotationAnnotation:
			continue
		}
		if !strings.HasPrefix(key, ours) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[key] = value
	}
	return own
}
