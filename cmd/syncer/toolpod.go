package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
)

// validateProvider checks the configuration that the container would have, as
// far as the manifest tells.
func (f *toolFlags) validateProvider(p provider, connection bool) config.Validation {
	c := p.container
	if named := c.Env[config.ConfigFileVariable].Value; named != "" && f.sources.ConfigFile == "" {
		return config.Validation{Errors: []config.Problem{{Key: config.ConfigFileVariable,
			Message: fmt.Sprintf("the configuration file %s is in the Pod; name a copy of it with --config", named)}}}
	}
	dir, err := os.MkdirTemp("", "syncer-")
	if err != nil {
		return config.NewValidation(nil, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	src := f.sources
	src.Annotations = filepath.Join(dir, "annotations")
	if err := os.WriteFile(src.Annotations, annotationsFile(p.workload.Annotations), 0o600); err != nil {
		return config.NewValidation(nil, err)
	}
	src.Getenv = func(name string) string { return podVariable(c, name) }
	src.Offline = !connection && (c.Open || !connected(c))
	if !f.pod.templates {
		src.Templates = podTemplates(p, src.TemplatesDir)
	}
	_, warnings, err := config.Load(src)
	v := config.NewValidation(append(f.unmounted(p), warnings...), err)
	v.Errors = slices.DeleteFunc(v.Errors, ofPodFile)
	return v
}

// annotationsFile is what the Downward API makes of annotations.
func annotationsFile(annotations map[string]string) []byte {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "%s=%q\n", key, annotations[key])
	}
	return []byte(text.String())
}

// connected tells whether the manifest says anything about Conjur.
func connected(c *manifest.Container) bool {
	for name := range c.Env {
		if strings.HasPrefix(name, "CONJUR_") {
			return true
		}
	}
	return false
}

// podVariable gives a variable of the container. One whose value the manifest
// does not tell has a value that is right, if it is one that must be set, and
// counts as not set if it has a default.
func podVariable(c *manifest.Container, name string) string {
	v, set := c.Env[name]
	const host = "https://not-known.invalid"
	switch {
	case !set || v.Known:
		return v.Value
	case name == "CONJUR_APPLIANCE_URL":
		return host
	case name == "CONJUR_AUTHN_URL":
		return host + "/authn-jwt/not-known" // needs nothing more
	case name == "CONJUR_AUTHN_LOGIN":
		return "host/not-known"
	case name == "CONTAINER_MODE":
		return string(config.ModeSidecar)
	case name == "SECRETS_DESTINATION":
		return string(config.DestinationKubernetes) // no other is valid there
	case slices.Contains([]string{"CONJUR_ACCOUNT", "CONJUR_AUTHN_API_KEY", "MY_POD_NAME", "MY_POD_NAMESPACE", "NAMESPACE_ALLOWLIST"}, name):
		return "not-known"
	}
	return ""
}

// ofPodFile tells the problems with files that are in the Pod, if anywhere.
func ofPodFile(p config.Problem) bool {
	for _, key := range []string{"CONJUR_CERT_FILE", "JWT_TOKEN_PATH", "conjur.org/jwt-token-path", "conjur.certFile", "conjur.jwtTokenPath"} {
		if p.Key == key || strings.HasSuffix(p.Key, ": "+key) {
			return true
		}
	}
	return false
}

// unmounted warns of folders that the container should share and does not.
func (f *toolFlags) unmounted(p provider) (warnings []config.Problem) {
	warn := func(message string, folder string) {
		if _, ok := p.container.Mounted(path.Clean(folder)); !ok {
			warnings = append(warnings, config.Problem{Key: "volumeMounts", Message: fmt.Sprintf(message, folder)})
		}
	}
	if annotated(p.workload.Annotations) {
		warn("nothing is mounted at %s, so the annotations are not read; mount a downwardAPI volume with metadata.annotations there", path.Dir(config.DefaultAnnotations))
	}
	if p.workload.Annotations["conjur.org/secrets-destination"] == string(config.DestinationFile) {
		warn("nothing is mounted at %s, so no other container sees the files; mount an emptyDir there, and in the application's container", f.sources.SecretsDir)
	}
	return warnings
}

// textFiles is a folder of files by name.
type textFiles map[string]string

// ReadFile gives a file, and Open none: whole files are all that is read.
func (files textFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := files[name]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

func (files textFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// podTemplates is what the container has mounted at dir. Where the manifest
// does not tell, each group that needs a template file has one.
func podTemplates(p provider, dir string) textFiles {
	files, mounted := p.container.Mounted(path.Clean(dir))
	if !mounted || files != nil {
		return files
	}
	files = map[string]string{}
	for key, format := range p.workload.Annotations {
		group, ok := strings.CutPrefix(key, "conjur.org/secret-file-format.")
		if ok && format == "template" && p.workload.Annotations["conjur.org/secret-file-template."+group] == "" {
			files[group+".tpl"] = "{{/* not known */}}"
		}
	}
	return files
}
