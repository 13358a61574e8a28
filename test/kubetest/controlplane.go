// Package kubetest gives tests a Kubernetes control plane of their own: the
// genuine etcd and kube-apiserver, with authentication, RBAC, admission,
// validation and watches as users have them. Nothing runs beside them, so
// there are no controllers and no nodes: a Deployment stays an object, a
// deleted namespace stays in Terminating, and service accounts are there only
// when Token makes them.
//
// A test binary starts one control plane from TestMain, and each test takes a
// namespace of its own:
//
//	var cluster *kubetest.ControlPlane
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m, &cluster).Run()) }
//
//	func TestX(t *testing.T) {
//		ns := cluster.Namespace(t)
//		cluster.Bind(t, ns, "app", rbacv1.PolicyRule{…})
//		config := cluster.ConfigFor(cluster.Token(t, ns, "app"))
//		…
//	}
//
// The program that runs it is named by the environment variable SYNCER_KUBE.
// "make kube" builds it and "make test" sets the variable.
package kubetest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// variable is the environment variable with the path of the control plane's
// program.
const variable = "SYNCER_KUBE"

// sharedVariable is the environment variable with the path of the
// administrator's kubeconfig of a control plane that several test binaries use
// at once.
const sharedVariable = "SYNCER_KUBECONFIG"

// patience is for what takes seconds when two cores are free, and longer
// while other test binaries use them.
const patience = 2 * time.Minute

// ControlPlane is a running one. Its methods may be called from several
// goroutines at once; those that take the API server away do so for all of
// them.
type ControlPlane struct {
	// Clients of the user of Config.
	Core corev1client.CoreV1Interface
	Apps appsv1client.AppsV1Interface

	process    *process // nil: it is shared, and somebody else ends it
	kubeconfig string
	config     *rest.Config
	ca         []byte
	audit      *auditLog
	pools      []http.RoundTripper // of connections: client-go forgets one that no client uses

	core          *corev1client.CoreV1Client
	rbac          *rbacv1client.RbacV1Client
	authorization *authorizationv1client.AuthorizationV1Client
}

// Start starts a control plane and returns when it is ready. It is an error,
// never a reason to skip, when SYNCER_KUBE is unset. The caller calls Stop;
// should its process be killed, the control plane ends by itself and takes its
// files along. The flags are more of "kube up", such as those for a node.
func Start(flags ...string) (*ControlPlane, error) {
	program := os.Getenv(variable)
	if program == "" {
		return nil, fmt.Errorf("%s is not set: this test needs a Kubernetes control plane; run \"make test\", or \"export %[1]s=$(make -s kube)\" before go test", variable)
	}
	p, kubeconfig, err := startProcess(program, flags...)
	if err != nil {
		return nil, fmt.Errorf("start of the control plane %s, from %s=%s: %w (\"make kube\" builds it)", program, variable, program, err)
	}
	cp, err := connect(p, kubeconfig)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return cp, nil
}

// Shared connects to the control plane whose kubeconfig is named by
// SYNCER_KUBECONFIG, and starts one where that is unset.
func Shared() (*ControlPlane, error) {
	if kubeconfig := os.Getenv(sharedVariable); kubeconfig != "" {
		return connect(nil, kubeconfig)
	}
	return Start()
}

func connect(p *process, kubeconfig string) (*ControlPlane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // a test asks as often as it likes
	config.UserAgent = "kubetest"
	own := rest.CopyConfig(config)
	own.Timeout = patience // of each call; where it is taken, no test waits for ever
	cp := &ControlPlane{
		process:    p,
		kubeconfig: kubeconfig,
		config:     config,
		ca:         config.CAData,
		audit:      &auditLog{path: filepath.Join(filepath.Dir(kubeconfig), "audit.log")},
	}
	for _, c := range []*rest.Config{config, cp.ConfigFor("")} {
		pool, err := rest.TransportFor(c)
		if err != nil {
			return nil, err
		}
		cp.pools = append(cp.pools, pool)
	}
	if cp.Core, err = corev1client.NewForConfig(config); err != nil {
		return nil, err
	}
	if cp.Apps, err = appsv1client.NewForConfig(config); err != nil {
		return nil, err
	}
	if cp.core, err = corev1client.NewForConfig(own); err != nil {
		return nil, err
	}
	if cp.rbac, err = rbacv1client.NewForConfig(own); err != nil {
		return nil, err
	}
	cp.authorization, err = authorizationv1client.NewForConfig(own)
	return cp, err
}

// Stop ends the control plane and removes its files, unless it is shared. The
// error says that it had ended before, or that it left something behind.
func (cp *ControlPlane) Stop() error {
	if cp.process == nil {
		for _, pool := range cp.pools {
			utilnet.CloseIdleConnectionsFor(pool)
		}
		return nil
	}
	return errors.Join(cp.process.stop(), os.RemoveAll(filepath.Dir(cp.kubeconfig)))
}

// Kubeconfig is the path of a kubeconfig whose user is in the group
// system:masters and so may do everything.
func (cp *ControlPlane) Kubeconfig() string { return cp.kubeconfig }

// Config is the same as a configuration for client-go, without a limit on the
// rate of requests. The caller may change it: it is a copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.config) }

// URL is the API server's, and the issuer of the service accounts' tokens:
// "https://127.0.0.1:PORT". It stays the same when the API server is stopped
// and started.
func (cp *ControlPlane) URL() string { return cp.config.Host }

// CA is the certificate, PEM, with which to check the API server's.
func (cp *ControlPlane) CA() []byte { return cp.ca }

// JWKSURL is where the public keys of the service accounts' tokens are. Any
// service account may read it, and everybody after AllowAnonymousDiscovery.
func (cp *ControlPlane) JWKSURL() string { return cp.URL() + "/openid/v1/jwks" }
