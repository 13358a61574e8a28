// Package secretsprovider works out the behavior of the secrets provider in a workload's
// manifest. It loads the configuration of its container, and notes the differences once
// Syncer replaces CyberArk's provider.
package secretsprovider

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// Provider is the provider's container in one workload.
type Provider struct {
	Workload  *manifest.Workload
	Container *manifest.Container
	Pod       *corev1.PodTemplateSpec // with the container
	Config    *config.Config          // nil: invalid or unknown
	// Injected means that the manifest has only the label of the chart's admission policy,
	// which adds the container.
	Injected bool
}

// AuthnURL is the variable that selects the provider's authenticator.
const AuthnURL = "CONJUR_AUTHN_URL"

// Unknown reports whether the value of a variable is in a ConfigMap or a Secret that is
// not in the manifest.
func (p Provider) Unknown(variable string) bool {
	v, set := p.Container.Env[variable]
	return set && !v.Known || !set && p.Container.Open
}

// Annotated reports whether annotations contain a provider's annotation.
func Annotated(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, "conjur.org/") {
			return true
		}
	}
	return false
}
