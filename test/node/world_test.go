//go:build node

package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/deploy"
)

// patience is how long a test waits for what must happen: seconds when the
// machine is free.
const patience = 3 * time.Minute

const (
	syncerImage = "secretsync/syncer:0.1.0" // as make image calls it
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
// namespace.
func newWorldWith(t testing.TB, policy string, values map[string]string) *world {
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
	w.conjur = w.start("conjur", conjurPod(service.Spec.ClusterIP))
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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

// policy lets the namespace's service accounts app and syncer log in by
// authn-jwt, and Pods of app by authn-k8s.
func policy(values map[string]string) string {
	var variables strings.Builder
	for id := range values {
		if shop, ok := strings.CutPrefix(id, "shop/"); ok {
			fmt.Fprintf(&variables, "    - !variable %s\n", shop)
		}
	}
	return strings.ReplaceAll(`
- !policy
  id: conjur/authn-jwt/cluster
  body:
  - !webservice
  - !variable jwks-uri
  - !variable ca-cert
  - !variable issuer
  - !variable audience
  - !variable token-app-property
  - !variable identity-path
  - !group apps
  - !permit { role: !group apps, privileges: [ read, authenticate ], resource: !webservice }
- !policy
  id: conjur/authn-k8s/cluster
  body:
  - !webservice
  - !policy { id: ca, body: [ !variable cert, !variable key ] }
  - !group apps
  - !permit { role: !group apps, privileges: [ read, authenticate ], resource: !webservice }
  - !policy
    id: apps
    body:
    - !host
      id: app
      annotations: { authn-k8s/namespace: VALUE_OF_NAMESPACE, authn-k8s/service-account: app, authn-k8s/authentication-container-name: syncer }
  - !grant { role: !group apps, member: !host apps/app }
- !policy
  id: apps
  body:
  - !host
    id: system:serviceaccount:VALUE_OF_NAMESPACE:app
    annotations: { authn-jwt/cluster/sub: "system:serviceaccount:VALUE_OF_NAMESPACE:app" }
  - !host
    id: system:serviceaccount:VALUE_OF_NAMESPACE:syncer
    annotations: { authn-jwt/cluster/sub: "system:serviceaccount:VALUE_OF_NAMESPACE:syncer" }
- !grant
  role: !group conjur/authn-jwt/cluster/apps
  members: [ !host "apps/system:serviceaccount:VALUE_OF_NAMESPACE:app", !host "apps/system:serviceaccount:VALUE_OF_NAMESPACE:syncer" ]
- !policy
  id: shop
  body:
  - &variables
    VARIABLES
  - !group readers
  - !permit { role: !group readers, privileges: [ read, execute ], resource: *variables }
- !grant
  role: !group shop/readers
  members:
  - !host "apps/system:serviceaccount:VALUE_OF_NAMESPACE:app"
  - !host "apps/system:serviceaccount:VALUE_OF_NAMESPACE:syncer"
  - !host conjur/authn-k8s/cluster/apps/app
`, "    VARIABLES\n", variables.String())
}

// conjurPod is conjurd with its data in a volume.
func conjurPod(address string) *corev1.Pod {
	data := []corev1.VolumeMount{{Name: conjurData, MountPath: "/data"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "conjur"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(2)),
			InitContainers: []corev1.Container{{
				Name: "init", Image: syncerImage,
				Args:         []string{"conjurd", "init", "--dir", "/data/conjur", "--account", account, "--policy", "/policy/policy.yml", "--values", "/policy/values.yml"},
				VolumeMounts: append([]corev1.VolumeMount{{Name: "policy", MountPath: "/policy"}}, data...),
			}},
			Containers: []corev1.Container{{
				Name: "conjurd", Image: syncerImage,
				Args:           []string{"conjurd", "--dir", "/data/conjur", "--addr", "0.0.0.0:8443", "--host", address, "--kubernetes"},
				VolumeMounts:   data,
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}}, PeriodSeconds: 1},
			}},
			Volumes: []corev1.Volume{
				{Name: conjurData, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "policy", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conjur"}}}},
			},
		},
	}
}

// set sets variables at one moment, as an administrator does.
func (w *world) set(values map[string]string) {
	w.t.Helper()
	w.setter()(values)
}

// setter returns what does so without the API server.
func (w *world) setter() func(values map[string]string) {
	w.t.Helper()
	root, err := deploy.Root()
	w.check(err)
	dir := w.t.TempDir()
	certificate, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key")
	w.check(os.WriteFile(certificate, []byte(w.ca), 0o600))
	w.check(os.WriteFile(key, []byte(w.conjur.file(conjurData, "conjur/admin.key")), 0o600))
	return func(values map[string]string) {
		w.t.Helper()
		file := filepath.Join(dir, "values.yml")
		w.check(os.WriteFile(file, []byte(w.yaml(values)), 0o600))
		cmd := exec.Command(filepath.Join(root, "bin", "linux-"+architecture, "syncer"), "set", "-f", file)
		cmd.Env = []string{"CONJUR_APPLIANCE_URL=" + w.address, "CONJUR_ACCOUNT=" + account, "CONJUR_AUTHN_LOGIN=admin",
			"CONJUR_AUTHN_API_KEY_FILE=" + key, "CONJUR_CERT_FILE=" + certificate}
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("syncer set: %v\n%s", err, out)
		}
		maps.Copy(w.values, values)
	}
}

// outage takes Conjur away from those who connect, and back.
func (w *world) outage(begins bool) {
	w.t.Helper()
	services := client.CoreV1().Services(w.namespace)
	s, err := services.Get(w.t.Context(), "conjur", metav1.GetOptions{})
	w.check(err)
	s.Spec.Selector["app"] = map[bool]string{true: "nobody", false: "conjur"}[begins]
	_, err = services.Update(w.t.Context(), s, metav1.UpdateOptions{})
	w.check(err)
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !condition(); {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("%s has not come about within %v", what, patience)
		}
	}
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
