package conjurd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

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
