// Package manifest reads the settings of a secrets provider from Kubernetes manifests.
// It reads the annotations of a Pod, and the environment and the mounts of its containers. It can
// replace an image without a change of any other text.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Manifest contains texts of one or several YAML documents. Each is a Kubernetes object
// or a List. JSON is also YAML.
type Manifest struct {
	// Workloads are the objects that create Pods, in their order: Pod, CronJob, and each
	// kind with a Pod template in spec.template.
	Workloads []*Workload
	// Secrets are the objects of kind Secret, in their order.
	Secrets []*Secret
	// Roles are the objects of kind Role and ClusterRole with rules for Secrets, in their
	// order.
	Roles []*Role
	// Skipped are the files of a folder that were not parsed.
	Skipped []string

	texts      []text
	configMaps map[string]*corev1.ConfigMap // by name
}

// text is one of the texts of a manifest.
type text struct {
	bytes   []byte
	objects []object
}

// Error is one problem of a text.
type Error struct {
	Text int // its index
	Err  error
}

// Error returns the problem, with its line.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the index of its text.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a manifest. The error joins all problems, each an *Error, and shows no
// value of a variable or a Secret. Parse ignores objects of other kinds.
func Parse(texts ...[]byte) (*Manifest, error) {
	m := &Manifest{configMaps: map[string]*corev1.ConfigMap{}}
	var errs []error
	for i, bytes := range texts {
		objects, err := documents(bytes)
		m.texts = append(m.texts, text{bytes, objects})
		errs = append(errs, of(i, err))
	}
	for _, add := range []func(int, object) error{m.addData, m.addWorkload} { // the objects that others refer to
		for i, text := range m.texts {
			for _, o := range text.objects {
				errs = append(errs, of(i, add(i, o)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// ConfigMap returns the ConfigMap of that name, regardless of its namespace. It returns
// false if the manifest does not contain it.
func (m *Manifest) ConfigMap(name string) (found *corev1.ConfigMap, ok bool) {
	found, ok = m.configMaps[name]
	return found, ok
}

// documents returns the objects of a text, and the objects of a List one by one.
func documents(text []byte) (objects []object, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		switch err := decoder.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, definitions.YAMLError(text, err)
		}
		root := doc.Content[0]
		if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
			continue // nothing between two separators
		}
		var list struct {
			Kind  string
			Items []yaml.Node
		}
		if err := root.Decode(&list); err != nil {
			return nil, explain(err)
		}
		if list.Kind != "List" {
			objects = append(objects, object{list.Kind, root})
			continue
		}
		for _, item := range list.Items {
			o := object{node: &item}
			if err := item.Decode(&o); err != nil {
				return nil, explain(err)
			}
			objects = append(objects, o)
		}
	}
}

// object is an object of Kubernetes.
type object struct {
	Kind string
	node *yaml.Node
}

// addData adds a ConfigMap, a Secret or a Role.
func (m *Manifest) addData(text int, o object) error {
	switch o.Kind {
	case "Secret":
		return m.addSecret(text, o.node)
	case "Role", "ClusterRole":
		return m.addRole(o.Kind, o.node)
	case "ConfigMap":
		return m.addConfigMap(o.node)
	}
	return nil
}

func (m *Manifest) addConfigMap(node *yaml.Node) error {
	var object corev1.ConfigMap
	if err := decode(node, &object); err != nil {
		return within("ConfigMap/"+nameIn(valueIn(node, "metadata")), err)
	}
	m.configMaps[object.Name] = &object
	return nil
}

// explain reduces an error of the YAML decoder to the lines and the kind of problem. It
// never shows the text itself.
func explain(err error) error {
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return errors.New("not a Kubernetes object; write apiVersion, kind and metadata")
	}
	var lines []string
	for _, text := range typed.Errors {
		place, what, ok := strings.Cut(text, ": ")
		switch {
		case !ok:
			place, what = "", "not a Kubernetes object; write apiVersion, kind and metadata"
		case strings.Contains(what, "already defined"):
			what = "a key that is written twice"
		default:
			what = "not of the type that Kubernetes expects here"
		}
		lines = append(lines, strings.TrimPrefix(place+": "+what, ": "))
	}
	var errs []error
	for _, line := range slices.Compact(lines) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

// within puts the place before each error, and before each error that it joins.
func within(place string, errs ...error) error {
	return each(errors.Join(errs...), func(err error) error { return fmt.Errorf("%s: %w", place, err) })
}

// of adds to each error that err joins the index of its text.
func of(text int, err error) error {
	return each(err, func(err error) error { return &Error{text, err} })
}

// each replaces each error that err joins with the result of other.
func each(err error, other func(error) error) error {
	var all []error
	for _, err := range joined.Errors(err) {
		all = append(all, other(err))
	}
	return errors.Join(all...)
}

// textOf returns a scalar that Kubernetes requires to be text; what describes it.
func textOf(node *yaml.Node, what string) (string, error) {
	n := definitions.Resolve(node)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && !(n.Style == 0 && oldBoolean(n.Value)) {
		return n.Value, nil
	}
	return "", fmt.Errorf("line %d: %s must be text; put it in quotes", node.Line, what)
}

// oldBoolean reports whether a word is a Boolean in YAML 1.1, which Kubernetes reads, but
// not in YAML 1.2.
func oldBoolean(word string) bool {
	switch strings.ToLower(word) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return false
}
