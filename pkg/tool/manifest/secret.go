package manifest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/internal/suggest"
	"github.com/secretsync/syncer/pkg/targets"
)

// Secret is an object of kind Secret. Only WithData shows its values, and no error does.
type Secret struct {
	Namespace, Name string // the namespace may be empty
	Text            int    // the index of its text
	File            string // its file, or ""
	Map             bool   // it has the key conjur-map
	// Annotations are the annotations of the Secret itself.
	Annotations map[string]string
	// Labelled means that it has targets.ManagedLabel with the right value. Label is the
	// value that it has.
	Labelled bool
	Label    string
	// Similar is a label whose key resembles targets.ManagedLabel, or "".
	Similar string
	// Immutable means that the data of an existing Secret cannot change.
	Immutable bool

	object           *yaml.Node
	data, stringData map[string]yaml.Node
}

// String is the kind and the name, such as "Secret/shop".
func (s *Secret) String() string { return "Secret/" + s.Name }

// Place is the file, if it is known, the kind and the name.
func (s *Secret) Place() string { return strings.TrimPrefix(s.File+": "+s.String(), ": ") }

// addSecret adds an object of kind Secret.
func (m *Manifest) addSecret(text int, node *yaml.Node) error {
	var object metav1.ObjectMeta
	var values struct { // any content is valid; decoded only when used
		Data       map[string]yaml.Node
		StringData map[string]yaml.Node `yaml:"stringData"`
		Immutable  bool
	}
	if err := node.Decode(&values); err != nil {
		return explain(err)
	}
	metadata := valueIn(node, "metadata")
	if err := decode(metadata, &object); err != nil {
		return within("Secret/"+nameIn(metadata), err)
	}
	_, stored := values.Data[targets.ConjurMapKey]
	_, written := values.StringData[targets.ConjurMapKey]
	var similar string
	for _, key := range slices.Sorted(maps.Keys(object.Labels)) {
		if _, is := object.Labels[targets.ManagedLabel]; !is && suggest.Nearest(path.Base(key), []string{path.Base(targets.ManagedLabel)}) != "" {
			similar = key
		}
	}
	m.Secrets = append(m.Secrets, &Secret{
		Namespace: object.Namespace, Name: object.Name, Text: text, Map: stored || written, Annotations: object.Annotations,
		Label: object.Labels[targets.ManagedLabel], Labelled: object.Labels[targets.ManagedLabel] == targets.ManagedValue, Immutable: values.Immutable, Similar: similar,
		object: node, data: values.Data, stringData: values.StringData,
	})
	return nil
}

// Keys lists the data keys in ascending order.
func (s *Secret) Keys() []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(s.data)), maps.Keys(s.stringData))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ConjurMap is the text under the key conjur-map. It is empty if Map is false.
func (s *Secret) ConjurMap() (string, error) {
	encoded, line, err := s.encoded(targets.ConjurMapKey)
	if err != nil {
		return "", err
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("line %d: the value of %s in data is not base64; encode it, or write text in stringData", line, targets.ConjurMapKey)
	}
	return string(decoded), nil
}

// encoded returns a value in the encoding of data. It takes the value from stringData,
// which also has precedence in Kubernetes, or otherwise from data. It returns "" if
// neither contains the key.
func (s *Secret) encoded(key string) (value string, line int, err error) {
	node, written := s.stringData[key]
	if !written {
		node = s.data[key]
	}
	if node.IsZero() || node.Kind == yaml.ScalarNode && node.Tag == "!!null" { // null means none
		return "", node.Line, nil
	}
	if value, err = textOf(&node, "the value of "+key); written {
		value = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return value, node.Line, err
}

// WithData returns the Secret as a YAML document with values added to its data, where
// they take precedence. It moves stringData to data, as Kubernetes does. All other keys
// of data, and all other fields, stay. WithData returns an error if the data exceed
// Kubernetes' limit.
func (s *Secret) WithData(values map[string][]byte) ([]byte, error) {
	data := map[string]string{}
	var errs []error
	for _, key := range s.Keys() {
		value, _, err := s.encoded(key)
		data[key], errs = value, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	size := 0
	for _, value := range data {
		size += base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(value, "=")))
	}
	if size > corev1.MaxSecretSize {
		return nil, fmt.Errorf("the values and %[2]s would have %[1]d bytes, and Kubernetes allows %[3]d; use fewer or shorter values", size, targets.ConjurMapKey, corev1.MaxSecretSize)
	}
	var whole any // refuses aliases that contain themselves or multiply
	if err := s.object.Decode(&whole); err != nil {
		return nil, explain(err)
	}
	var node yaml.Node
	if err := node.Encode(data); err != nil {
		return nil, err
	}
	return encode(replaceData(flatten(s.object), &node))
}

// flatten copies a tree and replaces YAML aliases by their nodes, because the anchor may
// be in a part that is removed.
func flatten(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return flatten(node.Alias)
	}
	made := *node
	made.Anchor = ""
	made.Content = make([]*yaml.Node, len(node.Content))
	for i, child := range node.Content {
		made.Content[i] = flatten(child)
	}
	return &made
}

// replaceData puts data at the position of the object's data or stringData, or otherwise
// at its end. If data is empty, the object has none afterwards.
func replaceData(object, data *yaml.Node) *yaml.Node {
	kept := make([]*yaml.Node, 0, len(object.Content)+2)
	placed := len(data.Content) == 0
	for i := 0; i+1 < len(object.Content); i += 2 {
		key := object.Content[i]
		if key.Value != "data" && key.Value != "stringData" {
			kept = append(kept, key, object.Content[i+1])
		} else if !placed {
			key.Value = "data"
			kept, placed = append(kept, key, data), true
		}
	}
	if !placed {
		kept = append(kept, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "data"}, data)
	}
	object.Content, object.Style = kept, object.Style&^yaml.FlowStyle
	return object
}

func encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}
