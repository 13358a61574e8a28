// Package kube accesses the Kubernetes API: clients, watches that keep no secret value,
// Events, a Lease for leader election, and workloads. It knows nothing about targets
// except the marks on written objects.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// requestTimeout limits each request that is not a watch, from its start to the last byte
// of the answer.
const requestTimeout = 30 * time.Second

// protobuf needs half the bytes of JSON and causes a fraction of its garbage.
const protobuf = "application/vnd.kubernetes.protobuf"

// namespaceFile is the file that holds the namespace of a Pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Config says how to reach the API server.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file. If it is empty, the files in
	// $KUBECONFIG are used. If that is empty too, the configuration that Kubernetes puts
	// into each Pod is used.
	Kubeconfig string
	// UserAgent is the name in the API server's audit log; "syncer" if empty.
	UserAgent string
	// Log receives the messages of the client library; nil discards them.
	Log *zap.Logger
}

// Client accesses one API server under one identity. Several goroutines may use its
// parts. The client does not limit its request rate: the API server's priority and
// fairness limits requests.
type Client struct {
	Core         coreV1
	Apps         appsV1
	Batch        batchV1
	Coordination coordinationV1
	// Namespace is the namespace of this process, or of the kubeconfig's context; "" if
	// both are unknown.
	Namespace string

	config *rest.Config // as it was read, for requests other than plain ones
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

// Token returns the token of the client's requests; "" if there is none.
func (c *Client) Token() string { return c.config.BearerToken }

// MayWrite returns why this process must not write anything now. The reason is that it
// contests for a Lease and another process may hold it; see [Client.Elect].
func (c *Client) MayWrite() error {
	_, err := c.term.checkTerm()
	return err
}

// Close closes idle connections.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

func adjust(config *rest.Config, agent string, log klog.Logger, t *term) {
	config.UserAgent = agent
	if agent == "" {
		config.UserAgent = "syncer"
	}
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + ",application/json"
	config.QPS, config.Burst = -1, 0 // no limit
	config.Timeout = 0               // a timeout would end watches too; see bounded
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next, t} })
	config.WarningHandlerWithContext = warnings{log}
}

// load finds the configuration and its namespace.
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
	namespace, _ := os.ReadFile(namespaceFile) // this file exists wherever a token exists
	return config, strings.TrimSpace(string(namespace)), nil
}

func loadKubeconfig(paths []string, from string) (*rest.Config, string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: paths, WarnIfAllMissing: false}
	if len(paths) == 1 {
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: paths[0]} // the file must exist
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

// incomplete says which parts a kubeconfig lacks; nil if it is complete. The client
// library would ignore missing parts or report unrelated errors.
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
	cluster := raw.Clusters[context.Cluster]
	for name, text := range map[string]string{"server": cluster.Server, "proxy-url": cluster.ProxyURL} {
		if u, err := url.Parse(text); err != nil || u.User != nil { // not shown: errors of the network name the address
			return fmt.Errorf("the %s of the cluster %q is not an address without a user and password; correct it", name, context.Cluster)
		}
	}
	return nil
}

// bounded sets a time limit on each request except watches, and allows writes only during
// the term. The limit of the whole http.Client would end watches too.
type bounded struct {
	next http.RoundTripper
	term *term
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "" {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	release, err := b.term.bind(r, cancel)
	end := func() { release(); cancel() }
	if err != nil {
		end()
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, end}
	return resp, nil
}

// WrappedRoundTripper gives the client library access to the inner transport, to close
// idle connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// boundedBody ends its request's time limit when it is closed.
type boundedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
