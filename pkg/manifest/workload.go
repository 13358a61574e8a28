package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Workload is an object that makes Pods.
type Workload struct {
	Kind, Name string
	// Annotations are those of the Pod, which is where a provider finds them,
	// not those of the object that makes it.
	Annotations map[string]string
	// Outside lists the annotations of a provider that only the object has.
	Outside []string
	// Containers are all of the Pod, init containers first.
	Containers []*Container
}

// String is the kind and the name, such as "Deployment/shop".
func (w *Workload) String() string { return w.Kind + "/" + w.Name }

// ErrNoProvider is the error of Provider when the workload has no such
// container.
var ErrNoProvider = errors.New("no container of a secrets provider")

// Providers finds the containers that provide secrets, such as an init container
// and a sidecar: the one called name or, if name is empty, those whose images'
// names say so. There is at least one without an error.
func (w *Workload) Providers(name string) (found []*Container, err error) {
	var others []string
	for _, c := range w.Containers {
		switch {
		case name == "" && c.provides() || name != "" && c.Name == name:
			found = append(found, c)
		case name == "":
			others = append(others, c.Image)
		default:
			others = append(others, c.Name)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(others) == 0:
		return nil, fmt.Errorf("%w: it has no containers at all; write them into its spec", ErrNoProvider)
	case name != "":
		return nil, fmt.Errorf("%w is called %q; there are %s", ErrNoProvider, name, strings.Join(others, ", "))
	}
	return nil, fmt.Errorf("%w: no image's name has secrets-provider or syncer in it, but %s; name the container by --container", ErrNoProvider, strings.Join(others, ", "))
}

// provides reports by its image whether a container is the Secrets Provider or
// Syncer. Tag, digest and registry say nothing.
func (c *Container) provides() bool {
	image, _, _ := strings.Cut(c.Image, "@")
	name := path.Base(image)
	name, _, _ = strings.Cut(name, ":")
	return strings.Contains(name, "secrets-provider") || strings.Contains(name, "syncer")
}

// The parts of a Pod that are looked at.
type (
	podTemplate struct {
		Metadata struct{ Annotations map[string]yaml.Node }
		Spec     podSpec
	}
	podSpec struct {
		InitContainers []container `yaml:"initContainers"`
		Containers     []container
		Volumes        []volume
	}
	workloadSpec struct {
		Template    podTemplate
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
)

// addWorkload takes an object that makes Pods, of one of the texts.
func (m *Manifest) addWorkload(text int, o object) error {
	var object struct {
		Metadata struct {
			Name        string
			Annotations map[string]yaml.Node
		}
		Spec yaml.Node
	}
	wrong := o.node.Decode(&object) // as far as it goes
	template, ok, err := podOf(o.Kind, o.node, &object.Spec)
	if !ok {
		return nil
	}
	w := &Workload{Kind: o.Kind, Name: object.Metadata.Name}
	if err = cmp.Or(err, wrong); err != nil {
		return within(w.String(), explain(err))
	}
	w.Annotations, err = annotations(template.Metadata.Annotations)
	errs := []error{err}
	for _, key := range slices.Sorted(maps.Keys(object.Metadata.Annotations)) {
		if _, inside := w.Annotations[key]; !inside && strings.HasPrefix(key, "conjur.org/") {
			w.Outside = append(w.Outside, key)
		}
	}
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		made, err := m.container(c, template.Spec.Volumes)
		made.text = text
		w.Containers = append(w.Containers, made)
		errs = append(errs, err)
	}
	m.Workloads = append(m.Workloads, w)
	return within(w.String(), errs...)
}

// podOf finds the Pod in an object; false when its kind makes none.
func podOf(kind string, object, spec *yaml.Node) (podTemplate, bool, error) {
	var pod podTemplate
	var holder workloadSpec
	switch kind {
	case "Pod":
		return pod, true, object.Decode(&pod)
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		err := spec.Decode(&holder)
		return holder.Template, true, err
	case "CronJob":
		err := spec.Decode(&holder)
		return holder.JobTemplate.Spec.Template, true, err
	}
	return pod, false, nil
}
