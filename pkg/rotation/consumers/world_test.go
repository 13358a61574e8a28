package consumers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

const set = "apps/shop/jwt"

// world is a namespace with a workload, of which the test is the controller and
// the kubelet, and a set that is delivered to one Secret.
type world struct {
	*testing.T
	*kube.Client
	ns      string
	port    string
	next    byte             // the last byte of the next Pod's address
	secrets []rotation.Shown // that show the set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client, err := kube.Connect(kube.Config{Kubeconfig: cluster.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &world{T: t, Client: client, ns: cluster.Namespace(t), next: 2}
	cluster.Token(t, w.ns, "default")
	w.secrets = []rotation.Shown{{Namespace: w.ns, Name: "jwt", Step: 9}}
	return w
}

// consumers returns what is tested; Pods are looked at twice at once.
func (w *world) consumers(config consumers.Config) *consumers.Consumers {
	w.Helper()
	config.Set, config.Cluster, config.Now = set, w.Client, time.Now
	config.Again = time.Millisecond
	c, err := consumers.New(config)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// shop makes the Deployment shop. Its rollout is complete.
func (w *world) shop(replicas int32) {
	w.Helper()
	labels := map[string]string{"app": "shop"}
	d, err := w.Apps.Deployments(w.ns).Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	if _, err := w.Apps.Deployments(w.ns).UpdateStatus(w.Context(), d, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// pod makes a Pod, which runs on a node at that address.
func (w *world) pod(name, address string, change ...func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}},
	}
	if address == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	for _, f := range change {
		f(p)
	}
	status := p.Status
	p, err := w.Core.Pods(w.ns).Create(w.Context(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	p.Status = status
	if _, err := w.Core.Pods(w.ns).UpdateStatus(w.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	now := int64(0)
	if err := w.Core.Pods(w.ns).Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		w.Fatal(err)
	}
}

// app is an application in a Pod, which answers as keyset's handler.
type app struct {
	address string

	mu      sync.Mutex
	holding consumers.Holding
	asked   int
}

// app starts one, at an address of its own and the port of all others.
func (w *world) app(ids ...string) *app {
	w.Helper()
	a := &app{}
	a.has(ids...)
	for range 100 {
		a.address = fmt.Sprintf("127.0.0.%d", w.next)
		w.next++
		port := w.port
		if port == "" {
			port = "0"
		}
		l, err := net.Listen("tcp", net.JoinHostPort(a.address, port))
		if err != nil {
			continue
		}
		_, w.port, _ = net.SplitHostPort(l.Addr().String())
		server := httptest.NewUnstartedServer(a)
		server.Listener.Close()
		server.Listener = l
		server.Start()
		w.Cleanup(server.Close)
		return a
	}
	w.Fatal("no address is free")
	return nil
}

// has sets what it holds; the first id is the primary.
func (a *app) has(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holding = consumers.Holding{IDs: ids}
	if len(ids) > 0 {
		a.holding.Primary = ids[0]
	}
}

func (a *app) used(id string, ago int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holding.Used = map[string]int64{id: ago}
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if r.URL.Path != "/keys" || r.URL.Query().Get("set") != set {
		http.NotFound(w, r)
		return
	}
	json.NewEncoder(w).Encode(a.holding)
}

// The set in these tests: r1 was the primary before r2, and r3 is to come.
var (
	epoch = time.Now().Add(-time.Hour)
	parts = map[string]secret.Value{"key": secret.New([]byte("key"))}
)

func at(minute time.Duration) versions.Entry {
	return versions.Entry{At: epoch.Add(minute * time.Minute)}
}

// introduce returns a set in which r3 is accepted.
func introduce() (*versions.Document, versions.Version) {
	d := versions.New("us").Make("r2", parts, false, at(0)).Promote("r2", at(0)).Make("r3", parts, false, at(1))
	v, _ := d.Version("r3")
	return d, v
}

// leave returns a set in which r3 is the primary and r2 retiring.
func leave() (*versions.Document, versions.Version) {
	d, _ := introduce()
	d = d.Promote("r3", at(2))
	v, _ := d.Version("r2")
	return d, v
}

// gate is one of the two, with a set that waits for it.
type gate func(context.Context, *consumers.Consumers, []rotation.Shown) rotation.Answer

func introduced(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
	d, v := introduce()
	return c.Introduced(ctx, d, v, secrets)
}

func left(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
	d, v := leave()
	return c.Left(ctx, d, v, secrets)
}

// opens asks until the gate is open, and fails where it waits for more than time.
func (w *world) opens(c *consumers.Consumers, g gate) {
	w.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		a := g(w.Context(), c, w.secrets)
		if a.Open {
			return
		}
		if a.Until.IsZero() {
			w.Fatalf("the gate is shut: %s", a.Waits)
		}
		time.Sleep(time.Until(a.Until))
	}
	w.Fatal("the gate waits on and on")
}

// shut asks some times and returns what the gate waits for, which no clock
// brings.
func (w *world) shut(c *consumers.Consumers, g gate) rotation.Answer {
	w.Helper()
	var last rotation.Answer
	for range 3 {
		if last = g(w.Context(), c, w.secrets); last.Open || !last.Until.IsZero() {
			w.Fatalf("the gate is not shut: %+v", last)
		}
		time.Sleep(time.Millisecond)
	}
	return last
}

func (w *world) ask() consumers.Config {
	return consumers.Config{Ask: []string{"deployment/shop:" + w.port + "/keys"}}
}
