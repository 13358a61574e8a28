package consumers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/targets"
)

// Without a cluster there are URLs, and time since the write.
func TestConsumersByURL(t *testing.T) {
	w := &world{T: t, next: 2}
	a := w.app("r2")
	redirects := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	defer redirects.Close()
	config := consumers.Config{Set: set, Again: time.Millisecond, Ask: []string{"http://" + a.address + ":" + w.port + "/keys"}, Now: time.Now}
	c, err := consumers.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.says(w.shut(c, introduced).Waits, config.Ask[0]+": does not have r3")
	a.has("r2", "r3")
	if answer := introduced(t.Context(), c, nil); !answer.Open {
		t.Errorf("the gate is shut: %s", answer.Waits)
	}
	for at, says := range map[string]string{
		redirects.URL: "status 302",
		"http://" + a.address + ":" + w.port + "/other": "status 404",
		"http://127.0.0.254:" + w.port:                  "refused",
	} {
		config.Ask = []string{at}
		c, err := consumers.New(config)
		if err != nil {
			t.Fatal(err)
		}
		w.says(w.shut(c, introduced).Waits, at+": no answer", says)
	}
}

func TestWait(t *testing.T) {
	config := consumers.Config{Set: set, Wait: 2 * time.Hour, Now: func() time.Time { return epoch.Add(time.Hour) }}
	c, err := consumers.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if a := introduced(t.Context(), c, nil); a.Open || !strings.Contains(a.Waits, "2h0m0s for files to follow, of which 59m") {
		t.Errorf("the gate is %+v", a)
	}
	config.Wait = time.Minute
	if c, err = consumers.New(config); err != nil {
		t.Fatal(err)
	}
	if a := introduced(t.Context(), c, nil); !a.Open {
		t.Errorf("the gate is shut: %s", a.Waits)
	}
	secrets := []rotation.Shown{{Namespace: "shop", Name: "jwt", Step: 9}} // as of now
	if c, err = consumers.New(config); err != nil {
		t.Fatal(err)
	}
	if a := introduced(t.Context(), c, secrets); a.Open || time.Until(a.Until) < 30*time.Second {
		t.Errorf("the time does not count from when the Secret has it: %+v", a)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for says, config := range map[string]consumers.Config{
		"neither a URL nor the port":           {Ask: []string{"deployment/shop"}},
		"deployment/app:8080/keys":             {Ask: []string{"pod/shop:80/keys"}},
		"not a workload":                       {Restarted: []string{"pod/a"}},
		"is not a CronJob; write cronjob/NAME": {Migrate: "job/x"},
		"need a cluster; where there is n":     {Migrate: "cronjob/x"},
	} {
		if _, err := consumers.New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// A workload is restarted when each Pod notes the Secret's revision, or was made
// after it.
func TestRestarted(t *testing.T) {
	w := newWorld(t)
	w.shop(2)
	revise := func(number string, at time.Time) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "jwt", Annotations: map[string]string{
			targets.RevisionAnnotation: number, targets.RevisedAnnotation: at.UTC().Format(time.RFC3339),
		}}}
		api := w.Core.Secrets(w.ns)
		if _, err := api.Create(t.Context(), s, metav1.CreateOptions{}); err == nil {
			return
		}
		if _, err := api.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	noting := func(revision string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{notify.TemplateAnnotation("jwt"): revision}
		}
	}
	config := consumers.Config{Restarted: []string{"deployment/shop"}}
	c := w.consumers(config)
	w.says(w.shut(c, introduced).Waits, "secrets", "not found")
	revise("100", time.Now().Add(time.Hour)) // so no Pod is younger
	w.pod("shop-a", "127.0.0.254", noting("99"))
	w.pod("shop-b", "127.0.0.254", noting("100"))
	answer := w.shut(c, introduced)
	w.says(answer.Waits, "1 of 2 Pods of deployment/shop (shop-a: it began before the Secret changed)")
	if !answer.InUse {
		t.Error("the Pod is not said to be known")
	}
	w.remove("shop-a")
	w.pod("shop-c", "127.0.0.254", noting("101"))
	w.opens(c, introduced)

	w.pod("shop-d", "127.0.0.254") // restarted by somebody else
	w.says(w.shut(c, introduced).Waits, "1 of 3 Pods", "shop-d")
	revise("100", time.Now().Add(-time.Hour))
	w.opens(c, introduced)

	d, err := w.Apps.Deployments(w.ns).Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status.UpdatedReplicas = 1
	if _, err := w.Apps.Deployments(w.ns).UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.says(w.shut(c, introduced).Waits, "the rollout of deployment/shop is not complete")
	w.says(w.shut(w.consumers(consumers.Config{Restarted: []string{"statefulset/none"}}), introduced).Waits, "statefulset/none")
}

func TestAMigrationIsOneJobForEachVersion(t *testing.T) {
	w := newWorld(t)
	jobs := w.Batch.Jobs(w.ns)
	c := w.consumers(consumers.Config{Migrate: "cronjob/reencrypt"})
	w.says(w.shut(c, left).Waits, "reading cronjob/reencrypt of namespace "+w.ns, "not found")
	suspended := true
	_, err := w.Batch.CronJobs(w.ns).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "reencrypt"},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "reencrypt"}},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "x", Env: []corev1.EnvVar{{Name: "SYNCER_FROM", Value: "none"}, {Name: "WHAT", Value: "$(SYNCER_FROM)"}}}},
			}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.says(w.shut(c, left).Waits, "job/reencrypt-")
	w.says(w.shut(w.consumers(c.Config), left).Waits, "job/reencrypt-") // another leader
	list, err := jobs.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Jobs: %v", len(list.Items), err)
	}
	job := &list.Items[0]
	env := job.Spec.Template.Spec.Containers[0].Env
	want := []corev1.EnvVar{{Name: "SYNCER_SET", Value: set}, {Name: "SYNCER_FROM", Value: "r2"}, {Name: "SYNCER_TO", Value: "r3"}, {Name: "WHAT", Value: "$(SYNCER_FROM)"}}
	if len(env) != len(want) || env[0] != want[0] || env[1] != want[1] || env[2] != want[2] || env[3] != want[3] {
		t.Errorf("the environment is %+v", env)
	}
	if job.Labels["app"] != "reencrypt" || len(job.OwnerReferences) != 1 || job.OwnerReferences[0].Name != "reencrypt" {
		t.Errorf("the Job is %+v", job.ObjectMeta)
	}

	w.ends(job, batchv1.JobFailed)
	w.says(w.shut(c, left).Waits, "job/"+job.Name, "failed (Tested)", "delete it")
	background := metav1.DeletePropagationBackground
	if err := jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	w.shut(c, left)
	if job, err = jobs.Get(t.Context(), job.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	w.ends(job, batchv1.JobComplete)
	w.opens(c, left)
	if err := jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil { // as its time to live is over
		t.Fatal(err)
	}
	w.opens(c, left)
}

// ends has a Job end, as its controller does.
func (w *world) ends(job *batchv1.Job, how batchv1.JobConditionType) {
	w.Helper()
	now := metav1.Now()
	job.Status.StartTime = &now
	before := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobFailed: batchv1.JobFailureTarget, batchv1.JobComplete: batchv1.JobSuccessCriteriaMet}[how]
	for _, kind := range []batchv1.JobConditionType{before, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Tested", LastTransitionTime: now})
	}
	if how == batchv1.JobComplete {
		job.Status.CompletionTime = &now
	}
	if _, err := w.Batch.Jobs(w.ns).UpdateStatus(w.Context(), job, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestAnAnswerFromBeforeAStepCountsForNothing, even if it is less than a second old.
func TestAnAnswerFromBeforeAStepCountsForNothing(t *testing.T) {
	w := &world{T: t, next: 2}
	a := w.app("r3", "r2")
	c, err := consumers.New(consumers.Config{Set: set, Again: time.Hour, Ask: []string{"http://" + a.address + ":" + w.port + "/keys"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if answer := introduced(t.Context(), c, nil); !answer.Open {
		t.Errorf("the gate is shut: %s", answer.Waits)
	}
	a.has("r2", "r3")
	w.says(w.shut(c, left).Waits, "still uses r2")
}
