package tool

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/injection"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// sidecar returns what the chart's admission policy adds to a Pod: of the chart's values
// in Inject, else of the default values.
func (t *Tool) sidecar() (*injection.Sidecar, error) {
	if t.Inject == "" {
		return injection.Assumed()
	}
	values, err := ReadInput(t.Inject, t.In)
	if err != nil {
		return nil, err
	}
	s, err := injection.Render(values)
	if err != nil {
		return nil, about(inputName(t.Inject), err)
	}
	return s, nil
}

// injected returns the container that the chart's admission policy adds to a workload
// with its label, and the Pod with it, or nil. If the policy would reject the Pod, problems
// says why.
func (t *Tool) injected(m *manifest.Manifest, w *manifest.Workload, sidecar *injection.Sidecar) (c *manifest.Container, pod *corev1.PodTemplateSpec, problems []config.Problem) {
	if _, inside := w.Pod.Labels[sidecar.Label]; !inside && w.OwnLabels[sidecar.Label] != "" {
		return nil, nil, []config.Problem{{Key: w.String(), Message: "the label " + sidecar.Label + " is the " + w.Kind + "'s own; put it below the Pod template's metadata.labels"}}
	}
	if _, ok := w.Annotations[sidecar.Label]; ok {
		return nil, nil, []config.Problem{{Key: w.String(), Message: sidecar.Label + " is an annotation; write it as a label of the Pod"}}
	}
	if !sidecar.Wanted(&w.Pod) || t.Container != "" && t.Container != injection.Name {
		return nil, nil, nil
	}
	pod = w.Pod.DeepCopy()
	added, reasons := sidecar.Add(pod)
	for _, reason := range reasons {
		problems = append(problems, config.Problem{Key: w.Place(), Message: reason})
	}
	if !added {
		return nil, nil, problems
	}
	container := pod.Spec.InitContainers[0]
	if t.Inject != "" {
		return m.Container(container, pod.Spec.Volumes), pod, nil
	}
	// The manifest does not contain the chart's values.
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{MountPath: t.Sources.TemplatesDir})
	c = m.Container(container, pod.Spec.Volumes)
	for _, name := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_ACCOUNT", "CONJUR_AUTHN_URL"} {
		c.Env[name] = manifest.Variable{}
	}
	c.Open = true
	return c, pod, nil
}

// inject writes the sidecar into every workload of a manifest that asks for it and does
// not have it.
func (t *Tool) inject(texts [][]byte) ([][]byte, error) {
	sidecar, err := t.sidecar()
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(texts...)
	if err != nil {
		return nil, err
	}
	additions := map[*manifest.Workload]manifest.Addition{}
	for _, w := range m.Workloads {
		if pod := w.Pod.DeepCopy(); sidecar.Wanted(pod) {
			readers, mounts, env := sidecar.Readers(pod)
			if added, _ := sidecar.Add(pod); added {
				additions[w] = manifest.Addition{Init: pod.Spec.InitContainers[0], Volumes: sidecar.Volumes, Mounts: mounts, Env: env, Readers: readers}
			}
		}
	}
	return m.With(additions)
}
