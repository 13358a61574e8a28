package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
)

// podFlags are the flags of the commands that read manifests.
type podFlags struct {
	manifest  string // the file; "-" is standard input; "": none
	container string
	templates bool // a folder of templates was named
}

func (f *podFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.manifest, "file", "f", "", "a manifest of one or several YAML documents; - for standard input")
	cmd.Flags().StringVar(&f.container, "container", "", "the provider's container (default: the one whose image's name has secrets-provider or syncer in it)")
}

// provider is the provider's container in one workload.
type provider struct {
	workload  *manifest.Workload
	container *manifest.Container
}

// unknown reports whether the value of a variable stands in a ConfigMap or a
// Secret that is not in the manifest.
func (p provider) unknown(variable string) bool {
	v, set := p.container.Env[variable]
	return set && !v.Known || !set && p.container.Open
}

// readManifest reads the manifest that the flags name. What is wrong in it is
// a *config.InvalidError.
func (f *podFlags) readManifest(stdin io.Reader) (*manifest.Manifest, error) {
	var m *manifest.Manifest
	var at *fs.PathError
	text, err := readInput(f.manifest, stdin)
	if errors.As(err, &at) {
		err = at.Err // the problem names the file
	}
	if err != nil {
		err = fmt.Errorf("the manifest cannot be read: %w", err)
	} else if m, err = manifest.Parse(text); err == nil {
		return m, nil
	}
	invalid := &config.InvalidError{}
	for _, e := range eachError(err) {
		invalid.Problems = append(invalid.Problems, config.Problem{Key: inputName(f.manifest), Message: e.Error()})
	}
	return nil, invalid
}

// providers finds the providers' containers of each workload. A workload
// without annotations for one need not have any, if another has.
func (f *podFlags) providers(m *manifest.Manifest) (found []provider, problems []config.Problem) {
	var without []config.Problem
	for _, w := range m.Workloads {
		containers, err := w.Providers(f.container)
		for _, c := range containers {
			found = append(found, provider{w, c})
		}
		switch {
		case err == nil:
		case annotated(w.Annotations):
			problems = append(problems, config.Problem{Key: w.String(), Message: err.Error()})
		default:
			without = append(without, config.Problem{Key: w.String(), Message: err.Error()})
		}
	}
	if len(found)+len(problems) == 0 && !slices.ContainsFunc(m.Secrets, managed) {
		problems = without
	}
	return found, problems
}

// nothing is the problem with a manifest that has nothing for a provider.
func (f *podFlags) nothing() config.Problem {
	return config.Problem{Key: inputName(f.manifest), Message: "there is no workload with a secrets provider in it"}
}

// annotated tells whether annotations have any for a provider.
func annotated(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, "conjur.org/") {
			return true
		}
	}
	return false
}

// manifestCheck is what a manifest has for a provider, and what is wrong in it.
type manifestCheck struct {
	config.Validation
	providers []provider
	secrets   []readSecret
}

// validateManifest checks every workload and every Secret of the manifest.
// Where there are several workloads, they are named.
func (f *toolFlags) validateManifest(stdin io.Reader, connection bool) config.Validation {
	m, err := f.pod.readManifest(stdin)
	if err != nil {
		return config.NewValidation(nil, err)
	}
	return f.checkManifest(m, connection, len(m.Workloads) > 1).Validation
}

// checkManifest checks a manifest; naming tells to name the workload of each
// problem.
func (f *toolFlags) checkManifest(m *manifest.Manifest, connection, naming bool) manifestCheck {
	found, problems := f.pod.providers(m)
	if len(found)+len(problems) == 0 && !slices.ContainsFunc(m.Secrets, managed) {
		problems = append(problems, f.pod.nothing())
	}
	c := manifestCheck{Validation: config.NewValidation(nil, nil), providers: found}
	c.add(config.Validation{Errors: problems})
	named := map[string]bool{}
	for _, p := range found {
		cfg, v := f.loadProvider(p, connection)
		if naming {
			v = config.Validation{Errors: prefixed(p.workload.String()+": ", v.Errors), Warnings: prefixed(p.workload.String()+": ", v.Warnings)}
		}
		c.add(v)
		if cfg != nil {
			for _, def := range cfg.Kubernetes.Definitions {
				named[def.Name] = named[def.Name] || def.Configured == nil
			}
		}
	}
	secrets, v := readSecrets(m, named)
	c.secrets = secrets
	c.add(v)
	for _, s := range secrets {
		c.add(config.Validation{Errors: s.check(manifestTemplates(m, f.templatesFolder()))})
	}
	return c
}

func (c *manifestCheck) add(v config.Validation) {
	c.Errors = append(c.Errors, v.Errors...)
	c.Warnings = append(c.Warnings, v.Warnings...)
}

func prefixed(prefix string, problems []config.Problem) []config.Problem {
	for i := range problems {
		problems[i].Key = prefix + problems[i].Key
	}
	return problems
}
