//go:build node

package node

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// injecting installs the chart's admission policy for a label that no other test has,
// and returns the label when the policy is in force.
func (w *world) injecting() (label string) {
	w.t.Helper()
	label = "test.example/" + w.namespace
	w.release(map[string]any{"shape": "none", "inject": map[string]any{"enabled": true, "label": label}})
	w.eventually("policy in force", func() bool {
		_, err := client.CoreV1().ServiceAccounts(w.namespace).Get(w.t.Context(), "app", metav1.GetOptions{})
		return err == nil && w.asAdmitted(w.labelled(label, "now")) != nil
	})
	return label
}

// asAdmitted returns a Pod as the API server would admit it, or nil if the Pod has no
// Syncer.
func (w *world) asAdmitted(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	pod = pod.DeepCopy()
	pod.GenerateName = "try-"
	made, err := client.CoreV1().Pods(w.namespace).Create(w.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || len(made.Spec.InitContainers) == 0 {
		return nil
	}
	return made
}

// labelled is an application's Pod with only the label and the annotations. Restricted Pod
// Security admits it.
func (w *world) labelled(label string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "true"}, Annotations: files("secrets-refresh-interval", "1s")},
		Spec: corev1.PodSpec{
			ServiceAccountName:            "app",
			TerminationGracePeriodSeconds: new(int64(5)),
			SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "app", Image: appImage, Args: args,
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(10001)), AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

// template is the Pod's, for a workload that finds its Pods by a label.
func template(pod *corev1.Pod, app string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: *pod.ObjectMeta.DeepCopy(), Spec: pod.Spec}
	t.Labels = maps.Clone(t.Labels)
	t.Labels["app"] = app
	return t
}

// TestLabelledWorkloadsGetTheirSecrets: Pods of a Deployment, a StatefulSet and a DaemonSet
// receive them under restricted Pod Security, and also a rotated value.
func TestLabelledWorkloadsGetTheirSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	label := w.injecting()
	spec := w.labelled(label, "run", dbFile)
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	apps := client.AppsV1()
	_, err := apps.Deployments(w.namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "deployment"},
		Spec: appsv1.DeploymentSpec{Selector: selector("deployment"), Template: template(spec, "deployment")}}, metav1.CreateOptions{})
	w.check(err)
	_, err = apps.StatefulSets(w.namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "statefulset"},
		Spec: appsv1.StatefulSetSpec{Selector: selector("statefulset"), Template: template(spec, "statefulset")}}, metav1.CreateOptions{})
	w.check(err)
	_, err = apps.DaemonSets(w.namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemonset"},
		Spec: appsv1.DaemonSetSpec{Selector: selector("daemonset"), Template: template(spec, "daemonset")}}, metav1.CreateOptions{})
	w.check(err)
	var started []*pod
	for _, app := range []string{"deployment", "statefulset", "daemonset"} {
		p := w.podOf("app=" + app)
		p.ready()
		p.startedWith(dbFile, db("first"))
		started = append(started, p)
		if !slices.ContainsFunc(p.get().Spec.InitContainers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
		}) {
			t.Errorf("the token for the API server is missing in Syncer's container of the %s, which a hand-written one has", app)
		}
	}
	w.set(map[string]string{"shop/password": "second"})
	for _, p := range started {
		p.awaitFile(dbFile, db("second"))
		if n := p.restarts("syncer") + p.restarts("app"); n != 0 {
			t.Errorf("Pod %s: %d restarts", p.name, n)
		}
	}
}

// TestLabelledJobsComplete, also those of a CronJob: the kubelet ends sidecars after all
// other containers, and an init container ends by itself.
func TestLabelledJobsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	label := w.injecting()
	pod := w.labelled(label, "read", dbFile)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	once := pod.DeepCopy()
	once.Labels[label] = "init"
	delete(once.Annotations, "conjur.org/secrets-refresh-interval") // an init container cannot refresh
	for name, pod := range map[string]*corev1.Pod{"sidecar": pod, "init": once} {
		_, err := client.BatchV1().Jobs(w.namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template(pod, name)}}, metav1.CreateOptions{})
		w.check(err)
	}
	_, err := client.BatchV1().CronJobs(w.namespace).Create(t.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cron"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template(pod, "cron")}}}}, metav1.CreateOptions{})
	w.check(err)
	for _, name := range []string{"sidecar", "init"} {
		w.awaitJob(name, batchv1.JobComplete)
		w.podOf("app="+name).awaitLog("app", db("first"))
	}
	w.eventually("a Job of the CronJob that is complete", func() bool {
		jobs, err := client.BatchV1().Jobs(w.namespace).List(t.Context(), metav1.ListOptions{})
		w.check(err)
		return slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool {
			return strings.HasPrefix(j.Name, "cron-") && j.Status.Succeeded > 0
		})
	})
}

// TestLabelledJobsGetVariables: the kubelet reads them from the group's file as they are, also
// for an init container, and own variables can refer to them.
func TestLabelledJobsGetVariables(t *testing.T) {
	t.Parallel()
	const password = "a \"$(user)\" `b` \\\n#c=\td ü"
	w := newWorld(t, map[string]string{"shop/user": "anna", "shop/password": password})
	w.restricted()
	label := w.injecting()
	pod := w.labelled(label, "env", "password", "URL")
	pod.Annotations = files("secrets-refresh-interval", "1s", "secret-file-format.db", "kubernetes-env", "inject-env.db", "user, password", "inject-containers", "first, app")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	app := &pod.Spec.Containers[0]
	app.Env = []corev1.EnvVar{{Name: "URL", Value: "db://$(user)"}}
	first := app.DeepCopy()
	first.Name = "first"
	pod.Spec.InitContainers = []corev1.Container{*first}
	_, err := client.BatchV1().Jobs(w.namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "env"},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template(pod, "env")}}, metav1.CreateOptions{})
	w.check(err)
	w.awaitJob("env", batchv1.JobComplete)
	for _, container := range []string{"first", "app"} {
		w.podOf("app=env").awaitLog(container, password+"\ndb://anna\n")
	}
}

// TestTypesOfPoliciesAreRight: the controller that compares the chart's expressions with the
// types of the API reports no warning. It does not check variables; the tests on the API
// server do.
func TestTypesOfPoliciesAreRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	r := w.release(map[string]any{"inject": map[string]any{"enabled": true, "namespaces": true, "label": "test.example/" + w.namespace}})
	checked := 0
	for _, o := range r.Objects(t) {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		checked++
		var status admissionv1.ValidatingAdmissionPolicyStatus
		w.eventually("types of "+o.GetName(), func() bool {
			policy, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(w.t.Context(), o.GetName(), metav1.GetOptions{})
			w.check(err)
			status = policy.Status
			return status.TypeChecking != nil && status.ObservedGeneration == policy.Generation
		})
		for _, warning := range status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", o.GetName(), warning.FieldRef, warning.Warning)
		}
	}
	if checked < 2 {
		t.Errorf("%d policies, want those of the Deployment and of the injection", checked)
	}
}
