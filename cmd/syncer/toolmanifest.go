package main

import (
	"errors"
	"io"
	"os"
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

// readManifest reads the manifest that the flags name. What is wrong in it is
// a *config.InvalidError.
func (f *podFlags) readManifest(stdin io.Reader) (*manifest.Manifest, error) {
	var text []byte
	var err error
	if f.manifest == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(f.manifest)
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(text)
	if err != nil {
		invalid := &config.InvalidError{}
		for _, e := range eachError(err) {
			invalid.Problems = append(invalid.Problems, config.Problem{Key: f.manifest, Message: e.Error()})
		}
		return nil, invalid
	}
	return m, nil
}

// providers finds the provider's container of each workload; a workload
// without annotations for one need not have it.
func (f *podFlags) providers(m *manifest.Manifest) (found []provider, problems []config.Problem) {
	for _, w := range m.Workloads {
		c, err := w.Provider(f.container)
		switch {
		case err == nil:
			found = append(found, provider{w, c})
		case !errors.Is(err, manifest.ErrNoProvider) || annotated(w.Annotations):
			problems = append(problems, config.Problem{Key: w.String(), Message: err.Error()})
		}
	}
	return found, problems
}

// nothing is the problem with a manifest that has nothing for a provider.
func (f *podFlags) nothing() config.Problem {
	return config.Problem{Key: f.manifest, Message: "there is no workload with a secrets provider in it"}
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

// validateManifest checks every workload and every Secret of the manifest.
func (f *toolFlags) validateManifest(stdin io.Reader, connection bool) config.Validation {
	m, err := f.pod.readManifest(stdin)
	if err != nil {
		return config.NewValidation(nil, err)
	}
	found, problems := f.pod.providers(m)
	secrets, v := readSecrets(m)
	v.Errors = append(problems, v.Errors...)
	if len(found)+len(problems) == 0 && !slices.ContainsFunc(m.Secrets, managed) {
		v.Errors = append(v.Errors, f.pod.nothing())
	}
	for _, s := range secrets {
		v.Errors = append(v.Errors, s.check(manifestTemplates(m, f.templatesFolder()))...)
	}
	for _, p := range found {
		one := f.validateProvider(p, connection)
		prefix := ""
		if len(m.Workloads) > 1 {
			prefix = p.workload.String() + ": "
		}
		v.Errors = append(v.Errors, prefixed(prefix, one.Errors)...)
		v.Warnings = append(v.Warnings, prefixed(prefix, one.Warnings)...)
	}
	return v
}

func prefixed(prefix string, problems []config.Problem) []config.Problem {
	for i := range problems {
		problems[i].Key = prefix + problems[i].Key
	}
	return problems
}
