package secretsprovider

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// Load reads and checks the configuration of the container, as far as the manifest
// contains it. It returns nil if the configuration is invalid. A ConfigFile and a Node of
// src take precedence over the manifest, and so does TemplatesDir if templates is true.
// If connection is true, missing connection settings of Conjur are problems. Otherwise
// they are accepted if they may be outside the manifest.
func (p Provider) Load(src config.Sources, templates, connection bool) (*config.Config, config.Validation) {
	folder := path.Clean(src.SecretsDir)
	src, err := p.sources(src)
	if err != nil {
		return nil, config.NewValidation(nil, err)
	}
	c := p.Container // Open: Env may be incomplete
	src.Templates = p.templates(src.TemplatesDir)
	if templates {
		src.Templates = config.TemplateFolder(src.TemplatesDir)
	}
	src.Assume = config.Assumptions{
		Connection: !connection && (c.Open || src.ConfigFile.Name == "" && !connected(c)),
		Namespace:  c.Open,
		Files:      true, // they may exist in the Pod, but not here
		Node:       c.Open,
	}
	cfg, warnings, err := config.Load(src)
	v := config.NewValidation(append(warnings, cfg.Hints()...), err)
	v.Warnings = slices.Concat(p.misplaced(), p.checkVolumes(folder), v.Warnings)
	return cfg, v
}

// sources returns the inputs of the container's configuration.
func (p Provider) sources(src config.Sources) (config.Sources, error) {
	c := p.Container
	src.Annotations = config.File{Name: config.DefaultAnnotations, Text: annotationsFile(p.Workload.Annotations)}
	src.AnnotationsNamed = slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.HasPrefix(arg, "--annotations") })
	name := configName(c)
	switch {
	case src.ConfigFile.Name != "":
		src.ConfigFile = config.ReadFile(src.ConfigFile.Name)
	case name != "":
		files, _ := c.Mounted(path.Dir(name))
		text, ok := files[path.Base(name)]
		if !ok {
			return src, &config.InvalidError{Problems: []config.Problem{{Key: config.ConfigFileVariable,
				Message: fmt.Sprintf("the configuration file %s is in the Pod; name a copy of it with --config", name)}}}
		}
		src.ConfigFile = config.File{Name: name, Text: []byte(text)}
	}
	src.Getenv = func(name string) string { return podVariable(c, name) }
	return src, nil
}

// configName is the path of the container's configuration file, from a variable or an
// argument, or "".
func configName(c *manifest.Container) string {
	args := slices.Concat(c.Command, c.Args)
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--config="); ok {
			return name
		}
		if arg == "--config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return c.Env[config.ConfigFileVariable].Value
}

// annotationsFile returns annotations in the format of the Downward API.
func annotationsFile(annotations map[string]string) []byte {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "%s=%q\n", key, annotations[key])
	}
	return []byte(text.String())
}

// connected reports whether the manifest has any setting for Conjur.
func connected(c *manifest.Container) bool {
	for name := range c.Env {
		if strings.HasPrefix(name, "CONJUR_") {
			return true
		}
	}
	return false
}

// podVariable returns a variable of the container. If the manifest does not contain the
// value, a required variable gets a valid value. A variable with a default then counts as
// not set.
func podVariable(c *manifest.Container, name string) string {
	v, set := c.Env[name]
	const host = "https://not-known.invalid"
	switch {
	case !set || v.Known:
		return v.Value
	case name == "CONJUR_APPLIANCE_URL":
		return host
	case name == "CONJUR_AUTHN_URL":
		return host + "/authn-jwt/not-known" // needs no other settings
	case name == "CONJUR_AUTHN_LOGIN":
		return "host/not-known"
	case name == "CONTAINER_MODE":
		return string(config.ModeSidecar)
	case name == "MY_NODE_NAME":
		return config.AnyNode
	case name == "SECRETS_DESTINATION":
		return string(config.DestinationKubernetes) // the only valid one there
	case slices.Contains([]string{"CONJUR_ACCOUNT", "CONJUR_AUTHN_API_KEY", "MY_POD_NAME", "MY_POD_NAMESPACE", "NAMESPACE_ALLOWLIST"}, name):
		return "not-known"
	}
	return ""
}

// misplaced warns of annotations that the Pod does not receive.
func (p Provider) misplaced() (warnings []config.Problem) {
	for _, key := range p.Workload.Outside {
		warnings = append(warnings, config.Problem{Key: key, Message: "not read here, where it is the " + p.Workload.Kind + "'s own; put it below the Pod template's metadata.annotations"})
	}
	return warnings
}

// checkVolumes warns of volumes that the Pod template loses, of folders without a shared
// volume, and of a volume on a disk. folder is the secrets folder.
func (p Provider) checkVolumes(folder string) (warnings []config.Problem) {
	warn := func(message string, folders ...any) {
		warnings = append(warnings, config.Problem{Key: "volumeMounts", Message: fmt.Sprintf(message, folders...)})
	}
	for _, claim := range p.Workload.Claims {
		if p.Container.Mounts(claim) {
			warn("the volume %[1]s of the Pod template is lost, because spec.volumeClaimTemplates has a claim %[1]s; rename one of them", claim)
		}
	}
	podinfo := path.Dir(config.DefaultAnnotations)
	if _, ok := p.Container.Mounted(podinfo); !ok && Annotated(p.Workload.Annotations) {
		warn("nothing is mounted at %s, so the annotations are not read; mount a downwardAPI volume with metadata.annotations there", podinfo)
	}
	if p.Workload.Annotations["conjur.org/secrets-destination"] != string(config.DestinationFile) {
		return warnings
	}
	for _, volume := range p.Container.Disk(folder) {
		warn("the volume %s at %s may write the secrets to a disk; use an emptyDir with medium: Memory", volume, folder)
	}
	_, mounted := p.Container.Mounted(folder)
	switch at := p.Container.MountOf(folder); {
	case at == folder, mounted && at == "": // or volumes below it
	case at == path.Dir(folder):
		warn("the volume mounted at %s has no folder %s at first; Syncer makes it, with mode 0755, as the Secrets Provider does", at, folder)
	case at == "":
		warn("nothing is mounted at %s, so no other container sees the files; mount an emptyDir there, and in the application's container", folder)
	default:
		warn("%s is neither mounted nor right below the volume mounted at %s, so Syncer does not make it; mount an emptyDir there, and in the application's container", folder, at)
	}
	return warnings
}

// textFiles is a folder of files by name.
type textFiles map[string]string

// ReadFile returns a file. Open always fails, because callers read only whole files.
func (files textFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := files[name]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

func (files textFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// templates returns the files that the container mounts at dir. If the manifest does not
// contain them, each group that needs a template file has one.
func (p Provider) templates(dir string) textFiles {
	files, mounted := p.Container.Mounted(path.Clean(dir))
	if !mounted || files != nil {
		return files
	}
	files = map[string]string{}
	for key, format := range p.Workload.Annotations {
		group, ok := strings.CutPrefix(key, "conjur.org/secret-file-format.")
		if ok && format == "template" && p.Workload.Annotations["conjur.org/secret-file-template."+group] == "" {
			files[group+".tpl"] = "{{/* not known */}}"
		}
	}
	return files
}
