//go:build node

package node

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cyberark/conjur-api-go/conjurapi"
	"github.com/cyberark/conjur-api-go/conjurapi/authn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/secretsync/syncer/test/gobuild"
)

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

// setter returns a function that sets variables without the API server.
func (w *world) setter() func(values map[string]string) {
	w.t.Helper()
	administrator, file := w.administrator(), filepath.Join(w.t.TempDir(), "values.yml")
	return func(values map[string]string) {
		w.t.Helper()
		w.check(os.WriteFile(file, []byte(w.yaml(values)), 0o600))
		administrator("set", "-f", file)
		maps.Copy(w.values, values)
	}
}

// administrator returns a function that runs a command of Syncer as Conjur's administrator,
// without the API server.
func (w *world) administrator() func(args ...string) string {
	w.t.Helper()
	root, err := gobuild.Root()
	w.check(err)
	dir := w.t.TempDir()
	certificate, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key")
	w.check(os.WriteFile(certificate, []byte(w.ca), 0o600))
	w.check(os.WriteFile(key, []byte(w.conjur.file(conjurData, "conjur/admin.key")), 0o600))
	return func(args ...string) string {
		w.t.Helper()
		cmd := exec.Command(filepath.Join(root, "bin", "linux-"+architecture, "syncer"), args...)
		cmd.Env = []string{"CONJUR_APPLIANCE_URL=" + w.address, "CONJUR_ACCOUNT=" + account, "CONJUR_AUTHN_LOGIN=admin",
			"CONJUR_AUTHN_API_KEY_FILE=" + key, "CONJUR_CERT_FILE=" + certificate}
		var failure strings.Builder
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			w.t.Fatalf("syncer %s: %v\n%s", strings.Join(args, " "), err, failure.String())
		}
		return string(out)
	}
}

// load changes Conjur's policy, as an administrator does.
func (w *world) load(policy string) {
	w.t.Helper()
	config := conjurapi.Config{ApplianceURL: w.address, Account: account, SSLCert: w.ca, CredentialStorage: conjurapi.CredentialStorageNone}
	key := strings.TrimSpace(w.conjur.file(conjurData, "conjur/admin.key"))
	admin, err := conjurapi.NewClientFromKey(config, authn.LoginPair{Login: "admin", APIKey: key})
	w.check(err)
	defer admin.GetHttpClient().CloseIdleConnections()
	_, err = admin.LoadPolicy(conjurapi.PolicyModePatch, "root", strings.NewReader(policy))
	w.check(err)
}

// outage makes Conjur unreachable, or reachable again.
func (w *world) outage(begins bool) {
	w.t.Helper()
	services := client.CoreV1().Services(w.namespace)
	s, err := services.Get(w.t.Context(), "conjur", metav1.GetOptions{})
	w.check(err)
	s.Spec.Selector["app"] = map[bool]string{true: "nobody", false: "conjur"}[begins]
	_, err = services.Update(w.t.Context(), s, metav1.UpdateOptions{})
	w.check(err)
}
