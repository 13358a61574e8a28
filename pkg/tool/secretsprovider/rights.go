package secretsprovider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// fillsSecrets reports whether the workload's destination is Kubernetes Secrets. A
// variable can set only this destination.
func (n *notes) fillsSecrets() bool {
	if v, set := n.Container.Env["SECRETS_DESTINATION"]; set && !v.Known && n.Workload.Annotations["conjur.org/secrets-destination"] == "" {
		return true
	}
	destination, _ := n.setting("secrets-destination", "SECRETS_DESTINATION")
	return destination == string(config.DestinationKubernetes)
}

// mode returns the mode of the workload's provider.
func (n *notes) mode() config.Mode {
	mode, _ := n.setting("container-mode", "CONTAINER_MODE")
	if mode == "" {
		return config.ModeInit
	}
	return config.Mode(mode)
}

// stays reports whether the provider continues after the first delivery.
func (n *notes) stays() bool { return !n.mode().OneShot() }

// listed reports whether the Secrets are listed, instead of selected by their label.
func (n *notes) listed() bool {
	list, _ := n.setting("k8s-secrets", "K8S_SECRETS")
	return strings.Trim(list, "- \t\r\n,") != ""
}

// onDestination notes the differences for Kubernetes Secrets.
func (n *notes) onDestination() {
	if !n.fillsSecrets() {
		return
	}
	_, key := n.setting("secrets-destination", "SECRETS_DESTINATION")
	n.add(key, "a Secret is compared with the values, and written only if something differs, also after a restart; keys, labels and annotations of others stay")
	if n.stays() {
		n.add(key, "a Secret that is altered, or made anew, is filled again, within seconds; it stayed empty until a value changed before")
	}
	if value, key := n.setting("namespace-allowlist", "NAMESPACE_ALLOWLIST"); n.mode() == config.ModeStandalone && value != "" {
		n.add(key, "the namespaces that are listed are served, each by rights there; only the Pod's own was served before, whatever the list")
	}
}

// NotesOnRights compares the permissions that service accounts need to fill Secrets with
// the Roles of the manifest. The operator must add those in must manually. better
// contains recommendations.
func NotesOnRights(m *manifest.Manifest, found []Provider) (must, better []config.Problem) {
	fills, byName, stays := false, true, false
	for _, p := range found {
		if one := (&notes{Provider: p}); one.fillsSecrets() {
			fills, byName, stays = true, byName && one.listed(), stays || one.stays()
		}
	}
	if !fills {
		return nil, nil
	}
	needs := []string{"get"}
	if !byName {
		needs = append(needs, "list")
	}
	r := rights{byName: byName, stays: stays, needs: needs}
	if len(m.Roles) == 0 {
		r.better.add("RBAC", "the service account needs the verbs %s on Secrets, and patch or update", strings.Join(needs, ", "))
	}
	for _, role := range m.Roles {
		r.onRole(role)
	}
	r.better.add("RBAC", "with create and patch on events, what happens to a Secret is shown at the Secret itself")
	return r.must.list, r.better.list
}

// rights collects the results of NotesOnRights.
type rights struct {
	needs         []string
	byName, stays bool
	must, better  notes
}

func (r *rights) onRole(role *manifest.Role) {
	lacks := slices.DeleteFunc(slices.Clone(r.needs), func(verb string) bool { return role.Allows(verb, r.byName) })
	patches, updates := role.Allows("patch", r.byName), role.Allows("update", r.byName)
	if !patches && !updates {
		lacks = append(lacks, "patch")
	}
	if len(lacks) > 0 {
		r.must.add(role.String(), "to be done by hand: the service account lacks %s on Secrets", strings.Join(lacks, ", "))
	}
	if !r.byName && slices.ContainsFunc(role.Rules, func(rule manifest.Rule) bool { return len(rule.ResourceNames) > 0 }) {
		r.must.add(role.String(), "to be done by hand: resourceNames do not go with Secrets that are chosen by their label; remove them")
	}
	switch {
	case !patches && updates:
		r.better.add(role.String(), "update suffices; with patch besides, a Secret is written without reading what others have in it")
	case updates && !role.Allows("*", r.byName):
		r.better.add(role.String(), "update is no longer needed beside patch")
	}
	if r.stays && !role.Allows("watch", r.byName) {
		r.better.add(role.String(), "with watch besides, a Secret that is altered or made anew is filled within a second")
	}
}

// NotesOnSecret returns the annotations of a Secret that apply from now on.
func NotesOnSecret(s *manifest.Secret) (list []config.Problem) {
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		for _, prefix := range []string{"conjur.org/conjur-secrets-policy-path.", "conjur.org/secret-file-format."} {
			if strings.HasPrefix(key, prefix) {
				list = append(list, config.Problem{Key: fmt.Sprintf("%s: %s", s.Place(), key), Message: "counts for the data key of its group; it was ignored on a Secret before"})
			}
		}
	}
	return list
}
