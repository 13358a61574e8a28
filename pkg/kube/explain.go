package kube

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	var advice string
	var dns *net.DNSError
	var timeout net.Error
	var authority x509.UnknownAuthorityError
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		advice = need.advice()
	case apierrors.IsUnauthorized(err):
		advice = "the API server does not accept the credentials; check the token of the service account or of the kubeconfig"
	case errors.As(err, &authority):
		advice = "the API server's certificate is not trusted; check the CA certificate of the service account or of the kubeconfig"
	case errors.As(err, &dns):
		advice = "check the address of the API server and the Pod's DNS"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.As(err, &timeout) && timeout.Timeout():
		advice = "the API server does not answer; check the address and the NetworkPolicy"
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w; %s", what, err, advice)
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
