package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/proctest"
)

// podKeys is an application in a Pod, which reads a Secret when its kubelet does.
type podKeys struct {
	mu      sync.Mutex
	ids     []string
	primary string
}

// follow takes what a Secret has now.
func (p *podKeys) follow(data map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = nil
	for name := range data {
		id, rest, _ := strings.Cut(name, ".")
		if id == "conjur-map" {
			continue
		}
		if p.ids = append(p.ids, id); strings.HasSuffix(rest, ".primary") {
			p.primary = id
		}
	}
}

func (p *podKeys) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"ids": p.ids, "primary": p.primary})
}

// A standalone process rotates a set of keys that it delivers: it waits for the
// Secret, and for the Pods, of which the test is the kubelet.
func TestAKeySetIsRotatedWhenThePodsHaveIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Server.Policy(`
- !variable jwt
- !variable jwt/control
- !permit { role: !host app, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control] }
`)
	pod := &podKeys{}
	address := proctest.FreeAddress(t)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(pod)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	ip, port, _ := net.SplitHostPort(address)
	w.runPod("shop", ip)
	plane.Bind(t, w.namespace, "syncer",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}})
	w.secret("jwt", nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(`"*": {keys: jwt}`) })
	w.settings = append(w.settings, fmt.Sprintf(`
rotation:
  interval: 1s
  perHour: 100
  sets:
  - set: jwt
    generate: {random: 32}
    every: 1s
    keep: 1s
    settle: 1s
    confirm: {ask: "deployment/shop:%s/keys"}
`, port))
	p := w.start()
	keys := func() (ids []string, primary string) {
		k := &podKeys{}
		k.follow(w.read("jwt").Data)
		slices.Sort(k.ids)
		return k.ids, k.primary
	}
	var first, second string
	proctest.Eventually(t, "two keys in the Secret", func() bool {
		ids, primary := keys()
		if len(ids) == 2 {
			first, second = ids[0], ids[1]
		}
		return second != "" && primary == first
	})
	proctest.Eventually(t, "word of the Pod that waits", func() bool {
		return len(p.Lines("1 of 1 Pods of deployment/shop", "shop-1: does not have "+second)) > 0
	})
	if _, primary := keys(); primary != first {
		t.Errorf("%s is the primary while the Pod does not have it", primary)
	}
	proctest.Eventually(t, "the first key is retired", func() bool {
		pod.follow(w.read("jwt").Data)
		ids, primary := keys()
		return primary != first && !slices.Contains(ids, first)
	})
	p.Stop()
}

// runPod makes a Deployment and its Pod, which runs at that address.
func (w *world) runPod(name, ip string) {
	w.Helper()
	labels := map[string]string{"app": name}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
	if _, err := plane.Apps.Deployments(w.namespace).Create(w.Context(), d, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	spec.NodeName = "node-1"
	pod, err := plane.Core.Pods(w.namespace).Create(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: labels}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}
	if _, err := plane.Core.Pods(w.namespace).UpdateStatus(w.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}
