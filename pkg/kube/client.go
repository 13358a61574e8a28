// Package kube talks to the Kubernetes API: clients, watches that keep no
// secret value, Events, a lease for one leader, and workloads. It knows no
// target, only how what was written is marked.
package kube

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// requestTimeout bounds each request that is not a watch, from its begin to
// the last byte of its answer.
const requestTimeout = 30 * time.Second

// protobuf is half the bytes of JSON and a fraction of its garbage.
const protobuf = "application/vnd.kubernetes.protobuf"

// namespaceFile is where a Pod finds its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Config is how to reach the API server.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file. When it is empty, the files
	// that $KUBECONFIG lists are used, and without them the configuration that
	// Kubernetes puts into each Pod.
	Kubeconfig string
	// UserAgent is what the API server's audit log shows; "syncer" when empty.
	UserAgent string
	// Log takes what the client library has to say; nil for nothing.
	Log *zap.Logger
}

// Client is the way to one API server under one identity. Its parts may be used
// by several goroutines. Requests are not slowed on this side: the API server's
// priority and fairness does it.
type Client struct {
	Core         coreV1
	Apps         appsV1
	Batch        batchV1
	Coordination coordinationV1
	// Namespace is the one that this process runs in, or that the kubeconfig's
	// context names; "" when neither is known.
	Namespace string

	config *rest.Config // as it was read, for what is no plain request
	http   *http.Client
	log    klog.Logger
	term   term
}

// Connect reads the configuration and makes the clients. It sends nothing to
// the API server.
func Connect(c Config) (*Client, error) {
	config, namespace, err := load(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	k := &Client{Namespace: namespace, config: rest.CopyConfig(config), log: newLogger(c.Log)}
	adjust(config, c.UserAgent, k.log, &k.term)
	if k.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	for version, group := range map[schema.GroupVersion]*rest.Interface{
		corev1.SchemeGroupVersion: &k.Core.Interface, appsv1.SchemeGroupVersion: &k.Apps.Interface,
		batchv1.SchemeGroupVersion: &k.Batch.Interface, coordinationv1.SchemeGroupVersion: &k.Coordination.Interface,
	} {
		if *group, err = newGroup(config, k.http, codecs, version); err != nil {
			return nil, fmt.Errorf("kubernetes client: %w", err)
		}
	}
	return k, nil
}

// Token returns the token that its requests have; "" when they have none.
func (c *Client) Token() string { return c.config.BearerToken }

// MayWrite returns why this process must not write anywhere now: it contests for
// a Lease, and another process may hold it; see [Client.Elect].
func (c *Client) MayWrite() error {
	_, err := c.term.check()
	return err
}

// Close closes the connections that are idle.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

func adjust(config *rest.Config, agent string, log klog.Logger, t *term) {
	config.UserAgent = agent
	if agent == "" {
		config.UserAgent = "syncer"
	}
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + ",application/json"
	config.QPS, config.Burst = -1, 0 // no limit
	config.Timeout = 0               // it would end watches too; bounded does better
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next, t} })
	config.WarningHandlerWithContext = warnings{log}
}

// load finds the configuration and the namespace that goes with it.
func load(path string) (*rest.Config, string, error) {
	paths, from := []string{path}, path
	if path == "" {
		env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
		paths, from = filepath.SplitList(env), "$KUBECONFIG ("+env+")"
	}
	if len(paths) > 0 {
		return loadKubeconfig(paths, from)
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, "", errors.New("no way to the Kubernetes API: this is not a Pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set), and there is no kubeconfig; run in a Pod with a service account, or let KUBECONFIG name a kubeconfig file")
	}
	if err != nil {
		return nil, "", fmt.Errorf("no way to the Kubernetes API: this is a Pod, but its service account cannot be used: %w; see that automountServiceAccountToken is not false, or let KUBECONFIG name a kubeconfig file", err)
	}
	namespace, _ := os.ReadFile(namespaceFile) // where there is a token there is this file
	return config, strings.TrimSpace(string(namespace)), nil
}

func loadKubeconfig(paths []string, from string) (*rest.Config, string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: paths, WarnIfAllMissing: false}
	if len(paths) == 1 {
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: paths[0]} // it must be there
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	raw, err := loader.RawConfig()
	if err == nil {
		err = incomplete(raw)
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", from, err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", from, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", from, err)
	}
	return config, namespace, nil
}

// incomplete says what a kubeconfig lacks; nil for nothing. The client library
// would pass over it, or speak of other things.
func incomplete(raw clientcmdapi.Config) error {
	context := raw.Contexts[raw.CurrentContext]
	switch {
	case raw.CurrentContext == "":
		return errors.New("no current-context is set; kubectl config use-context does it")
	case context == nil:
		return fmt.Errorf("there is no context %q, which is the current-context", raw.CurrentContext)
	case raw.Clusters[context.Cluster] == nil:
		return fmt.Errorf("there is no cluster %q, which the context %q names", context.Cluster, raw.CurrentContext)
	case raw.AuthInfos[context.AuthInfo] == nil && context.AuthInfo != "":
		return fmt.Errorf("there is no user %q, which the context %q names", context.AuthInfo, raw.CurrentContext)
	}
	return nil
}
