package manifest

import (
	"errors"
	"maps"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Container is one container of a Pod.
type Container struct {
	Name, Image string
	Command     []string // instead of the image's own; nil: none
	Args        []string
	// Env is the variables by their names, as far as the manifest has them.
	Env map[string]Variable
	// Open: there may be more variables than Env has, from a ConfigMap or a
	// Secret that is not in the manifest.
	Open bool
	// PostStart is the command of the hook of that name; nil: none.
	PostStart []string
	// ReadOnlyRoot: nothing but mounted volumes can be written to.
	ReadOnlyRoot bool
	// Kept says, by the name of a Secret, in what the container keeps its data as
	// they were at its start, such as "the variable PASSWORD".
	Kept map[string]string

	mounts map[string]map[string]string // path → the files there by name; nil: not known
	image  yaml.Node
	text   int // the index of the text that it is in
}

// Variable is a variable of a container's environment.
type Variable struct {
	Value string
	// Known is false for a variable whose value is not in the manifest, such
	// as a key of a Secret; Value is empty then.
	Known bool
}

// Mounted reports whether a volume is mounted at a folder, above or below it;
// files is what the folder holds, by name, or nil when that is not in the
// manifest.
func (c *Container) Mounted(folder string) (files map[string]string, ok bool) {
	if files, ok := c.mounts[folder]; ok {
		return files, true
	}
	for at := range c.mounts {
		if strings.HasPrefix(folder+"/", strings.TrimSuffix(at, "/")+"/") || strings.HasPrefix(at, folder+"/") {
			return nil, true
		}
	}
	return nil, false
}

// MountOf returns the path at which the volume is mounted that holds a folder;
// "" for a folder that is in none.
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

// The parts of a container and of its Pod's volumes that are looked at.
type (
	container struct {
		Name    string
		Image   yaml.Node
		Command []string
		Args    []string
		Env     []struct {
			Name      string
			Value     yaml.Node
			ValueFrom *struct {
				ConfigMapKeyRef *struct{ Name, Key string } `yaml:"configMapKeyRef"`
				SecretKeyRef    *struct{ Name string }      `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		EnvFrom []struct {
			Prefix       string
			ConfigMapRef *struct{ Name string } `yaml:"configMapRef"`
			SecretRef    *struct{ Name string } `yaml:"secretRef"`
		} `yaml:"envFrom"`
		VolumeMounts []struct {
			Name        string
			MountPath   string `yaml:"mountPath"`
			SubPath     string `yaml:"subPath"`
			SubPathExpr string `yaml:"subPathExpr"`
		} `yaml:"volumeMounts"`
		SecurityContext struct {
			ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
		Lifecycle struct {
			PostStart struct {
				Exec struct{ Command []string }
			} `yaml:"postStart"`
		}
	}
	volume struct {
		Name      string
		ConfigMap *struct {
			Name  string
			Items []struct{ Key, Path string }
		} `yaml:"configMap"`
		Secret *struct {
			Name string `yaml:"secretName"`
		}
	}
)

// container fills in a Container, also when there is an error.
func (m *Manifest) container(c container, volumes []volume) (*Container, error) {
	made := &Container{
		Name: c.Name, Command: c.Command, Args: c.Args, PostStart: c.Lifecycle.PostStart.Exec.Command,
		ReadOnlyRoot: c.SecurityContext.ReadOnlyRootFilesystem, Env: map[string]Variable{}, mounts: map[string]map[string]string{}, image: c.Image,
	}
	var err error
	if !c.Image.IsZero() {
		made.Image, err = textOf(&c.Image, "the image")
	}
	m.envFrom(made, c)
	errs := []error{err, m.env(made, c)}
	for _, mount := range c.VolumeMounts {
		at := strings.TrimSuffix(mount.MountPath, "/")
		made.mounts[at] = nil
		if mount.SubPath == "" && mount.SubPathExpr == "" {
			made.mounts[at] = m.volume(volumes, mount.Name)
		}
	}
	made.Kept = c.kept(volumes)
	return made, within("container "+c.Name, errs...)
}

// kept is Container.Kept.
func (c container) kept(volumes []volume) map[string]string {
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
				kept[v.Secret.Name] = "the subPath at " + mount.MountPath
			}
		}
	}
	return kept
}

// envFrom adds the variables that whole ConfigMaps set.
func (m *Manifest) envFrom(made *Container, c container) {
	for _, from := range c.EnvFrom {
		data, ok := map[string]string(nil), false
		if from.ConfigMapRef != nil {
			data, ok = m.configMaps[from.ConfigMapRef.Name]
		}
		made.Open = made.Open || !ok
		for key, value := range data {
			made.Env[from.Prefix+key] = Variable{value, true}
		}
	}
}

// env adds the variables that are set one by one; they win over whole
// ConfigMaps. A value that refers to other variables counts as not known.
func (m *Manifest) env(made *Container, c container) error {
	var errs []error
	for _, e := range c.Env {
		v := Variable{Known: true}
		switch {
		case e.ValueFrom != nil:
			v.Known = false
			if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
				v.Value, v.Known = m.configMaps[ref.Name][ref.Key]
			}
		case !e.Value.IsZero() && e.Value.Tag != "!!null":
			var err error
			v.Value, err = textOf(&e.Value, "the value of the variable "+e.Name)
			errs = append(errs, err)
			if strings.Contains(v.Value, "$(") {
				v = Variable{}
			}
		}
		made.Env[e.Name] = v
	}
	return errors.Join(errs...)
}

// volume returns the files of a volume that is a ConfigMap of the manifest; nil
// for any other.
func (m *Manifest) volume(volumes []volume, name string) map[string]string {
	for _, v := range volumes {
		if v.Name != name || v.ConfigMap == nil {
			continue
		}
		data, ok := m.configMaps[v.ConfigMap.Name]
		if !ok {
			return nil
		}
		if len(v.ConfigMap.Items) == 0 {
			return maps.Clone(data)
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
