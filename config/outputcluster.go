package config

import "github.com/secretsync/syncer/pkg/targets"

type effectiveKubernetes struct {
	Namespace  string   `json:"namespace,omitempty"`
	Kubeconfig string   `json:"kubeconfig,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// ByLabel: no Secret is listed.
	ByLabel bool              `json:"byLabel,omitempty"`
	Secrets []effectiveSecret `json:"secrets,omitempty"`
}

// effectiveSecret is a Secret that is listed, with what the configuration says
// of it.
type effectiveSecret struct {
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	Create    bool             `json:"create,omitempty"`
	Type      string           `json:"type,omitempty"`
	Entries   []targets.Entry  `json:"entries,omitempty"`
	Groups    []effectiveGroup `json:"groups,omitempty"`
	Restart   []string         `json:"restart,omitempty"`
}

type effectiveGroup struct {
	Group             string          `json:"group"`
	Format            targets.Format  `json:"format"`
	Template          string          `json:"template,omitempty"` // "inline"
	TemplateConfigMap string          `json:"templateConfigMap,omitempty"`
	Entries           []targets.Entry `json:"entries"`
}

type effectiveIdentity struct {
	Name       string          `json:"name"`
	Namespaces []string        `json:"namespaces,omitempty"`
	Secrets    []string        `json:"secrets,omitempty"`
	Conjur     effectiveConjur `json:"conjur"`
}

type effectiveElection struct {
	Enabled       bool   `json:"enabled"`
	LeaseName     string `json:"leaseName"`
	Namespace     string `json:"namespace,omitempty"`
	LeaseDuration string `json:"leaseDuration"`
}

type effectiveRestarts struct {
	QuietPeriod string `json:"quietPeriod"`
	PerHour     int    `json:"perHour"`
}

func newEffectiveKubernetes(k Kubernetes, to Destination) effectiveKubernetes {
	e := effectiveKubernetes{
		Namespace: k.Namespace, Kubeconfig: k.Kubeconfig, Namespaces: k.Namespaces,
		ByLabel: to == DestinationKubernetes && k.ByLabel(),
	}
	for _, def := range k.Definitions {
		e.Secrets = append(e.Secrets, newEffectiveSecret(def))
	}
	return e
}

func newEffectiveSecret(def targets.SecretDefinition) effectiveSecret {
	e := effectiveSecret{Namespace: def.Namespace, Name: def.Name}
	if def.Configured == nil {
		return e
	}
	s := def.Configured.Secret
	e.Create, e.Type, e.Restart, e.Entries = s.Create, s.Type, s.Restart, def.Configured.Entries
	for _, t := range s.Groups {
		g := effectiveGroup{Group: t.Group, Format: t.Format, Entries: t.Entries}
		g.Template, g.TemplateConfigMap = effectiveTemplate(Folders{}, t)
		e.Groups = append(e.Groups, g)
	}
	return e
}

// addStandalone adds what only a process for many applications has.
func (e *Effective) addStandalone(cfg *Config) {
	for _, id := range cfg.Identities {
		if id.Name != "" {
			e.Identities = append(e.Identities, effectiveIdentity{id.Name, id.Namespaces, id.Secrets, newEffectiveConjur(id.Conjur)})
		}
	}
	if cfg.Mode != ModeStandalone {
		return
	}
	election, restarts := cfg.Kubernetes.LeaderElection, cfg.Kubernetes.Restarts
	e.LeaderElection = &effectiveElection{election.Enabled, election.Lease, election.Namespace, election.Duration.String()}
	e.Restarts = &effectiveRestarts{restarts.QuietPeriod.String(), restarts.PerHour}
}
