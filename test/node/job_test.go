//go:build node

package node

import (
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/deploy"
)

// TestJob: the chart's Job fills a Secret. Before the next upgrade a variable is revoked:
// the key is removed, and the Job fails with the reason after all its retries.
func TestJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	w.secret("db", "user: shop/user\npassword: shop/password\n")
	release := w.release(map[string]any{
		"shape": "job", "job": map[string]any{"backoffLimit": 1}, "config": map[string]any{
			"kubernetes": map[string]any{"secrets": []string{"db"}}, "refresh": nil,
			"retry": map[string]any{"limit": 1, "intervalSeconds": 1},
		},
	})
	w.awaitJob("syncer-1", batchv1.JobComplete)
	w.awaitSecret("db", map[string]string{"user": "anna", "password": "first"})
	if ended := w.endsOf("syncer-1"); len(ended) != 1 || ended[0].ExitCode != 0 {
		t.Errorf("the Job's Pods ended as %+v", ended)
	}

	w.load("- !policy\n  id: shop\n  body:\n  - !delete { record: !variable password }\n")
	release.Revision = 2
	cluster := deploy.Connect(t, plane.Config())
	for _, o := range release.Objects(t) {
		if o.GetKind() == "Job" {
			_, err := cluster.Create(t.Context(), w.namespace, o, false)
			w.check(err)
		}
	}
	w.awaitJob("syncer-2", batchv1.JobFailed)
	w.awaitSecret("db", map[string]string{"user": "anna", "password": ""})
	ended := w.endsOf("syncer-2")
	if len(ended) != 2 {
		t.Errorf("the Job had %d Pods", len(ended))
	}
	for _, e := range ended {
		if e.ExitCode != 1 || !strings.Contains(e.Message, "shop/password") {
			t.Errorf("a Pod of the Job ended with %d and the message %q", e.ExitCode, e.Message)
		}
	}
}

// awaitJob waits until a Job has ended.
func (w *world) awaitJob(name string, end batchv1.JobConditionType) {
	w.t.Helper()
	w.eventually("Job "+name+" "+string(end), func() bool {
		job, err := client.BatchV1().Jobs(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		w.check(err)
		for _, c := range job.Status.Conditions {
			if c.Type == end && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

// endsOf returns the end of Syncer's container in each Pod of a Job.
func (w *world) endsOf(job string) (ends []corev1.ContainerStateTerminated) {
	w.t.Helper()
	list, err := client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
	w.check(err)
	for _, p := range list.Items {
		if e := container(&p, "syncer").State.Terminated; e != nil {
			ends = append(ends, *e)
		}
	}
	return ends
}

// jobBesideASidecar makes a Job of one try, and returns its Pod.
func (w *world) jobBesideASidecar(args ...string) *pod {
	w.t.Helper()
	spec := w.documented(files("secrets-refresh-interval", "1s"), args...)
	spec.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.BatchV1().Jobs(w.namespace).Create(w.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{ObjectMeta: spec.ObjectMeta, Spec: spec.Spec}},
	}, metav1.CreateOptions{})
	w.check(err)
	return w.podOf("batch.kubernetes.io/job-name=shop")
}

// TestRevokedBesideAJob: the file is removed, and the sidecar exits with the reason and is
// restarted. The Job continues and completes.
func TestRevokedBesideAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	p := w.jobBesideASidecar("run", dbFile)
	p.startedWith(dbFile, db("first"))
	w.load("- !policy\n  id: shop\n  body:\n  - !delete { record: !variable password }\n")
	p.awaitRestarts("syncer", 1)
	if e := container(p.get(), "syncer").LastTerminationState.Terminated; e.ExitCode != 1 || !strings.Contains(e.Message, "shop/password") {
		t.Errorf("Syncer ended with %d and the message %q", e.ExitCode, e.Message)
	}
	if out, err := p.exec("app", "/app", "read", dbFile); err == nil {
		t.Errorf("the file is there: %s", out)
	}
	p.signal("app", syscall.SIGTERM)
	w.awaitJob("shop", batchv1.JobComplete)
	if n := p.restarts("app"); n != 0 {
		t.Errorf("the application was restarted %d times", n)
	}
}

// TestJobBesideASidecar completes, because the kubelet ends sidecars after all other
// containers.
func TestJobBesideASidecar(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	p := w.jobBesideASidecar("read", dbFile)
	w.awaitJob("shop", batchv1.JobComplete)
	p.awaitLog("app", db("first"))
	if ended := container(p.get(), "syncer").State.Terminated; ended == nil || ended.ExitCode != 0 {
		t.Errorf("Syncer ended with %+v", ended)
	}
}
