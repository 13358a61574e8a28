package config

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/definitions"
)

// Kubernetes is what concerns the cluster. All but Namespace and Kubeconfig is
// for the destination DestinationKubernetes only.
type Kubernetes struct {
	Namespace string // the Pod's own; may be empty with DestinationFile
	// Kubeconfig is the file that says how the API server is reached; empty:
	// as client-go finds it, by $KUBECONFIG or inside the cluster.
	Kubeconfig string
	// Namespaces are those that are served: the allow-list of ModeStandalone,
	// names or AllNamespaces alone, and else the Pod's own.
	Namespaces []string
	// Definitions are the Secrets that are listed, whatever the source, in
	// ascending order of namespace and name, with what the configuration says
	// of them in Configured; what the Secret itself says is to be added. None:
	// see ByLabel.
	Definitions    []definitions.SecretDefinition
	LeaderElection LeaderElection
	Restarts       Restarts
	// NamespaceMemory is how many MiB of memory the Secrets of one namespace may need
	// in ModeStandalone.
	NamespaceMemory int
}

// AllNamespaces stands for every namespace in Kubernetes.Namespaces.
const AllNamespaces = "*"

// ByLabel reports whether no Secret is listed, so that those with the label
// conjur.org/managed-by-provider are the ones to fill.
func (k Kubernetes) ByLabel() bool { return len(k.Definitions) == 0 }

// Watched returns the namespaces in which Secrets are kept in sync, "" for all,
// each with the Secrets that are listed there; none: those with the label.
func (k Kubernetes) Watched() map[string][]string {
	namespaces := map[string][]string{}
	for _, def := range k.Definitions {
		namespaces[def.Namespace] = append(namespaces[def.Namespace], def.Name)
	}
	if !k.ByLabel() {
		return namespaces
	}
	for _, namespace := range k.Namespaces {
		if namespace == AllNamespaces {
			namespace = ""
		}
		namespaces[namespace] = nil
	}
	return namespaces
}

// LeaderElection is how several replicas agree on the one that works.
type LeaderElection struct {
	Enabled          bool
	Namespace, Lease string        // where the Lease is, and its name
	Duration         time.Duration // of the Lease, after which another replica takes over
}

// Restarts is how restarts of workloads are merged and limited.
type Restarts struct {
	QuietPeriod time.Duration // without a further change before a restart
	PerHour     int           // restarts in one namespace; at least 1
}

// Identity is one that Conjur is asked as, and what it serves.
type Identity struct {
	Name       string   // empty: the default one, which serves what no other does
	Namespaces []string // whole namespaces
	Secrets    []string // single Secrets, each as "namespace/name"; they win over namespaces
	Conjur     Conjur
}

// IdentityOf finds the identity that serves a Secret: the one that names it,
// else the one that names its namespace, else the default; false when there is
// none.
func (c *Config) IdentityOf(namespace, name string) (*Identity, bool) {
	secret := namespace + "/" + name
	for _, serves := range []func(Identity) bool{
		func(id Identity) bool { return slices.Contains(id.Secrets, secret) },
		func(id Identity) bool { return slices.Contains(id.Namespaces, namespace) },
		func(id Identity) bool { return id.Name == "" },
	} {
		if i := slices.IndexFunc(c.Identities, serves); i >= 0 {
			return &c.Identities[i], true
		}
	}
	return nil, false
}
