package kube

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/internal/advice"
)

// right is a right that a request needs.
type right struct {
	namespace string // "" for the whole cluster
	resource  string // such as deployments.apps
	verbs     string // such as "list", or "get and patch"
}

// explain returns the error of a failed request with the likely cause and the next step;
// nil if err is nil. The cause follows from the type of the error and never from its text.
func explain(what string, err error, need right) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		err = advice.Add(err, need.advice())
	case apierrors.IsUnauthorized(err):
		err = advice.Add(err, "check the token of the service account or of the kubeconfig")
	default:
		err = advice.Connection(err, "check the CA certificate of the service account or of the kubeconfig")
	}
	return fmt.Errorf("%s: %w", what, err)
}

// advice says who must grant the right. A 403 to a write may also come from an admission
// policy, in the same form.
func (r right) advice() string {
	role, binding := "a Role of namespace "+r.namespace, "a RoleBinding"
	if r.namespace == "" {
		role, binding = "a ClusterRole", "a ClusterRoleBinding"
	}
	noun := "verb"
	if strings.Contains(r.verbs, " ") {
		noun = "verbs"
	}
	text := fmt.Sprintf("%s must grant the %s %s for %s, with %s to Syncer's service account", role, noun, r.verbs, r.resource, binding)
	if strings.Contains(r.verbs, "patch") || strings.Contains(r.verbs, "create") {
		text += ", and no admission policy may deny the write"
	}
	return text
}
