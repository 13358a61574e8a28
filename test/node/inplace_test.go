//go:build node

package node

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// printing is an application's Pod whose image knows nothing of Syncer: it prints the variable
// password at its start. The label and the annotations do the rest.
func (w *world) printing(label string) *corev1.Pod {
	pod := w.labelled(label, "hold", "password")
	pod.Annotations = files("secrets-refresh-interval", "1s", "secret-file-format.db", "kubernetes-env", "inject-env.db", "password",
		"restart-app-in-place", "true", "restart-app-every", "1s")
	return pod
}

// awaitPrinted waits until the application that runs printed the password.
func (p *pod) awaitPrinted(password string) {
	p.t.Helper()
	p.eventually("Pod "+p.name+": "+password+" in the environment", func() bool { return p.log("app") == password+"\n" })
}

// TestRestartInPlaceGivesAnUnchangedApplicationNewVariables: the containers of the same Pod
// start again once for each change, with the new value in the environment.
func TestRestartInPlaceGivesAnUnchangedApplicationNewVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	p := w.start("shop", w.printing(w.injecting()))
	p.awaitPrinted("first")
	first := p.get()
	for _, value := range []string{"second", "third"} {
		w.set(map[string]string{"shop/password": value})
		p.awaitPrinted(value)
	}
	p.await("two restarts, and no more", func(found *corev1.Pod) bool {
		return container(found, "app").RestartCount == 2 && container(found, "syncer").RestartCount == 2
	})
	if found := p.get(); found.UID != first.UID || found.Status.PodIP != first.Status.PodIP {
		t.Errorf("another Pod: %s, %s", found.UID, found.Status.PodIP)
	}
}

// TestRestartInPlaceFailsNoJob of a single try: its application, ended by SIGTERM, runs again
// in the same Pod, and the Job completes.
func TestRestartInPlaceFailsNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	spec := w.printing(w.injecting())
	spec.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.BatchV1().Jobs(w.namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template(spec, "shop")}}, metav1.CreateOptions{})
	w.check(err)
	p := w.podOf("app=shop")
	p.awaitPrinted("first")
	w.set(map[string]string{"shop/password": "second"})
	p.awaitPrinted("second")
	p.await("one restart, which the status may show later", func(found *corev1.Pod) bool {
		app := container(found, "app")
		return app.RestartCount == 1 && app.State.Running != nil
	})
	if e := container(p.get(), "app").LastTerminationState.Terminated; e == nil || e.Reason != "RestartingAllContainers" {
		t.Errorf("the application ended as %+v", e)
	}
	job, err := client.BatchV1().Jobs(w.namespace).Get(t.Context(), "shop", metav1.GetOptions{})
	w.check(err)
	if job.Status.Failed != 0 || job.Status.Active != 1 {
		t.Errorf("the Job's status is %+v", job.Status)
	}
	p.signal("app", syscall.SIGTERM)
	w.awaitJob("shop", batchv1.JobComplete)
	if list, err := client.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=shop"}); err != nil || len(list.Items) != 1 {
		t.Errorf("the Job had %d Pods, %v", len(list.Items), err)
	}
}

// changesVariable says how many changes TestRestartInPlaceOutlivesKillsOnANode makes. Each one
// reaches eight Pods.
const changesVariable = "SYNCER_NODE_CHANGES"

// TestRestartInPlaceOutlivesKillsOnANode: whenever Syncer is killed after a change, the
// application gets the value, and there is at most one restart for each change.
func TestRestartInPlaceOutlivesKillsOnANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	label := w.injecting()
	changes := 2
	if n, err := strconv.Atoi(os.Getenv(changesVariable)); err == nil {
		changes = n
	}
	var pods []*pod
	for i := range 8 {
		pods = append(pods, w.start(fmt.Sprint("shop-", i), w.printing(label)))
	}
	for _, p := range pods {
		p.awaitPrinted("first")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for i := range changes {
		value := fmt.Sprint("value", i)
		w.set(map[string]string{"shop/password": value})
		var killed sync.WaitGroup
		for _, p := range pods {
			// A kubelet restarts a container after growing pauses.
			if random.IntN(max(2, changes/2)) == 0 {
				kills++
				moment := time.Duration(random.IntN(3000)) * time.Millisecond // any
				killed.Go(func() {
					time.Sleep(moment)
					p.kill("syncer")
				})
			}
		}
		killed.Wait()
		for _, p := range pods {
			p.awaitPrinted(value)
		}
	}
	t.Logf("%d changes in %d Pods, %d kills", changes, len(pods), kills)
	for _, p := range pods {
		if n := p.restarts("app"); n > changes {
			t.Errorf("Pod %s: %d restarts for %d changes", p.name, n, changes)
		}
	}
}

// kill kills the processes of a container, if it runs.
func (p *pod) kill(name string) {
	found, err := client.CoreV1().Pods(p.namespace).Get(p.t.Context(), p.name, metav1.GetOptions{})
	if err != nil || container(found, name).State.Running == nil {
		return
	}
	for _, pid := range p.running(container(found, name).ContainerID) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// BenchmarkRestartInPlace measures the time from a change to the application that printed the
// new value, with a refresh interval of a second. Trials are apart, so that none waits for
// the pause after another restart.
func BenchmarkRestartInPlace(b *testing.B) {
	w := newWorld(b, shop())
	w.restricted()
	p := w.start("shop", w.printing(w.injecting()))
	p.awaitPrinted("first")
	var took []float64
	for b.Loop() {
		time.Sleep(21 * time.Second)
		value := fmt.Sprint("value", len(took))
		began := time.Now()
		w.set(map[string]string{"shop/password": value})
		p.awaitPrinted(value)
		took = append(took, time.Since(began).Seconds())
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "s/median")
	b.ReportMetric(took[0], "s/fastest")
	b.ReportMetric(took[len(took)-1], "s/slowest")
	b.ReportMetric(0, "ns/op")
}
