//go:build node

package node

import (
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/test/deploy"
)

// restricted lets the namespace admit only what restricted Pod Security does.
func (w *world) restricted() {
	w.t.Helper()
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	_, err := client.CoreV1().Namespaces().Patch(w.t.Context(), w.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	w.check(err)
}

// release installs the chart as the release syncer, with the connection to this world's
// Conjur and more values.
func (w *world) release(more map[string]any) deploy.Release {
	w.t.Helper()
	w.configMap("conjur-ca", map[string]string{"ca.crt": w.ca})
	values := map[string]any{
		"config": map[string]any{
			"conjur":  map[string]any{"applianceUrl": w.address, "account": account, "authnUrl": w.address + "/authn-jwt/cluster"},
			"refresh": map[string]any{"interval": "1s"},
		},
		"credentials": map[string]any{"certificate": map[string]any{"configMapName": "conjur-ca"}},
		"replicas":    1,
	}
	merge(values, more)
	r := deploy.Release{Namespace: w.namespace, Values: w.yaml(values)}
	deploy.Connect(w.t, plane.Config()).Install(w.t, r)
	return r
}

func merge(into, more map[string]any) {
	for key, value := range more {
		if value == nil {
			delete(into, key)
			continue
		}
		if a, ok := into[key].(map[string]any); ok {
			if b, ok := value.(map[string]any); ok {
				merge(a, b)
				continue
			}
		}
		into[key] = value
	}
}

// managed creates a Secret with the label.
func (w *world) managed(name, conjurMap string, annotations map[string]string) {
	w.t.Helper()
	_, err := client.CoreV1().Secrets(w.namespace).Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"conjur.org/managed-by-provider": "true"}, Annotations: annotations},
		StringData: map[string]string{"conjur-map": conjurMap},
	}, metav1.CreateOptions{})
	w.check(err)
}

// awaitSecret waits until a Secret has all of the data.
func (w *world) awaitSecret(name string, want map[string]string) {
	w.t.Helper()
	w.eventually("data of the Secret "+name, func() bool {
		s, err := client.CoreV1().Secrets(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		w.check(err)
		got := map[string]string{}
		for key := range want {
			got[key] = string(s.Data[key])
		}
		return maps.Equal(got, want)
	})
}

// podOf returns the one Pod with a label, once there is one.
func (w *world) podOf(selector string) *pod {
	w.t.Helper()
	p := &pod{world: w}
	w.eventually("one Pod with "+selector, func() bool {
		list, err := client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: selector})
		w.check(err)
		if len(list.Items) != 1 {
			return false
		}
		p.name = list.Items[0].Name
		return true
	})
	return p
}

// TestStandaloneRollsAWorkloadOut: five rotated values cause one rollout, by the chart's
// Deployment under restricted Pod Security and the real controllers.
func TestStandaloneRollsAWorkloadOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, five("first"))
	w.restricted()
	w.release(map[string]any{
		"access": map[string]any{"workloads": []string{"deployment/shop"}},
		"config": map[string]any{"restarts": map[string]any{"quietPeriod": "2s"}, "leaderElection": map[string]any{"leaseDuration": "4s"}},
	})
	w.managed("five", "v0: shop/v0\nv1: shop/v1\nv2: shop/v2\nv3: shop/v3\nv4: shop/v4\n",
		map[string]string{"conjur.org/restart-workloads": "deployment/shop"})
	want := func(text string) map[string]string {
		return map[string]string{"v0": text, "v1": text, "v2": text, "v3": text, "v4": text}
	}
	w.awaitSecret("five", want("first"))
	w.deployment("shop", "five")
	w.rolledOut("shop", "first")
	before := w.revisions("shop")
	for i, text := range []string{"second", "third"} {
		w.set(five(text))
		w.awaitSecret("five", want(text))
		w.rolledOut("shop", text)
		if n := w.revisions("shop") - before; n != i+1 {
			t.Errorf("%d rollouts after %d rotations", n, i+1)
		}
	}
	syncer := w.podOf("app.kubernetes.io/name=syncer")
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		syncer.ready() // the first process of a container misses a signal that comes too early
		syncer.signal("syncer", signal)
		syncer.awaitRestarts("syncer", i+1)
		syncer.noRollout("shop")
	}
	syncer.ready()
	syncer.delete()
	w.podOf("app.kubernetes.io/name=syncer").noRollout("shop")
	w.set(five("fourth"))
	w.rolledOut("shop", "fourth")
	if n := w.revisions("shop") - before; n != 3 {
		t.Errorf("%d rollouts after 3 rotations, while Syncer was killed, ended and replaced", n)
	}
}

// deployment makes a Deployment whose Pods have a Secret as their environment.
func (w *world) deployment(name, secret string) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	optional := true
	_, err := client.AppsV1().Deployments(w.namespace).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(10001)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: "app", Image: appImage, Args: []string{"run"},
						EnvFrom:         []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: &optional}}},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					}},
				},
			},
		},
	}, metav1.CreateOptions{})
	w.check(err)
}

// rolledOut waits until the Deployment's only Pod has v0 in its environment.
func (w *world) rolledOut(name, text string) {
	w.t.Helper()
	w.eventually("Pod of "+name+" with "+text, func() bool {
		list, err := client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		w.check(err)
		if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil {
			return false
		}
		p := &pod{world: w, name: list.Items[0].Name}
		got, err := p.exec("app", "/app", "env", "v0")
		return err == nil && strings.TrimSpace(got) == text
	})
}

// noRollout waits until Syncer leads, and then longer than the quiet period. A rollout that
// Syncer's start causes would have begun by then.
func (p *pod) noRollout(name string) {
	p.t.Helper()
	before := p.revisions(name)
	p.awaitLog("syncer", "Leading")
	since := time.Now()
	p.eventually("seconds without a rollout", func() bool { return time.Since(since) > 5*time.Second })
	if n := p.revisions(name); n != before {
		p.t.Errorf("%d rollouts after a start of Syncer", n-before)
	}
}

// revisions returns how many ReplicaSets the Deployment has had.
func (w *world) revisions(name string) int {
	w.t.Helper()
	list, err := client.AppsV1().ReplicaSets(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	w.check(err)
	return len(list.Items)
}

// example installs the chart's example with an application that reads dbFile, and returns
// its Pod. Without an interval, Syncer is an init container.
func (w *world) example(sidecar map[string]any, interval any) *pod {
	w.t.Helper()
	w.release(map[string]any{
		"shape": "example", "sidecar": sidecar,
		"serviceAccount": map[string]any{"create": false, "name": "app"},
		"example": map[string]any{"image": shellImage, "command": []string{"/app", "run", dbFile}, "annotations": map[string]any{
			"conjur.org/conjur-secrets.db":        "- user: shop/user\n- password: shop/password\n",
			"conjur.org/secret-file-format.db":    "json",
			"conjur.org/secrets-refresh-interval": interval,
		}},
	})
	return w.podOf("app.kubernetes.io/name=syncer")
}

// TestExampleOfTheChart in a namespace with restricted Pod Security: with a read-only root
// file system, without root and capabilities, as another user than the image's.
func TestExampleOfTheChart(t *testing.T) {
	t.Parallel()
	for form, sidecar := range map[string]map[string]any{
		"sidecar": {"mode": "sidecar"},
		"hook":    {"mode": "sidecar", "startup": "hook"},
		"init":    {"mode": "init"},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shop())
			w.restricted()
			var interval any = "1s"
			if form == "init" {
				interval = nil // takes the chart's own away
			}
			p := w.example(sidecar, interval)
			p.ready()
			p.startedWith(dbFile, db("first"))
			if form != "init" {
				w.set(map[string]string{"shop/password": "second"})
				p.awaitRestarts("app", 1)
				p.awaitFile(dbFile, db("second"))
			}
		})
	}
}
