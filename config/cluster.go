package config

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Kubernetes is what concerns the cluster. All but what the Pod is called and
// Kubeconfig is for the destination DestinationKubernetes only.
type Kubernetes struct {
	_ []listedSecret `name:"kubernetes.secrets" annotation:"k8s-secrets" env:"K8S_SECRETS" kind:"secrets" scope:"sources" is:"short"`
	// Namespaces are those that are served: the allow-list of ModeStandalone,
	// names or AllNamespaces alone, and else the Pod's own.
	Namespaces []string `name:"kubernetes.namespaces" annotation:"namespace-allowlist" env:"NAMESPACE_ALLOWLIST" scope:"sources"`
	// Namespace is the Pod's own, which may be empty with DestinationFile, as may
	// its name and that of its node.
	Namespace string `name:"kubernetes.namespace" env:"MY_POD_NAMESPACE" kind:"namespace" scope:"process"`
	PodName   string `name:"kubernetes.podName" env:"MY_POD_NAME" scope:"process" is:"envOnly"`
	NodeName  string `name:"kubernetes.nodeName" env:"MY_NODE_NAME" scope:"process" is:"envOnly"`
	// Kubeconfig is the file that says how the API server is reached; empty:
	// as client-go finds it, by $KUBECONFIG or inside the cluster.
	Kubeconfig string `name:"kubernetes.kubeconfig" scope:"process" follows:"\"$KUBECONFIG\", else the service account of the Pod"`
	// Definitions are the Secrets that are listed, whatever the source, in
	// ascending order of namespace and name, with what the configuration says
	// of them in Configured; what the Secret itself says is to be added. None:
	// see ByLabel.
	Definitions    []definitions.SecretDefinition
	LeaderElection LeaderElection `section:"standalone"`
	Restarts       Restarts       `section:"standalone"`
	// NamespaceMemory is how many MiB of memory the Secrets of one namespace may need
	// in ModeStandalone.
	NamespaceMemory int `name:"namespaceMemory" section:"standalone" scope:"process" min:"1" default:"12"`
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
	Enabled   bool   `name:"leaderElection.enabled" scope:"process" default:"true"`
	Lease     string `name:"leaderElection.leaseName" kind:"objectName" scope:"process" default:"syncer"`
	Namespace string `name:"leaderElection.namespace" kind:"namespace" scope:"process" follows:"the Pod's namespace"` // of the Lease
	// Duration is that of the Lease, after which another replica takes over.
	Duration time.Duration `name:"leaderElection.leaseDuration" scope:"process" least:"3s" default:"15s"`
}

// Restarts is how restarts of workloads are merged and limited.
type Restarts struct {
	// QuietPeriod is the time without a further change before a restart.
	QuietPeriod time.Duration `name:"restarts.quietPeriod" scope:"live" least:"1s" default:"10s"`
	// PerHour is restarts in one namespace; at least 1.
	PerHour int `name:"restarts.perHour" scope:"live" min:"1" default:"60"`
}

// Identity is one that Conjur is asked as, and what it serves.
type Identity struct {
	// Name is empty for the default one, which serves what no other does.
	Name       string   `name:"name" kind:"label" scope:"lane" is:"required"`
	Namespaces []string `name:"namespaces" scope:"live"` // whole ones
	// Secrets are single Secrets, each as "namespace/name"; they win over namespaces.
	Secrets []string `name:"secrets" scope:"live"`
	Conjur  Conjur   `only:"identity"`
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
