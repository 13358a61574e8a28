package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/secretsync/syncer/test/proctest"
)

// Namespace makes a namespace with a new name, which begins with the test's.
// It is not deleted: nothing here would finish that, and all goes with the
// control plane.
func (cp *ControlPlane) Namespace(t testing.TB) string {
	t.Helper()
	// Go's test cache sees what a test reads, and not what TestMain read before. Without this,
	// it would answer for another version of Kubernetes.
	if _, err := os.Stat(os.Getenv(variable)); err != nil {
		t.Fatal(err)
	}
	ns, err := cp.core.Namespaces().Create(lasting(t), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: label(t.Name()) + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// label makes a DNS label of a test's name, short enough for what the API
// server appends to it.
func label(name string) string {
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// Token is a new token of the service account sa in namespace ns, good for an
// hour. It is made if it is not there. Without audiences the token is one for
// this API server.
func (cp *ControlPlane) Token(t testing.TB, ns, sa string, audiences ...string) string {
	t.Helper()
	accounts := cp.core.ServiceAccounts(ns)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: sa}}
	if _, err := accounts.Create(lasting(t), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	seconds := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}
	answer, err := accounts.CreateToken(lasting(t), sa, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// ConfigFor is a configuration for client-go with a bearer token, without a
// limit on the rate of requests.
func (cp *ControlPlane) ConfigFor(token string) *rest.Config {
	return &rest.Config{
		Host:            cp.URL(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca},
		QPS:             -1,
	}
}

// KubeconfigFor is the path of a kubeconfig with a bearer token; it goes with
// the test.
func (cp *ControlPlane) KubeconfigFor(t testing.TB, token string) string {
	t.Helper()
	const name = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cp.URL(), CertificateAuthorityData: cp.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// AllowAnonymousDiscovery lets everybody read the issuer's OpenID
// configuration and JWKSURL, as a cluster does whose tokens are checked from
// outside. It holds until the control plane's end.
func (cp *ControlPlane) AllowAnonymousDiscovery(t testing.TB) {
	t.Helper()
	const role = "system:service-account-issuer-discovery"
	_, err := cp.rbac.ClusterRoleBindings().Create(lasting(t), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "anonymous-discovery"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	proctest.EventuallyNoError(t, "anonymous access to "+cp.JWKSURL(), func() error {
		req, err := http.NewRequestWithContext(lasting(t), http.MethodGet, cp.JWKSURL(), nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	})
}

// lasting is the test's context for helpers, which are called from cleanups
// too, when the test's own has ended. The clients bound each call.
func lasting(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }
