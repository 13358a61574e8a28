package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/secretsync/syncer/pkg/targets"
)

// managedSelector selects the Secrets that Syncer fills if no names are given.
const managedSelector = targets.ManagedLabel + "=" + targets.ManagedValue

// Secret is the relevant part of a Kubernetes Secret, without any value. It never changes
// after its creation. The structure has 256 bytes, which is a size class of Go's allocator.
// With another size, a part of its slot would be unused, and could keep bytes of earlier
// values.
type Secret struct {
	// ObjectMeta has the namespace, the name, the UID, the resource version and the
	// creation time. It also has the annotations that start with "conjur.org/", except
	// those that are written together with the data.
	metav1.ObjectMeta
	// Map is the content of the data key targets.ConjurMapKey; nil if there is none.
	Map  *Map
	Type corev1.SecretType
}

// Map is the text of a map. It also says whether the text and the annotations were
// dropped.
type Map struct {
	Text string
	// Oversize is the size of both in bytes, if they were dropped. They are larger than
	// targets.MaxDefinition or, if OverBudget, than the rest of Selection.Definitions.
	Oversize   int
	OverBudget bool
}

// Dropped says whether the definition was dropped, and why; see Map.
func (s *Secret) Dropped() (oversize int, overBudget bool) {
	if s.Map == nil {
		return 0, false
	}
	return s.Map.Oversize, s.Map.OverBudget
}

// GetObjectKind returns no kind: the API never receives a Secret of this type.
func (s *Secret) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the Secret itself, because it never changes.
func (s *Secret) DeepCopyObject() runtime.Object { return s }

// ConjurMap returns Map's text, and whether there is one.
func (s *Secret) ConjurMap() (text string, ok bool) {
	if s.Map == nil || s.Map.Oversize > 0 {
		return "", false
	}
	return s.Map.Text, true
}

// strip extracts the relevant part of a Secret and wipes its values. Nothing else may
// refer to the values.
func strip(s *corev1.Secret) *Secret {
	stripped := &Secret{Type: s.Type, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, CreationTimestamp: s.CreationTimestamp, Annotations: ownOf(s.Annotations),
	}}
	if conjurMap, ok := s.Data[targets.ConjurMapKey]; ok {
		stripped.Map = &Map{Text: string(conjurMap)}
	}
	if size := stripped.definition(); size > targets.MaxDefinition {
		stripped.drop(size, false)
	}
	for _, value := range s.Data {
		clear(value)
	}
	return stripped
}

// drop drops the definition, which has the given size in bytes.
func (s *Secret) drop(size int, overBudget bool) {
	s.Map, s.Annotations = &Map{Oversize: size, OverBudget: overBudget}, nil
}

// definition returns the size of the Secret's definition in bytes.
func (s *Secret) definition() (size int) {
	for key, value := range s.Annotations {
		size += len(key) + len(value)
	}
	text, _ := s.ConjurMap()
	return size + len(text)
}

func ownOf(m map[string]string) map[string]string {
	var own map[string]string
	for key, value := range m {
		if !targets.Defines(key) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[key] = value
	}
	return own
}
