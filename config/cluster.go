package config

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Kubernetes contains the settings of the cluster. Only the Pod's name and namespace, its
// node and Kubeconfig also apply without DestinationKubernetes.
type Kubernetes struct {
	_ []listedSecret `name:"kubernetes.secrets" annotation:"k8s-secrets" env:"K8S_SECRETS" kind:"secrets" scope:"sources" is:"short"`
	// Namespaces are the served namespaces. In ModeStandalone this is the allow-list:
	// names, or AllNamespaces alone. In other modes it is the Pod's namespace.
	Namespaces []string `name:"kubernetes.namespaces" annotation:"namespace-allowlist" env:"NAMESPACE_ALLOWLIST" scope:"sources"`
	// NamespaceSelector is a label selector of the served namespaces in ModeStandalone;
	// Namespaces is then empty. If empty, Namespaces lists them.
	NamespaceSelector string `name:"kubernetes.namespaceSelector" scope:"process"`
	// Namespace is the Pod's namespace. With DestinationFile it may be empty, and so may
	// the names of the Pod and its node.
	Namespace string `name:"kubernetes.namespace" env:"MY_POD_NAMESPACE" kind:"namespace" scope:"process"`
	PodName   string `name:"kubernetes.podName" env:"MY_POD_NAME" scope:"process" is:"envOnly"`
	NodeName  string `name:"kubernetes.nodeName" env:"MY_NODE_NAME" scope:"process" is:"envOnly"`
	// Kubeconfig is the file that describes how to reach the API server. If empty,
	// client-go finds it, by $KUBECONFIG or inside the cluster.
	Kubeconfig string `name:"kubernetes.kubeconfig" scope:"process" follows:"\"$KUBECONFIG\", else the service account of the Pod"`
	// Definitions are the listed Secrets, in ascending order of namespace and name. Each
	// has the part of its definition that the configuration contains, as Configured. The
	// part in the Secret's annotations is read later. If Definitions is empty, see ByLabel.
	Definitions    []definitions.SecretDefinition
	LeaderElection LeaderElection `section:"standalone"`
	Restarts       Restarts       `section:"standalone"`
	// NamespaceMemory is how many MiB of memory the Secrets of one namespace may use in
	// ModeStandalone.
	NamespaceMemory int `name:"namespaceMemory" section:"standalone" scope:"process" min:"1" default:"12"`
}

// AllNamespaces stands for every namespace in Kubernetes.Namespaces.
const AllNamespaces = "*"

// ByLabel reports whether no Secret is listed. Syncer then fills the Secrets with the
// label conjur.org/managed-by-provider.
func (k Kubernetes) ByLabel() bool { return len(k.Definitions) == 0 }

// Watched returns the namespaces in which Syncer keeps Secrets in sync, or "" for all.
// Each has its listed Secrets; an empty list means the Secrets with the label.
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

// LeaderElection describes how replicas elect the one that works.
type LeaderElection struct {
	Enabled   bool   `name:"leaderElection.enabled" scope:"process" default:"true"`
	Lease     string `name:"leaderElection.leaseName" kind:"objectName" scope:"process" default:"syncer"`
	Namespace string `name:"leaderElection.namespace" kind:"namespace" scope:"process" follows:"the Pod's namespace"` // of the Lease
	// Duration is the duration of the Lease. After it, another replica takes over.
	Duration time.Duration `name:"leaderElection.leaseDuration" scope:"process" least:"3s" default:"15s"`
}

// Restarts describes how restarts of workloads are merged and limited.
type Restarts struct {
	// QuietPeriod is the time without another change before a restart.
	QuietPeriod time.Duration `name:"restarts.quietPeriod" scope:"live" least:"1s" default:"10s"`
	// PerHour limits the restarts in one namespace; at least 1.
	PerHour int `name:"restarts.perHour" scope:"live" min:"1" default:"60"`
}

// Identity is a Conjur identity, and the Secrets that it serves.
type Identity struct {
	// Name is empty for the default identity, which serves all that no other identity
	// serves.
	Name       string   `name:"name" kind:"label" scope:"lane" is:"required"`
	Namespaces []string `name:"namespaces" scope:"live"` // entire namespaces
	// Secrets are single Secrets, each as "namespace/name". They take precedence over
	// namespaces.
	Secrets []string `name:"secrets" scope:"live"`
	Conjur  Conjur   `only:"identity"`
}

// IdentityOf finds the identity that serves a Secret. An identity that names the Secret
// precedes one that names its namespace, and the default identity is last. It returns
// false if there is none.
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
