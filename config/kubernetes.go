package config

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// kubernetes checks and completes the settings of the cluster. Most of them apply only if
// the destination is Kubernetes Secrets.
func (l *loader) kubernetes(cfg *Config) {
	k := &cfg.Kubernetes
	k.Kubeconfig = cmp.Or(l.src.Kubeconfig, k.Kubeconfig)
	if cfg.Destination != DestinationKubernetes {
		l.ignoreCluster()
		*k = Kubernetes{Namespace: k.Namespace, PodName: k.PodName, NodeName: k.NodeName, Kubeconfig: k.Kubeconfig}
		return
	}
	if !l.process["kubernetes.namespace"].set && !l.src.Assume.Namespace {
		l.fail(l.key("kubernetes.namespace"), "not set, but the destination k8s_secrets needs it; set it from the field metadata.namespace")
	}
	if k.NamespaceSelector = l.namespaceSelector(cfg.Mode, k.LeaderElection); k.NamespaceSelector == "" {
		k.Namespaces = l.namespaces(cfg.Mode, k.Namespace)
	}
	k.Definitions = l.secretDefinitions(cfg, *k)
	if cfg.Mode != ModeStandalone {
		k.LeaderElection = LeaderElection{}
	} else if !l.process["leaderElection.namespace"].set {
		k.LeaderElection.Namespace = k.Namespace
	}
}

// ignoreCluster warns of settings in the file that do not apply to the destination. It
// accepts such annotations and variables, because several Pods often share them.
func (l *loader) ignoreCluster() {
	if val := l.process["kubernetes.secrets"]; val.node != nil {
		l.warn(val.key, "Kubernetes Secrets are filled with the destination k8s_secrets only; ignored")
	}
	if len(l.process["identities"].items) > 0 {
		l.warn(l.process["identities"].key, "identities are used with the destination k8s_secrets only; ignored")
	}
}

// namespaces returns the served namespaces.
func (l *loader) namespaces(mode Mode, own string) []string {
	val := l.process["kubernetes.namespaces"]
	if mode != ModeStandalone {
		if val.set {
			l.warn(val.key, "used in the mode standalone only; ignored")
		}
		if own == "" {
			return nil
		}
		return []string{own}
	}
	if !val.set {
		l.fail(l.key("kubernetes.namespaces"), "not set, but the mode standalone needs it; list namespaces, or use * for all")
	}
	names := l.names("kubernetes.namespaces", commaList)
	if slices.Contains(names, AllNamespaces) {
		if len(names) > 1 {
			l.fail(val.key, "the list has * and names; use one of the two")
		}
		return []string{AllNamespaces}
	}
	return l.checked(val.key, names, checkLabel)
}

// namespaceSelector returns the selector that replaces the list of namespaces; "" if there
// is none. The other settings must permit that namespaces come and go.
func (l *loader) namespaceSelector(mode Mode, election LeaderElection) string {
	val := l.process["kubernetes.namespaceSelector"]
	switch {
	case !val.set || val.bad:
		return ""
	case mode != ModeStandalone:
		l.warn(val.key, "used in the mode standalone only; ignored")
		return ""
	}
	if _, err := labels.Parse(val.text); err != nil {
		l.fail(val.key, "%q is not a label selector: %v; write labels as for kubectl, such as team=shop", val.text, err)
	}
	for _, other := range [][2]string{
		{"kubernetes.namespaces", "remove one of the two"},
		{"kubernetes.secrets", "a list of Secrets names their namespaces; remove one of the two"},
		{"rotation.sets", "another Deployment may serve some consumers of a set; rotate sets in a process without a selector"},
	} {
		if l.process[other[0]].set {
			l.fail(val.key, "set together with %s: %s", l.process[other[0]].key, other[1])
		}
	}
	if !election.Enabled {
		l.fail(val.key, "needs leader election: the Lease shows other Deployments which namespaces this one serves; set %s to true", l.key("leaderElection.enabled"))
	}
	return val.text
}

// checkServes returns an error if a namespace is not served. It returns nil if the served
// namespaces are unknown.
func (k Kubernetes) checkServes(namespace string) error {
	if len(k.Namespaces) == 0 || slices.Contains(k.Namespaces, AllNamespaces) || slices.Contains(k.Namespaces, namespace) {
		return nil
	}
	return fmt.Errorf("the namespace %q is not served; add it to the list of namespaces", namespace)
}

// secretDefinitions returns the listed Secrets, by name or from the file.
func (l *loader) secretDefinitions(cfg *Config, k Kubernetes) (defs []definitions.SecretDefinition) {
	val := l.process["kubernetes.secrets"]
	switch {
	case !val.set || val.bad:
		return nil
	case val.node != nil:
		defs = l.fileDefinitions(val, cfg, k)
	case cfg.Mode == ModeStandalone:
		l.fail(val.key, "the mode standalone selects Secrets by label, or by the configuration file; remove this list")
	default:
		parse := yamlList
		if val.env {
			parse = commaList
		}
		for _, name := range l.checked(val.key, l.names("kubernetes.secrets", parse), definitions.CheckObjectName) {
			account := l.accountOf(k.Namespace, name, cfg.Conjur.Account)
			defs = append(defs, definitions.SecretDefinition{Namespace: k.Namespace, Name: name, Account: account, Named: true})
		}
	}
	slices.SortFunc(defs, func(a, b definitions.SecretDefinition) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return defs
}
