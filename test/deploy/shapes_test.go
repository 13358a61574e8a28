package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/test/deploy"
)

// connection contains the values that every release needs.
const connection = `config: {conjur: {applianceUrl: "https://conjur.example.com:8443", account: example, authnUrl: "https://conjur.example.com/authn-jwt/example"}}
`

// conjurWith is the same with more of the configuration.
func conjurWith(more string) string {
	return strings.Replace(connection, "config: {", "config: {"+more+", ", 1)
}

// shapes are values for everything that the chart can install, by description. NAMESPACE is
// the release's namespace, OTHER another one.
var shapes = map[string]string{
	"deployment":         connection,
	"one replica":        connection + "replicas: 1",
	"no election":        conjurWith("leaderElection: {enabled: false}") + "replicas: 1",
	"several namespaces": conjurWith("kubernetes: {namespaces: [NAMESPACE, OTHER]}"),
	"all namespaces":     conjurWith(`kubernetes: {namespaces: ["*"]}`) + `access: {configMaps: ["*"], workloads: ["*"]}`,
	"listed": conjurWith(`kubernetes: {secrets: [database, {name: tls, namespace: OTHER, create: true, type: Opaque, restart: [deployment/shop],
		groups: {app.conf: {secrets: [a/b], templateConfigMap: templates/app}}}]}`),
	"everything": everything,
	"authn-k8s":  strings.NewReplacer("authn-jwt", "authn-k8s", "account: example", "account: example, login: host/syncer").Replace(connection),
	"job":        connection + "shape: job",
	"listed job": conjurWith("kubernetes: {secrets: [database]}") + "shape: job\njob: {backoffLimit: 2, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 600}",
	"example":    connection + "shape: example",
	"inject":     connection + "inject: {enabled: true, namespaces: true}",
	"in place":   connection + "shape: example\nsidecar: {restartInPlace: true}",
	"hook":       connection + "shape: example\nsidecar: {startup: hook}",
	"init":       connection + "shape: example\nsidecar: {mode: init, templatesConfigMap: templates}\ncredentials: {connectConfigMap: conjur, certificate: {secretName: ca}}",
}

const everything = `
config: {conjur: {applianceUrl: "https://conjur.example.com", account: example, login: host/syncer}}
credentials:
  apiKey: {secretName: conjur-key}
  certificate: {configMapName: conjur-ca, key: ca.pem}
  connectConfigMap: conjur-connect
access: {configMaps: [templates], workloads: [deployment/shop, statefulset/db, daemonset/agent]}
image: {digest: "sha256:` + "0000000000000000000000000000000000000000000000000000000000000000" + `", pullSecrets: [pull]}
replicas: 3
serviceAccount: {name: own, annotations: {a: b}}
networkPolicy:
  conjur: {to: [{ipBlock: {cidr: 192.0.2.0/24}}]}
  apiServer: {ports: [6443], to: [{ipBlock: {cidr: 192.0.2.1/32}}]}
  metricsFrom: [{namespaceSelector: {matchLabels: {team: monitoring}}}]
port: 9090
podAnnotations: {prometheus.io/scrape: "true"}
podLabels: {team: platform}
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
priorityClassName: system-cluster-critical
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]
podSecurityContext: {runAsUser: 10001}
extraArgs: [--workers=8]
extraEnv: [{name: GOMEMLIMIT, value: 200MiB}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
`

// values fills in the namespaces of a shape.
func values(shape, namespace, other string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "OTHER", other).Replace(shapes[shape])
}

// restricted makes a namespace that admits only Pods of the restricted
// profile.
func restricted(t *testing.T) string {
	t.Helper()
	ns := cluster.Namespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := cluster.Core.Namespaces().Patch(t.Context(), ns, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return ns
}

// podOf is the Pod that a workload would start; nil for another object.
func podOf(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetGenerateName("pod-")
	return pod
}

func TestTheAPIServerTakesEveryObject(t *testing.T) {
	objects := deploy.Connect(t, cluster.Config())
	for shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			ns, other := restricted(t), cluster.Namespace(t)
			release := deploy.Release{Namespace: ns, Values: values(shape, ns, other)}
			pods, all := 0, release.Objects(t)
			objects.NeedSupport(t, all)
			for _, o := range all {
				if _, err := objects.Create(t.Context(), ns, o, true); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
				if pod := podOf(t, o); pod != nil {
					pods++
					if _, err := objects.Create(t.Context(), ns, pod, true); err != nil {
						t.Errorf("a Pod of %s %s: %v", o.GetKind(), o.GetName(), err)
					}
				}
			}
			if pods != 1 {
				t.Errorf("%d workloads, want one", pods)
			}
		})
	}
}

// TestRestrictedIsEnforced: the namespaces of these tests do refuse Pods.
func TestRestrictedIsEnforced(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	_, err := deploy.Connect(t, cluster.Config()).Create(t.Context(), restricted(t), pod, true)
	if err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a Pod of any kind: %v, want a refusal", err)
	}
}

// Conjur writes the certificate for authn-k8s into a writable folder. Other authenticators
// have no such folder.
func TestCertificateHasAPlace(t *testing.T) {
	for shape, want := range map[string]bool{"authn-k8s": true, "deployment": false, "example": false, "init": false} {
		for _, o := range (deploy.Release{Values: values(shape, "syncer", "other")}).Objects(t) {
			pod := podOf(t, o)
			if pod == nil {
				continue
			}
			text, err := pod.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			volume, mount := `{"emptyDir":{"medium":"Memory","sizeLimit":"1Mi"},"name":"conjur-ssl"}`, `{"mountPath":"/etc/conjur/ssl","name":"conjur-ssl"}`
			if strings.Contains(string(text), volume) != want || strings.Contains(string(text), mount) != want {
				t.Errorf("%s: a place for a certificate, want %v: %s", shape, want, text)
			}
		}
	}
}

// TestContainersAreConfined checks restrictions that the profile does not require.
func TestContainersAreConfined(t *testing.T) {
	for shape := range shapes {
		for _, o := range (deploy.Release{Values: values(shape, "syncer", "other")}).Objects(t) {
			pod := podOf(t, o)
			if pod == nil {
				continue
			}
			for _, list := range []string{"initContainers", "containers"} {
				containers, _, err := unstructured.NestedSlice(pod.Object, "spec", list)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range containers {
					security, _, _ := unstructured.NestedMap(c.(map[string]any), "securityContext")
					if security["readOnlyRootFilesystem"] != true || security["privileged"] != false {
						t.Errorf("%s: container %v has a writable root or privileges", shape, c.(map[string]any)["name"])
					}
				}
			}
		}
	}
}

func TestReleasesDoNotCollide(t *testing.T) {
	objects := deploy.Connect(t, cluster.Config())
	ns, other, third := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	served := conjurWith(fmt.Sprintf("kubernetes: {namespaces: [%s, %s, %s]}", ns, other, third))
	all := conjurWith(`kubernetes: {namespaces: ["*"]}`)
	for _, r := range []deploy.Release{
		{Name: "a", Namespace: ns, Values: served},
		{Name: "b", Namespace: ns, Values: served},
		{Name: "a-lease", Namespace: ns, Values: served},
		{Name: "a.lease", Namespace: ns, Values: all},
		{Name: "b.a", Namespace: ns, Values: all},
		{Name: "a-syncer", Namespace: ns, Values: connection + "shape: job"},
		{Name: "a-syncer-1", Namespace: ns, Values: connection + "shape: job"},
		{Name: "example", Namespace: ns, Values: connection + "shape: example"},
		{Name: "a", Namespace: other, Values: served},
		{Name: "b", Namespace: other, Values: all},
	} {
		objects.Install(t, r)
	}
}

// TestUpgradeRunsTheJobAgain: an immutable object gets another name.
func TestUpgradeRunsTheJobAgain(t *testing.T) {
	names := map[string]bool{}
	for _, revision := range []int{1, 2} {
		for _, o := range (deploy.Release{Revision: revision, Values: connection + "shape: job"}).Objects(t) {
			if o.GetKind() == "Job" {
				names[o.GetName()] = true
			}
		}
	}
	if len(names) != 2 {
		t.Errorf("Jobs of two revisions: %v, want two", names)
	}
}

// TestChangedConfigurationStartsNoPod: Syncer follows its configuration file,
// which is mounted as a whole, so that the kubelet replaces it.
func TestChangedConfigurationStartsNoPod(t *testing.T) {
	pods := map[string]bool{}
	for _, more := range []string{"refresh: {interval: 1m}", "refresh: {interval: 2m}"} {
		for _, o := range (deploy.Release{Values: conjurWith(more)}).Objects(t) {
			if pod := podOf(t, o); pod != nil {
				text, err := pod.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				pods[string(text)] = true
				if strings.Contains(string(text), "subPath") {
					t.Error("a subPath is mounted, which never changes")
				}
			}
		}
	}
	if len(pods) != 1 {
		t.Errorf("%d kinds of Pod for two refresh intervals, want one", len(pods))
	}
}

// TestTheServersOfSetsAreReached: the NetworkPolicy has each port that a set names.
func TestTheServersOfSetsAreReached(t *testing.T) {
	sets := conjurWith(`rotation: {sets: [
		{set: a, postgresql: {address: ["db:5432/shop", "[::1]:5433/shop", "db:5432/other"], pooler: "pool:6432", admin: x, users: [a, b]}},
		{set: b, mysql: {address: "db:3306", admin: x, users: [a]}},
		{set: c, rabbitmq: {address: ["mq:5671"], api: "https://mq:15671/", admin: x, users: [a, b]}},
		{set: d, redis: {address: ["cache-0:6379", "cache-1:6380"], admin: x, users: [a]}},
		{set: e, http: {url: "https://hook:8443/steps", key: k}},
		{set: f, generate: {random: 32}}]}`)
	want := []float64{3306, 5432, 5433, 5671, 6379, 6380, 6432, 8443, 15671}
	for _, o := range (deploy.Release{Namespace: "shop", Values: sets}).Objects(t) {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		var found []float64
		rules, _, err := unstructured.NestedSlice(o.Object, "spec", "egress")
		if err != nil || len(rules) != 4 {
			t.Fatalf("%v: %v", err, rules)
		}
		for _, port := range rules[2].(map[string]any)["ports"].([]any) {
			found = append(found, port.(map[string]any)["port"].(float64))
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("the ports are %v, want %v", found, want)
		}
		return
	}
	t.Error("there is no NetworkPolicy")
}

// TestNobodyReachesTheProbesUnlessNamed: except the kubelet's node, which no NetworkPolicy
// can exclude.
func TestNobodyReachesTheProbesUnlessNamed(t *testing.T) {
	for shape, want := range map[string]int{"deployment": 0, "job": 0, "everything": 1} {
		ingress := -1
		for _, o := range (deploy.Release{Namespace: "shop", Values: values(shape, "shop", "other")}).Objects(t) {
			if o.GetKind() != "NetworkPolicy" {
				continue
			}
			rules, _, err := unstructured.NestedSlice(o.Object, "spec", "ingress")
			if err != nil {
				t.Fatal(err)
			}
			ingress = len(rules)
			for _, r := range rules {
				if peers, _, _ := unstructured.NestedSlice(r.(map[string]any), "from"); len(peers) == 0 {
					t.Errorf("%s: everybody is let in: %v", shape, r)
				}
			}
		}
		if ingress != want {
			t.Errorf("%s: %d rules let somebody in, want %d", shape, ingress, want)
		}
	}
}
