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

// Pods is what authn-k8s needs of a Kubernetes cluster.
type Pods interface {
	// Pod returns what is known of a Pod; nil when there is none.
	Pod(ctx context.Context, namespace, name string) (*Pod, error)
	// Exec runs sh in a container with the script on its standard input, and
	// returns when it has ended.
	Exec(ctx context.Context, namespace, name, container string, script []byte) error
}

// Pod is what a host's annotations can restrict.
type Pod struct {
	NamespaceLabels map[string]string
	ServiceAccount  string
	// Controllers it belongs to, directly or not, each as kind/name in small
	// letters, such as deployment/shop.
	Controllers []string
	// Containers and init containers.
	Containers []string
}

// podRef is how a workload's certificate names its Pod, in the URI
// spiffe://cluster.local/namespace/NAMESPACE/podname/NAME.
type podRef struct{ namespace, name string }

func parsePodURI(path string) (podRef, error) {
	parts := strings.Split(path, "/")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "namespace" || parts[2] == "" || parts[3] != "podname" || parts[4] == "" {
		return podRef{}, errors.New("the SPIFFE URI's path is not /namespace/NAMESPACE/podname/NAME")
	}
	return podRef{parts[2], parts[4]}, nil
}

// containerAnnotation names the container that a certificate is brought to.
const containerAnnotation = "authentication-container-name"

// podRestrictions are the names under which a host's annotations restrict its
// Pods, and the kinds of controllers among them.
var podRestrictions = map[string]string{
	"namespace": "", "namespace-label-selector": "", "service-account": "", "pod": "", containerAnnotation: "",
	"deployment": "deployment", "deployment-config": "deploymentconfig", "stateful-set": "statefulset",
}

// checkPod returns the container to use if the Pod is one of the host's.
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

// container is the one that annotations name, the service's own first.
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

// restrictionsOfID reads the last parts of a host's id without annotations:
// namespace, kind of controller, its name; "*" twice for any.
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

// selects reports whether the labels have all that a selector of the form
// "k=v,k2==v2" asks for.
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
