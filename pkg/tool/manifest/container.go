package manifest

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// Container is one container of a Pod.
type Container struct {
	Name, Image string
	Command     []string // instead of the image's; nil: none
	Args        []string
	// Env contains the variables by their names, as far as the manifest defines them.
	Env map[string]Variable
	// Open means that Env may be incomplete, because of a ConfigMap or a Secret that is
	// not in the manifest.
	Open bool
	// Execs contains the commands of the postStart hook and the probes, by their fields.
	Execs map[string][]string
	// ReadOnlyRoot means that only mounted volumes are writable.
	ReadOnlyRoot bool
	// Kept contains, by the name of a Secret, the place where the container keeps the
	// Secret's data from its start, such as "the variable PASSWORD".
	Kept map[string]string
	// Needs contains, by the name of a Secret, a place that refers to one of its keys. The
	// container cannot start without the key.
	Needs map[string]string

	mounts map[string]mount // by path
	image  yaml.Node
	text   int // the index of its text
}

// mount is a volume that a container mounts.
type mount struct {
	volume string
	files  map[string]string // by name; nil: unknown
	disk   bool              // its content may be written to a disk
}

// Variable is a variable of a container's environment.
type Variable struct {
	Value string
	// Known is false for a variable whose value is not in the manifest, such as a key of
	// a Secret. Value is then empty.
	Known bool
}

// Mounted reports whether a volume is mounted at a folder, above or below it. files
// contains the folder's files by name, or nil if the manifest does not contain them.
func (c *Container) Mounted(folder string) (files map[string]string, ok bool) {
	if m, ok := c.mounts[folder]; ok {
		return m.files, true
	}
	for at := range c.mounts {
		if strings.HasPrefix(folder+"/", strings.TrimSuffix(at, "/")+"/") || strings.HasPrefix(at, folder+"/") {
			return nil, true
		}
	}
	return nil, false
}

// MountOf returns the mount path of the volume that contains a folder, or "" if the
// folder is not in a volume.
func (c *Container) MountOf(folder string) string {
	for at := folder; ; at = path.Dir(at) {
		if _, ok := c.mounts[strings.TrimSuffix(at, "/")]; ok {
			return at
		}
		if at == path.Dir(at) {
			return ""
		}
	}
}

// Disk lists the mounted volumes that contain a folder, or folders below it, and whose
// content may be written to a disk.
func (c *Container) Disk(folder string) (volumes []string) {
	above := strings.TrimSuffix(c.MountOf(folder), "/")
	for _, at := range slices.Sorted(maps.Keys(c.mounts)) {
		if m := c.mounts[at]; m.disk && (at == above || strings.HasPrefix(at, folder+"/")) {
			volumes = append(volumes, m.volume)
		}
	}
	return volumes
}

// Mounts reports whether the container mounts a volume.
func (c *Container) Mounts(volume string) bool {
	for _, m := range c.mounts {
		if m.volume == volume {
			return true
		}
	}
	return false
}

// Container makes a Container from a Pod's container and volumes. It has no position in a
// text.
func (m *Manifest) Container(c corev1.Container, volumes []corev1.Volume) *Container {
	made := &Container{
		Name: c.Name, Image: c.Image, Command: c.Command, Args: c.Args,
		Env: map[string]Variable{}, mounts: map[string]mount{}, Kept: kept(c, volumes), Needs: needs(c, volumes),
		Execs: execs(c),
	}
	if c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil {
		made.ReadOnlyRoot = *c.SecurityContext.ReadOnlyRootFilesystem
	}
	m.envFrom(made, c)
	m.env(made, c)
	for _, mount := range c.VolumeMounts {
		made.mounts[strings.TrimSuffix(mount.MountPath, "/")] = m.mount(mount, volumes)
	}
	return made
}

// mount describes a volume at the place of a mount.
func (m *Manifest) mount(at corev1.VolumeMount, volumes []corev1.Volume) mount {
	made := mount{volume: at.Name}
	if at.SubPath == "" && at.SubPathExpr == "" {
		made.files = m.volume(volumes, at.Name)
	}
	if i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == at.Name }); i >= 0 {
		v := volumes[i]
		made.disk = v.EmptyDir != nil && v.EmptyDir.Medium == "" || v.HostPath != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}
	return made
}

// kept returns Container.Kept.
func kept(c corev1.Container, volumes []corev1.Volume) map[string]string {
	kept := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			kept[from.SecretRef.Name] = "its environment"
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			kept[e.ValueFrom.SecretKeyRef.Name] = "the variable " + e.Name
		}
	}
	for _, mount := range c.VolumeMounts {
		for _, v := range volumes {
			if v.Name == mount.Name && v.Secret != nil && (mount.SubPath != "" || mount.SubPathExpr != "") {
				kept[v.Secret.SecretName] = "the subPath at " + mount.MountPath
			}
		}
	}
	return kept
}

// needs returns Container.Needs.
func needs(c corev1.Container, volumes []corev1.Volume) map[string]string {
	needs := map[string]string{}
	optional := func(o *bool) bool { return o != nil && *o }
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !optional(e.ValueFrom.SecretKeyRef.Optional) {
			needs[e.ValueFrom.SecretKeyRef.Name] = "the variable " + e.Name
		}
	}
	for _, v := range volumes {
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			continue
		}
		if v.Secret != nil && len(v.Secret.Items) > 0 && !optional(v.Secret.Optional) {
			needs[v.Secret.SecretName] = "the volume " + v.Name
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.Secret != nil && len(s.Secret.Items) > 0 && !optional(s.Secret.Optional) {
				needs[s.Secret.Name] = "the volume " + v.Name
			}
		}
	}
	return needs
}

// execs returns Container.Execs.
func execs(c corev1.Container) map[string][]string {
	execs := map[string][]string{}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil && c.Lifecycle.PostStart.Exec != nil {
		execs["lifecycle.postStart"] = c.Lifecycle.PostStart.Exec.Command
	}
	for field, probe := range map[string]*corev1.Probe{"startupProbe": c.StartupProbe, "livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe} {
		if probe != nil && probe.Exec != nil {
			execs[field] = probe.Exec.Command
		}
	}
	return execs
}

// envFrom adds the variables from whole ConfigMaps.
func (m *Manifest) envFrom(made *Container, c corev1.Container) {
	for _, from := range c.EnvFrom {
		var found *corev1.ConfigMap
		if from.ConfigMapRef != nil {
			found = m.configMaps[from.ConfigMapRef.Name]
		}
		if found == nil {
			made.Open = true
			continue
		}
		for key, value := range found.Data {
			made.Env[from.Prefix+key] = Variable{value, true}
		}
	}
}

// env adds the individual variables. They take precedence over whole ConfigMaps. A value
// that refers to other variables counts as unknown.
func (m *Manifest) env(made *Container, c corev1.Container) {
	for _, e := range c.Env {
		v := Variable{Value: e.Value, Known: true}
		switch {
		case e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil:
			ref := e.ValueFrom.ConfigMapKeyRef
			v = Variable{}
			if found, ok := m.configMaps[ref.Name]; ok {
				v.Value, v.Known = found.Data[ref.Key]
			}
		case e.ValueFrom != nil, strings.Contains(e.Value, "$("):
			v = Variable{}
		}
		made.Env[e.Name] = v
	}
}

// volume returns the files of a volume that is a ConfigMap of the manifest. It returns
// nil for any other volume.
func (m *Manifest) volume(volumes []corev1.Volume, name string) map[string]string {
	for _, v := range volumes {
		if v.Name != name || v.ConfigMap == nil {
			continue
		}
		found, ok := m.configMaps[v.ConfigMap.Name]
		if !ok {
			return nil
		}
		data := map[string]string{}
		maps.Copy(data, found.Data)
		for key, bytes := range found.BinaryData {
			data[key] = string(bytes)
		}
		if len(v.ConfigMap.Items) == 0 {
			return data
		}
		files := map[string]string{}
		for _, item := range v.ConfigMap.Items {
			if text, ok := data[item.Key]; ok {
				files[item.Path] = text
			}
		}
		return files
	}
	return nil
}
