package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/tool/manifest"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// kept warns of containers that keep the data of a Secret from their start, although a
// provider renews the Secret and nothing restarts them.
func kept(m *manifest.Manifest, providers []secretsprovider.Provider, secrets []readSecret) (warnings []config.Problem) {
	renewed := renewedSecrets(providers, secrets)
	for _, w := range m.Workloads {
		if _, err := definitions.ParseWorkloads(strings.ToLower(w.String())); err != nil {
			continue // of a kind that runs again
		}
		for _, c := range w.Containers {
			for _, name := range slices.Sorted(maps.Keys(c.Kept)) {
				restarted, is := renewed[name]
				if !is || slices.Contains(restarted, strings.ToLower(w.String())) {
					continue
				}
				warnings = append(warnings, config.Problem{
					Key: w.String() + ": container " + c.Name,
					Message: fmt.Sprintf("%s is from the Secret %q, and keeps the old value when that changes; mount the Secret as a volume without subPath, or have standalone restart the workload, by conjur.org/restart-workloads: %s on the Secret",
						c.Kept[name], name, strings.ToLower(w.String())),
				})
			}
		}
	}
	return warnings
}

// renewedSecrets returns the Secrets that a provider keeps fresh, each with the workloads
// to restart. The provider is in the manifest, or elsewhere and finds them by their
// label.
func renewedSecrets(providers []secretsprovider.Provider, secrets []readSecret) map[string][]string {
	renewed := map[string][]string{}
	refreshes := len(providers) == 0
	for _, p := range providers {
		if p.Config == nil || !p.Config.Refresh.Enabled || p.Config.Mode.OneShot() {
			continue
		}
		refreshes = true
		for _, def := range p.Config.Kubernetes.Definitions {
			renewed[def.Name] = nil
			if t := def.Configured; t != nil {
				renewed[def.Name] = t.Secret.Restart
			}
		}
	}
	for _, s := range secrets {
		if _, listed := renewed[s.Name]; s.target != nil && (listed || refreshes && s.Labelled) {
			renewed[s.Name] = append(renewed[s.Name], s.target.Secret.Restart...)
		}
	}
	return renewed
}
