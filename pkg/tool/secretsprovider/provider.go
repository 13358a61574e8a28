// Package secretsprovider is what the secrets provider in a workload's manifest would
// do: the configuration that its container would have, and what differs once
// Syncer runs there in the place of CyberArk's.
package secretsprovider

import (
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// Provider is the provider's container in one workload.
type Provider struct {
	Workload  *manifest.Workload
	Container *manifest.Container
	Config    *config.Config // nil: not valid, or not known
}

// AuthnURL is the variable that says how the provider logs in.
const AuthnURL = "CONJUR_AUTHN_URL"

// Unknown reports whether the value of a variable stands in a ConfigMap or a
// Secret that is not in the manifest.
func (p Provider) Unknown(variable string) bool {
	v, set := p.Container.Env[variable]
	return set && !v.Known || !set && p.Container.Open
}

// Annotated reports whether annotations have any for a provider.
func Annotated(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, "conjur.org/") {
			return true
		}
	}
	return false
}
