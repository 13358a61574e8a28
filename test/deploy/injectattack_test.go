package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// TestAppliedPodsKeepSyncer: also if the manifest without Syncer is applied again.
func TestAppliedPodsKeepSyncer(t *testing.T) {
	i := inject(t, "")
	i.account(t)
	pod := corev1apply.Pod("app", i.namespace).WithLabels(map[string]string{i.label: "true"}).WithSpec(corev1apply.PodSpec().
		WithSecurityContext(corev1apply.PodSecurityContext().WithRunAsNonRoot(true).WithSeccompProfile(corev1apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithServiceAccountName("default").
		WithContainers(corev1apply.Container().WithName("app").WithImage("app").WithSecurityContext(corev1apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithCapabilities(corev1apply.Capabilities().WithDrop("ALL")))))
	client := pods(t, i.namespace, &warnings{})
	for n := range 2 {
		got, err := client.Apply(t.Context(), pod, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
		if err != nil {
			t.Fatalf("applied %d times: %v", n, err)
		}
		if len(got.Spec.InitContainers) != 1 || len(got.Spec.Volumes) != 4 || len(readers(got, "/conjur/secrets")) != 1 {
			t.Errorf("applied %d times: %+v", n, got.Spec)
		}
	}
}

// TestOnlySyncerWritesToItsVolumes: also a Pod that has Syncer already gets no other writer,
// neither at its creation nor later.
func TestOnlySyncerWritesToItsVolumes(t *testing.T) {
	const reason = "set readOnly: true for the mounts of Syncer's volumes in "
	i := inject(t, "")
	i.account(t)
	whole, err := i.try(t, i.pod())
	if err != nil {
		t.Fatal(err)
	}
	whole.ResourceVersion, whole.UID = "", ""
	propagates := whole.DeepCopy()
	propagates.Spec.Containers[0].VolumeMounts[0].MountPropagation = new(corev1.MountPropagationHostToContainer)
	if _, err := i.try(t, propagates); err != nil {
		t.Errorf("a read-only mount with propagation: %v", err)
	}
	propagates.Spec.Containers[0].VolumeMounts[0].ReadOnly = false
	if _, err := i.try(t, propagates); err == nil || !strings.Contains(err.Error(), reason+"app") {
		t.Errorf("a writable mount of a Pod that has Syncer: %v", err)
	}

	client := pods(t, i.namespace, &warnings{})
	made, err := client.Create(t.Context(), i.pod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for readOnly, want := range map[bool]string{true: "", false: reason + "debug"} {
		debugged := made.DeepCopy()
		debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "debug", SecurityContext: confined("debug").SecurityContext, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			VolumeMounts: []corev1.VolumeMount{{Name: "conjur-token", MountPath: "/t", ReadOnly: true}, {Name: "conjur-secrets", MountPath: "/s", ReadOnly: readOnly}},
		}}}
		_, err = client.UpdateEphemeralContainers(t.Context(), made.Name, debugged, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("an ephemeral container, read-only: %v: %v", readOnly, err)
		}
	}
}

// TestHugePodsGetSyncerAsAWhole, or are refused: the API server limits the cost of
// expressions. The log shows the time.
func TestHugePodsGetSyncerAsAWhole(t *testing.T) {
	i := inject(t, "")
	listing := func(list string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations["conjur.org/inject-containers"] = list }
	}
	for name, change := range map[string]func(*corev1.Pod){
		"a container many times": listing(strings.Repeat("app,", 50_000)),
		"many others":            listing(strings.Repeat("a,", 100_000)),
		"many commas":            listing(strings.Repeat(",", 200_000)),
		"a long path": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{emptyVolume("own")}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/a" + strings.Repeat("/", 500_000)}}
		},
		"many mounts": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{emptyVolume("own")}
			for n := range 5000 {
				p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "own", MountPath: fmt.Sprint("/a/", n)})
			}
		},
		"200 containers":  func(p *corev1.Pod) { containers(200)(p, "") },
		"2000 containers": func(p *corev1.Pod) { containers(2000)(p, "") },
		"1000 variables":  func(p *corev1.Pod) { withEnv("db", numbered(1000))(p, "") },
		"many groups": func(p *corev1.Pod) {
			for n := range 1000 {
				withEnv(fmt.Sprint("g", n), fmt.Sprint("V", n))(p, "")
			}
		},
	} {
		pod := i.pod()
		change(pod)
		began := time.Now()
		made, err := i.try(t, pod)
		t.Logf("%s: %.1f s, %.100v", name, time.Since(began).Seconds(), err)
		if err == nil && len(readers(made, "/conjur/secrets")) != len(pod.Spec.Containers) {
			t.Errorf("%s: admitted without the secrets", name)
		}
	}
}

// TestInvalidPodsAreToldByTheAPIServer: its own error names the fault, not an error of the
// policy.
func TestInvalidPodsAreToldByTheAPIServer(t *testing.T) {
	i := inject(t, "")
	pod := i.pod()
	pod.Spec.Containers = nil
	if _, err := i.try(t, pod); err == nil || !strings.HasSuffix(err.Error(), "spec.containers: Required value") {
		t.Errorf("without containers: %v", err)
	}
}

// TestVariablesHaveABound: the API server limits the cost of expressions. Beyond the bound it
// says so, and the documentation repeats both.
func TestVariablesHaveABound(t *testing.T) {
	const exceeded = "actual cost limit exceeded"
	i := inject(t, "")
	for name, c := range map[string]struct {
		containers, variables int
		want                  string
	}{
		"in one":          {1, 400, ""},
		"in ten":          {10, 100, ""},
		"too many in one": {1, 1000, exceeded},
		"too many in ten": {10, 200, exceeded},
	} {
		pod := i.pod()
		containers(c.containers-1)(pod, "")
		withEnv("db", numbered(c.variables))(pod, "")
		if _, err := i.try(t, pod); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
