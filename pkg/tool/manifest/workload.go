package manifest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Workload is an object that creates Pods.
type Workload struct {
	Kind, Name string
	// File is the file of the object, or "".
	File string
	// Annotations are the annotations of the Pod, which a provider reads, not those of
	// the workload object.
	Annotations map[string]string
	// Outside lists the annotations of a provider that only the workload object has.
	Outside []string
	// Claims are the names of the claim templates of a StatefulSet that replace a volume of
	// the Pod template.
	Claims []string
	// Pod is the whole Pod, with the volumes of claim templates, and Text the index of its
	// text.
	Pod  corev1.PodTemplateSpec
	Text int
	// OwnLabels are the labels of the workload object and of a CronJob's Jobs, not those of
	// the Pod.
	OwnLabels map[string]string
	// Containers are all containers of the Pod, init containers first.
	Containers []*Container

	spec *yaml.Node // of the Pod
}

// String is the kind and the name, such as "Deployment/shop".
func (w *Workload) String() string { return w.Kind + "/" + w.Name }

// Place is the file, if it is known, the kind and the name.
func (w *Workload) Place() string { return strings.TrimPrefix(w.File+": "+w.String(), ": ") }

// ErrNoProvider is the error of Providers if the workload has no such container.
var ErrNoProvider = errors.New("no container of a secrets provider")

// Providers finds the containers that provide secrets, such as an init container and a
// sidecar. It returns the container called name. If name is empty, it returns those with
// an image that has a provider's name. Without an error there is at least one.
func (w *Workload) Providers(name string) (found []*Container, err error) {
	var others []string
	for _, c := range w.Containers {
		switch {
		case name == "" && c.Provides() || name != "" && c.Name == name:
			found = append(found, c)
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
	return nil, fmt.Errorf("%w: no image name contains secrets-provider or syncer; name the container with --container: %s", ErrNoProvider, strings.Join(others, ", "))
}

// Provides reports by its image whether a container is the Secrets Provider or Syncer. It
// ignores tag, digest and registry.
func (c *Container) Provides() bool {
	image, _, _ := strings.Cut(c.Image, "@")
	name := path.Base(image)
	name, _, _ = strings.Cut(name, ":")
	return strings.Contains(name, "secrets-provider") || strings.Contains(name, "syncer")
}

// holder is the part of a workload object that concerns its Pods.
type holder struct {
	Metadata struct {
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Template    corev1.PodTemplateSpec  `json:"template"`
		JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	} `json:"spec"`
}

// addWorkload adds an object that creates Pods, from one of the texts.
func (m *Manifest) addWorkload(text int, o object) error {
	pod, path, err := podOf(o)
	if path == nil {
		return nil
	}
	w := &Workload{Kind: o.Kind, Name: nameIn(valueIn(o.node, "metadata")), Annotations: pod.Annotations, Text: text}
	if err != nil {
		return within(w.String(), err)
	}
	var claims []corev1.PersistentVolumeClaim
	if err := decode(valueIn(o.node, "spec", "volumeClaimTemplates"), &claims); err != nil {
		return within(w.String(), err)
	}
	for _, claim := range claims {
		w.Claims = append(w.Claims, replaceVolume(&pod.Spec, claim.Name)...)
	}
	w.Pod = pod
	for _, labels := range [][]string{{"metadata", "labels"}, {"spec", "jobTemplate", "metadata", "labels"}} {
		if err := decode(valueIn(o.node, labels...), &w.OwnLabels); err != nil {
			return within(w.String(), err)
		}
	}
	var own map[string]yaml.Node
	if err := valueIn(o.node, "metadata", "annotations").Decode(&own); err != nil {
		return within(w.String(), explain(err))
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, inside := w.Annotations[key]; !inside && strings.HasPrefix(key, "conjur.org/") {
			w.Outside = append(w.Outside, key)
		}
	}
	var nodes struct { // for the positions of the images
		InitContainers []struct{ Image yaml.Node } `yaml:"initContainers"`
		Containers     []struct{ Image yaml.Node }
	}
	if err := valueIn(o.node, path...).Decode(&nodes); err != nil {
		return within(w.String(), explain(err))
	}
	w.spec = valueIn(o.node, path...)
	images := slices.Concat(nodes.InitContainers, nodes.Containers)
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		made := m.Container(c, pod.Spec.Volumes)
		made.text, made.image = text, images[i].Image
		w.Containers = append(w.Containers, made)
	}
	m.Workloads = append(m.Workloads, w)
	return nil
}

// replaceVolume adds the volume of a claim template to a Pod, as Kubernetes does. It returns
// the name if the Pod template has another volume of this name, which is lost.
func replaceVolume(pod *corev1.PodSpec, name string) (lost []string) {
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool {
		if v.Name == name {
			lost = []string{name}
		}
		return v.Name == name
	})
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
	return lost
}

// podOf finds the Pod in an object, with the path of its spec. The path is empty if the
// object's kind creates no Pods.
func podOf(o object) (pod corev1.PodTemplateSpec, path []string, err error) {
	var in holder
	switch o.Kind {
	case "Pod":
		err = decode(o.node, &pod)
		return pod, []string{"spec"}, err
	case "CronJob":
		err = decode(o.node, &in)
		return in.Spec.JobTemplate.Spec.Template, []string{"spec", "jobTemplate", "spec", "template", "spec"}, err
	}
	// Kinds of other APIs have their Pod template in the same place: DeploymentConfig of
	// OpenShift, Rollout of Argo, Service of Knative.
	path = []string{"spec", "template", "spec"}
	known := []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"}
	spec := valueIn(o.node, path...)
	if !slices.Contains(known, o.Kind) && valueIn(spec, "containers").Kind != yaml.SequenceNode && valueIn(spec, "initContainers").Kind != yaml.SequenceNode {
		return pod, nil, nil
	}
	err = decode(o.node, &in)
	return in.Spec.Template, path, err
}
