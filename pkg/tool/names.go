package tool

import (
	"io"
	"strings"
)

// Names returns the names of the groups and of the Secrets in the configuration, or in
// the manifest, for the completion of a command line. It writes nothing.
func (t Tool) Names() (groups, secrets []string) {
	t.In, t.Out, t.Err = strings.NewReader(""), io.Discard, io.Discard
	if cfg, _, err := t.loadGroups(); err == nil && cfg != nil {
		for _, target := range cfg.Targets {
			groups = append(groups, target.Group)
		}
		for _, def := range cfg.Kubernetes.Definitions {
			secrets = append(secrets, def.Namespace+"/"+def.Name)
		}
	}
	if len(t.Manifests) == 0 {
		return groups, secrets
	}
	if found, _, err := t.secrets(); err == nil {
		for _, s := range found {
			if s.target != nil {
				secrets = append(secrets, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))
			}
		}
	}
	return groups, secrets
}
