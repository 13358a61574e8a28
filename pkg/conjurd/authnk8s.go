package conjurd

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const (
	workloadLife = 3 * 24 * time.Hour // of a workload's certificate
	execTimeout  = 5 * time.Second
	maxCSR       = 16 << 10
	// apps is the policy branch of a host whose request names no branch.
	apps = "host.conjur.authn-k8s.%s.apps"
)

// injectClientCert signs a certificate for the key of a signing request, and writes
// it into the container of the Pod that the request names. The proof of identity is
// that only this container receives the certificate.
func (s *Server) injectClientCert(c *call) reply {
	a := &authenticator{kind: authnK8s, account: s.opt.Account, service: c.vars["service"]}
	role, err := s.inject(c, a)
	s.audit.decided(c, "inject-client-cert", role, a.id(), err == nil)
	if err == nil {
		return empty(http.StatusAccepted)
	}
	s.refused(c, role, err)
	if errors.Is(err, errNoPrivilege) {
		return empty(http.StatusForbidden)
	}
	return empty(http.StatusUnauthorized)
}

func (s *Server) inject(c *call, a *authenticator) (role string, err error) {
	body, err := c.body(maxCSR)
	if err != nil {
		return "", err
	}
	request, ref, err := parseRequest(body)
	if err != nil {
		return "", err
	}
	prefix := c.r.Header.Get("Host-Id-Prefix")
	if prefix == "" {
		prefix = fmt.Sprintf(apps, a.service)
	}
	name := prefix + "." + request.Subject.CommonName
	role = roleOf(a.account, strings.ReplaceAll(name, ".", "/"))
	container, err := s.admitPod(c, a, role, ref)
	if err != nil {
		return role, err
	}
	certificate, err := a.sign(request, name, s.now())
	if err != nil {
		return role, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), execTimeout)
	defer cancel()
	return role, s.opt.Kubernetes.Exec(ctx, ref.namespace, ref.name, container, InjectionScript(certificate))
}

// parseRequest reads a signing request in PEM and the Pod that it names.
func parseRequest(text []byte) (*x509.CertificateRequest, podRef, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, podRef{}, errors.New("the body is not a certificate request in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return nil, podRef{}, fmt.Errorf("the certificate request is not good: %w", err)
	}
	ref, err := podOf(request.URIs)
	return request, ref, err
}

func podOf(uris []*url.URL) (podRef, error) {
	if len(uris) != 1 || uris[0].Scheme != "spiffe" {
		return podRef{}, errors.New("there is not one SPIFFE URI")
	}
	return parsePodURI(uris[0].Path)
}

// admitPod returns the target container if the host may use the authenticator, the
// Pod exists, and the Pod matches the host.
func (s *Server) admitPod(c *call, a *authenticator, role string, ref podRef) (container string, err error) {
	if s.opt.Kubernetes == nil {
		return "", errors.New("this server knows no Kubernetes cluster")
	}
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return "", err
	}
	// Check the right to log in first, so that unauthorized callers cause no
	// requests to the cluster.
	if err := s.admit(c, a, role, func(*store.Object) error { return nil }); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), execTimeout)
	defer cancel()
	pod, err := s.opt.Kubernetes.Pod(ctx, ref.namespace, ref.name)
	if err != nil {
		return "", err
	}
	if pod == nil {
		return "", fmt.Errorf("there is no Pod %s/%s", ref.namespace, ref.name)
	}
	err = s.admit(c, a, role, func(o *store.Object) error {
		container, err = a.checkPod(o, role, ref, pod)
		return err
	})
	return container, err
}

// sign issues the certificate, in PEM, from the authenticator's own authority.
func (a *authenticator) sign(request *x509.CertificateRequest, name string, now time.Time) ([]byte, error) {
	ca, key, err := a.authority()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, URIs: request.URIs,
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(workloadLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}, ca, request.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return encodePEM("CERTIFICATE", der), nil
}

// authority reads the variables ca/cert and ca/key.
func (a *authenticator) authority() (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.X509KeyPair([]byte(a.setting["ca/cert"]), []byte(a.setting["ca/key"]))
	if err != nil {
		return nil, nil, errors.New("the variables ca/cert and ca/key do not hold a certificate and its key in PEM")
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, errors.New("the variable ca/key holds no key that can sign")
	}
	return pair.Leaf, signer, nil
}

// authenticateK8s returns an access token for the host that a client certificate
// names. injectClientCert must have issued the certificate, and the Pod must still
// exist.
func (s *Server) authenticateK8s(c *call) reply {
	a := newAuthenticator(authnK8s, c)
	role := roleOf(a.account, c.vars["login"])
	return s.decide(c, a, role, s.checkWorkload(c, a, role))
}

func (s *Server) checkWorkload(c *call, a *authenticator, role string) error {
	if c.r.TLS == nil || len(c.r.TLS.PeerCertificates) == 0 {
		return errors.New("the connection has no client certificate")
	}
	leaf := c.r.TLS.PeerCertificates[0]
	ref, err := podOf(leaf.URIs)
	if err != nil {
		return err
	}
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return err
	}
	ca, _, err := a.authority()
	if err != nil {
		return err
	}
	now := s.now()
	switch {
	case leaf.CheckSignatureFrom(ca) != nil:
		return errors.New("the client certificate is not signed by the authenticator's authority")
	case leaf.Subject.CommonName != strings.ReplaceAll(c.vars["login"], "/", "."):
		return errors.New("the client certificate is for another host")
	case now.After(leaf.NotAfter) || now.Before(leaf.NotBefore):
		return errors.New("the client certificate is not valid at this time")
	}
	_, err = s.admitPod(c, a, role, ref)
	return err
}

// The parts of InjectionScript before and after the certificate.
const (
	InjectionPrefix = "#!/bin/sh\nset -eu\nfile=/etc/conjur/ssl/client.pem\nnew=$file.tmp\ntrap 'rm -f \"$new\"' EXIT\ncat > \"$new\" <<'EOF'\n"
	InjectionSuffix = "EOF\nchmod 644 \"$new\"\nmv \"$new\" \"$file\"\n"
)

// InjectionScript returns a shell script that writes the certificate, in PEM, to
// the path where clients of authn-k8s look for it.
func InjectionScript(certificate []byte) []byte {
	return []byte(InjectionPrefix + string(certificate) + InjectionSuffix)
}

// Pods gives authn-k8s access to a Kubernetes cluster.
type Pods interface {
	// Pod describes a Pod. It returns nil if the Pod does not exist.
	Pod(ctx context.Context, namespace, name string) (*Pod, error)
	// Exec runs sh in a container, with the script on its standard input, and
	// returns when it has ended.
	Exec(ctx context.Context, namespace, name, container string, script []byte) error
}

// Pod holds the facts that a host's annotations can restrict.
type Pod struct {
	NamespaceLabels map[string]string
	ServiceAccount  string
	// Controllers that own the Pod, directly or not, each as kind/name in lower
	// case, such as deployment/shop.
	Controllers []string
	// Containers and init containers.
	Containers []string
}

// podRef identifies a Pod. A workload's certificate names it in the URI
// spiffe://cluster.local/namespace/NAMESPACE/podname/NAME.
type podRef struct{ namespace, name string }

func parsePodURI(path string) (podRef, error) {
	parts := strings.Split(path, "/")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "namespace" || parts[2] == "" || parts[3] != "podname" || parts[4] == "" {
		return podRef{}, errors.New("the SPIFFE URI's path is not /namespace/NAMESPACE/podname/NAME")
	}
	return podRef{parts[2], parts[4]}, nil
}

// containerAnnotation names the container that receives the certificate.
const containerAnnotation = "authentication-container-name"

// podRestrictions maps the annotations that restrict a host's Pods to kinds of
// controllers. Annotations for other facts map to "".
var podRestrictions = map[string]string{
	"namespace": "", "namespace-label-selector": "", "service-account": "", "pod": "", containerAnnotation: "",
	"deployment": "deployment", "deployment-config": "deploymentconfig", "stateful-set": "statefulset",
}

// checkPod returns the target container if the Pod matches the host.
func (a *authenticator) checkPod(o *store.Object, role string, ref podRef, pod *Pod) (container string, err error) {
	asked, err := a.restrictions(o, slices.Collect(maps.Keys(podRestrictions))...)
	if err != nil {
		return "", err
	}
	container = a.container(o, asked)
	delete(asked, containerAnnotation)
	if len(asked) == 0 {
		if asked, err = restrictionsOfID(policy.Ref(role).ID()); err != nil {
			return "", err
		}
	} else if (asked["namespace"] == "") == (asked["namespace-label-selector"] == "") {
		return "", fmt.Errorf("the host needs one of the annotations %s/namespace and namespace-label-selector", a.kind)
	}
	controllers := 0
	for name, want := range asked {
		if podRestrictions[name] != "" {
			controllers++
		}
		if !fitsPod(name, want, ref, pod) {
			return "", fmt.Errorf("the Pod %s/%s is not of the host's %s", ref.namespace, ref.name, name)
		}
	}
	switch {
	case controllers > 1:
		return "", errors.New("the host is restricted to several controllers at once")
	case !slices.Contains(pod.Containers, container):
		return "", fmt.Errorf("the Pod %s/%s has no container %s", ref.namespace, ref.name, container)
	}
	return container, nil
}

// container returns the container that annotations name. An annotation for this
// service takes precedence.
func (a *authenticator) container(o *store.Object, asked map[string]string) string {
	if name := asked[containerAnnotation]; name != "" {
		return name
	}
	for _, an := range o.Annotations {
		if an.Name == "kubernetes/"+containerAnnotation {
			return an.Value
		}
	}
	return "authenticator"
}

// restrictionsOfID reads the restrictions from the id of a host without
// annotations. Its last three parts are the namespace, the kind of controller and
// its name. "*" for both kind and name matches all Pods of the namespace.
func restrictionsOfID(id string) (map[string]string, error) {
	parts := strings.Split(id, "/")
	if len(parts) < 3 {
		return nil, errors.New("the host has no annotations, and its id does not end in NAMESPACE/KIND/NAME")
	}
	namespace, kind, name := parts[len(parts)-3], parts[len(parts)-2], parts[len(parts)-1]
	restrictions := map[string]string{"namespace": namespace}
	if kind == "*" && name == "*" {
		return restrictions, nil
	}
	kind = strings.ReplaceAll(kind, "_", "-")
	if _, ok := podRestrictions[kind]; !ok || kind == "namespace" || kind == "namespace-label-selector" || kind == containerAnnotation {
		return nil, fmt.Errorf("the host's id ends in an unknown kind %q", kind)
	}
	restrictions[kind] = name
	return restrictions, nil
}

func fitsPod(name, want string, ref podRef, pod *Pod) bool {
	switch name {
	case "namespace":
		return want == ref.namespace
	case "namespace-label-selector":
		return selects(want, pod.NamespaceLabels)
	case "service-account":
		return want == pod.ServiceAccount
	case "pod":
		return want == ref.name
	}
	return slices.Contains(pod.Controllers, podRestrictions[name]+"/"+want)
}

// selects reports whether the labels satisfy a selector of the form "k=v,k2==v2".
func selects(selector string, labels map[string]string) bool {
	for _, term := range strings.Split(selector, ",") {
		name, want, ok := strings.Cut(strings.Replace(term, "==", "=", 1), "=")
		got, has := labels[strings.TrimSpace(name)]
		if !ok || !has || got != strings.TrimSpace(want) {
			return false
		}
	}
	return true
}
