package kube

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Each failure names the right, or the likely cause, and what to do.
func TestAFailedRequestSaysWhatToDo(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
	reading := right{"shop", "pods", "list"}
	for _, c := range []struct {
		err  error
		need right
		says string
	}{
		{forbidden, reading, "a Role of namespace shop must grant the verb list for pods, with a RoleBinding to Syncer's service account"},
		{forbidden, right{"", "namespaces", "list"}, "a ClusterRole must grant the verb list for namespaces, with a ClusterRoleBinding to Syncer's service account"},
		{forbidden, right{"shop", "deployments.apps", "patch"}, "must grant the verb patch for deployments.apps, with a RoleBinding to Syncer's service account, and no admission policy may deny the write"},
		{apierrors.NewUnauthorized("expired"), reading, "check the token of the service account or of the kubeconfig"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, reading, "check the port and whether the server runs"},
		{x509.UnknownAuthorityError{}, reading, "check the CA certificate of the service account or of the kubeconfig"},
	} {
		got := explain("listing", c.err, c.need)
		if !errors.Is(got, c.err) || !strings.HasPrefix(got.Error(), "listing: ") || !strings.HasSuffix(got.Error(), c.says) {
			t.Errorf("%v: it should end with %q", got, c.says)
		}
	}
	if got := explain("listing", io.EOF, reading); got.Error() != "listing: EOF" {
		t.Errorf("an error without a known cause: %v", got)
	}
	if explain("listing", nil, reading) != nil {
		t.Error("an error of nothing")
	}
}
