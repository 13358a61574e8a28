//go:build node

package node

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/proctest"
)

const (
	syncerImage = "secretsync/syncer:0.2.0" // as make image calls it
	account     = "dev"
	conjurData  = "data" // the volume of conjurd
)

// world is a namespace with a Conjur server in a Pod, and a service account,
// app, that may read the variables of shop.
type world struct {
	t         testing.TB
	namespace string
	conjur    *pod
	address   string // of the Service before conjurd
	ca        string
	values    map[string]string
}

func newWorld(t testing.TB, values map[string]string) *world {
	t.Helper()
	return newWorldWith(t, policy(values), values)
}

// newWorldWith has another policy, in which VALUE_OF_NAMESPACE is the
// namespace, and more arguments of conjurd.
func newWorldWith(t testing.TB, policy string, values map[string]string, arguments ...string) *world {
	t.Helper()
	plane.AllowAnonymousDiscovery(t)
	w := &world{t: t, namespace: plane.Namespace(t), values: values}
	t.Cleanup(w.end)
	service, err := client.CoreV1().Services(w.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "conjur"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "conjur"},
			Ports:    []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
		},
	}, metav1.CreateOptions{})
	w.check(err)
	w.address = "https://" + service.Spec.ClusterIP
	w.account("app")
	all := map[string]string{
		"conjur/authn-jwt/cluster/jwks-uri": "https://10.0.0.1/openid/v1/jwks", "conjur/authn-jwt/cluster/ca-cert": string(plane.CA()),
		"conjur/authn-jwt/cluster/issuer": plane.URL(), "conjur/authn-jwt/cluster/audience": "conjur",
		"conjur/authn-jwt/cluster/token-app-property": "sub", "conjur/authn-jwt/cluster/identity-path": "apps",
	}
	maps.Copy(all, values)
	w.configMap("conjur", map[string]string{"policy.yml": strings.ReplaceAll(policy, "VALUE_OF_NAMESPACE", w.namespace), "values.yml": w.yaml(all)})
	conjur := conjurPod(service.Spec.ClusterIP)
	conjur.Spec.Containers[0].Args = append(conjur.Spec.Containers[0].Args, arguments...)
	w.conjur = w.start("conjur", conjur)
	w.conjur.ready()
	w.ca = w.conjur.file(conjurData, "conjur/ca.pem")
	return w
}

// under is the same world for a part of the test.
func (w *world) under(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// label makes of a text what may be in a Pod's name.
func label(text string) string {
	return strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(text))
}

// account makes a service account.
func (w *world) account(name string) {
	w.t.Helper()
	_, err := client.CoreV1().ServiceAccounts(w.namespace).Create(w.t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.check(err)
}

func (w *world) configMap(name string, data map[string]string) {
	w.t.Helper()
	_, err := client.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	w.check(err)
}

func (w *world) yaml(v any) string {
	w.t.Helper()
	text, err := sigsyaml.Marshal(v)
	w.check(err)
	return string(text)
}

// end gives back what the namespace holds of the node. The namespace stays:
// the control plane ends soon.
func (w *world) end() {
	ctx, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	if w.t.Failed() {
		w.t.Logf("in the namespace %s:\n%s", w.namespace, w.describe(ctx))
	}
	now := int64(1)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now}
	if err := client.CoreV1().Namespaces().Delete(ctx, w.namespace, options); err != nil {
		w.t.Error(err)
	}
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	proctest.Eventually(w.t, what, condition)
}

// describe tells what "kubectl describe pod" does of the Pods, and their logs.
func (w *world) describe(ctx context.Context) string {
	var text strings.Builder
	pods, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, found := range pods.Items {
		p := &pod{world: w, name: found.Name}
		fmt.Fprintf(&text, "Pod %s: %s\n%s", found.Name, found.Status.Phase, p.described(ctx))
		for _, c := range append(found.Spec.InitContainers, found.Spec.Containers...) {
			log := p.logs(ctx, c.Name)
			fmt.Fprintf(&text, "  log of %s:\n%s\n", c.Name, log[max(0, len(log)-2000):])
		}
	}
	return text.String()
}
