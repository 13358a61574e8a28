package kube

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
)

// ManagedLabel is the label of the Secrets that are to be filled when no names
// are given; its value is ManagedValue. Both are of the Secrets Provider's
// annotation reference.
const (
	ManagedLabel = "conjur.org/managed-by-provider"
	ManagedValue = "true"
)

// ours begins the labels and annotations of interest.
const ours = "conjur.org/"

// pageSize is how many Secrets one answer to a list holds at most.
const pageSize = 500

// Source is what is of interest in a Kubernetes Secret, without any value.
type Source struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Labels and Annotations are those that begin with "conjur.org/", without
	// those that are written together with the data.
	Labels, Annotations map[string]string
	// Map is the text under the data key targets.ConjurMapKey, when HasMap.
	Map       string
	HasMap    bool
	Type      corev1.SecretType
	Immutable bool
	// Fingerprint is the HMAC-SHA-256 of all other data, under a key that each
	// Client makes anew: it tells one content from another, nothing more.
	Fingerprint [sha256.Size]byte
}

// Source reads one Secret.
func (c *Client) Source(ctx context.Context, namespace, name string) (Source, error) {
	s, err := c.Core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Source{}, fmt.Errorf("reading secret %s/%s: %w", namespace, name, err)
	}
	return c.strip(s), nil
}

// Sources reads the Secrets with the ManagedLabel in a namespace, or in all for
// "", and gives them to each, page by page. After an error some may be missing.
func (c *Client) Sources(ctx context.Context, namespace string, each func(Source)) error {
	options := metav1.ListOptions{LabelSelector: ManagedLabel + "=" + ManagedValue, Limit: pageSize}
	for {
		page, err := c.Core.Secrets(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the secrets of %s: %w", describeNamespace(namespace), err)
		}
		for i := range page.Items {
			each(c.strip(&page.Items[i]))
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// Namespaces returns the names of all namespaces.
func (c *Client) Namespaces(ctx context.Context) ([]string, error) {
	list, err := c.Core.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces: %w", err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

func describeNamespace(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// strip takes what is of interest out of a Secret and wipes its values, which
// nobody else may refer to.
func (c *Client) strip(s *corev1.Secret) Source {
	conjurMap, hasMap := s.Data[targets.ConjurMapKey]
	source := Source{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Labels: ownOf(s.Labels), Annotations: ownOf(s.Annotations),
		Map: string(conjurMap), HasMap: hasMap,
		Type: s.Type, Immutable: s.Immutable != nil && *s.Immutable,
		Fingerprint: c.fingerprint(s.Data),
	}
	for _, value := range s.Data {
		clear(value)
	}
	return source
}

// ownOf copies, so that the strings that are kept do not hold on to others.
func ownOf(m map[string]string) map[string]string {
	var own map[string]string
	for key, value := range m {
		switch key {
		case targets.RevisionAnnotation, targets.RevisedAnnotation, targets.FilledAnnotation, targets.MembersAnnotation:
			continue
		}
		if !strings.HasPrefix(key, ours) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[strings.Clone(key)] = strings.Clone(value)
	}
	return own
}

// fingerprint runs over keys and values with their lengths, so that no two
// contents make the same input.
func (c *Client) fingerprint(data map[string][]byte) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, c.key[:])
	var length [8]byte
	add := func(b []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(b)))
		mac.Write(length[:])
		mac.Write(b)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key == targets.ConjurMapKey {
			continue
		}
		add([]byte(key))
		add(data[key])
	}
	mac.Sum(sum[:0])
	return sum
}
