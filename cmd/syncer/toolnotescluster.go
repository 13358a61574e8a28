package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
)

// fillsSecrets tells whether the workload's destination is Kubernetes Secrets,
// the only one that a variable can set.
func (n *notes) fillsSecrets() bool {
	if v, set := n.container.Env["SECRETS_DESTINATION"]; set && !v.Known && n.workload.Annotations["conjur.org/secrets-destination"] == "" {
		return true
	}
	destination, _ := n.setting("secrets-destination", "SECRETS_DESTINATION")
	return destination == string(config.DestinationKubernetes)
}

// mode is how the workload's provider runs.
func (n *notes) mode() config.Mode {
	mode, _ := n.setting("container-mode", "CONTAINER_MODE")
	if mode == "" {
		return config.ModeInit
	}
	return config.Mode(mode)
}

// stays tells whether the provider goes on after the first delivery.
func (n *notes) stays() bool { return !n.mode().OneShot() }

// listed tells whether the Secrets are listed, and not chosen by their label.
func (n *notes) listed() bool {
	list, _ := n.setting("k8s-secrets", "K8S_SECRETS")
	return strings.Trim(list, "- \t\r\n,") != ""
}

// onDestination tells what differs for Kubernetes Secrets.
func (n *notes) onDestination() {
	if !n.fillsSecrets() {
		return
	}
	_, key := n.setting("secrets-destination", "SECRETS_DESTINATION")
	n.add(key, "a Secret is compared with what it holds, and written only if something differs, also after a restart; keys, labels and annotations of others stay")
	if n.stays() {
		n.add(key, "a Secret that is altered, or made anew, is filled within a second; it stayed empty until a value changed before")
	}
	if value, key := n.setting("namespace-allowlist", "NAMESPACE_ALLOWLIST"); n.mode() == config.ModeStandalone && value != "" {
		n.add(key, "the namespaces that are listed are served, each by rights there; only the Pod's own was served before, whatever the list")
	}
}

// verbs are those that the provider needs on Secrets.
func (n *notes) verbs() []string {
	switch {
	case n.stays():
		return []string{"get", "list", "watch", "patch"}
	case n.listed():
		return []string{"get", "patch"}
	}
	return []string{"get", "list", "patch"}
}

// notesOnRights tells what the service accounts of those workloads need that
// fill Secrets, and what the Roles of the manifest lack of it.
func notesOnRights(m *manifest.Manifest, found []provider) []config.Problem {
	n := &notes{}
	verbs, byName := []string{}, true
	for _, p := range found {
		one := &notes{provider: p}
		if one.fillsSecrets() {
			byName = byName && one.listed()
			verbs = append(verbs, one.verbs()...)
		}
	}
	if len(verbs) == 0 {
		return nil
	}
	order := func(verb string) int { return slices.Index([]string{"get", "list", "watch", "patch"}, verb) }
	slices.SortFunc(verbs, func(a, b string) int { return order(a) - order(b) })
	verbs = slices.Compact(verbs)
	if len(m.Roles) == 0 {
		n.add("RBAC", "the service account needs the verbs %s on Secrets, and no longer update", strings.Join(verbs, ", "))
	}
	for _, role := range m.Roles {
		n.onRole(role, verbs, byName)
	}
	n.add("RBAC", "with create and patch on events, what happens to a Secret is told at the Secret itself")
	return n.list
}

func (n *notes) onRole(role *manifest.Role, verbs []string, byName bool) {
	lacks := slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return role.Allows(verb, byName) })
	var parts []string
	if len(lacks) > 0 {
		parts = append(parts, "it lacks "+strings.Join(lacks, ", "))
	}
	if role.Allows("update", true) && !role.Allows("*", true) {
		parts = append(parts, "update is no longer needed")
	}
	if !byName && slices.ContainsFunc(role.Rules, func(rule manifest.Rule) bool { return len(rule.Names) > 0 }) {
		parts = append(parts, "resourceNames do not go with Secrets that are chosen by their label")
	}
	if len(parts) > 0 {
		n.add(role.String(), "the service account needs the verbs %s on Secrets: %s", strings.Join(verbs, ", "), strings.Join(parts, "; "))
	}
}

// notesOnSecret tells which annotations of a Secret count from now on.
func notesOnSecret(s *manifest.Secret) (list []config.Problem) {
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		for _, prefix := range []string{"conjur.org/conjur-secrets-policy-path.", "conjur.org/secret-file-format."} {
			if strings.HasPrefix(key, prefix) {
				list = append(list, config.Problem{Key: fmt.Sprintf("%v: %s", s, key), Message: "counts for the data key of its group; it was ignored on a Secret before"})
			}
		}
	}
	return list
}
