package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
	"github.com/secretsync/syncer/pkg/targets"
)

// loadGroups reads the configuration that the flags name, or the one that the
// manifest's workload has, and finds the templates that go with it.
func (f *toolFlags) loadGroups(cmd *cobra.Command) (*config.Config, templateTexts, error) {
	if f.pod.manifest == "" {
		cfg, err := f.load(cmd)
		return cfg, folderTemplates(os.DirFS(f.sources.TemplatesDir)), err
	}
	m, err := f.pod.readManifest(cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	return f.groupsOf(cmd, m)
}

// groupsOf is loadGroups for the workload of a manifest.
func (f *toolFlags) groupsOf(cmd *cobra.Command, m *manifest.Manifest) (*config.Config, templateTexts, error) {
	p, err := f.onlyProvider(m)
	if err != nil {
		return nil, nil, err
	}
	cfg, v := f.loadProvider(p, false)
	return cfg, f.workloadTemplates(m, p), printProblems(cmd.ErrOrStderr(), v)
}

// onlyProvider finds the one provider that there is in the manifest.
func (f *toolFlags) onlyProvider(m *manifest.Manifest) (provider, error) {
	found, problems := f.pod.providers(m)
	switch {
	case len(problems) > 0:
		return provider{}, &config.InvalidError{Problems: problems}
	case len(found) == 0:
		return provider{}, &config.InvalidError{Problems: []config.Problem{f.pod.nothing()}}
	case len(found) > 1:
		var names []string
		for _, p := range found {
			names = append(names, p.workload.String()+" "+p.container.Name)
		}
		return provider{}, fmt.Errorf("there is more than one secrets provider: %s; give a manifest of one workload, and name the container by --container", strings.Join(names, ", "))
	}
	return found[0], nil
}

// workloadTemplates reads the templates that a workload's container has: from
// the folder that was named, or from the ConfigMaps of the manifest.
func (f *toolFlags) workloadTemplates(m *manifest.Manifest, p provider) templateTexts {
	mounted, _ := p.container.Mounted(path.Clean(f.sources.TemplatesDir))
	return func(t *targets.Target) (string, error) {
		text, known := mounted[t.Template.File]
		switch {
		case t.Template.File == "":
			return manifestTemplates(m, f.templatesFolder())(t)
		case f.pod.templates:
			return folderTemplates(f.templatesFolder())(t)
		case !known:
			return "", fmt.Errorf("the file %s is in the Pod alone; name a folder that has it by --templates-dir", t.Template.File)
		}
		return text, nil
	}
}
