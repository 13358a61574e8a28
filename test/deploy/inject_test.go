package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	toolinjection "github.com/secretsync/syncer/pkg/tool/injection"
	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/proctest"
)

// injection is a release that adds Syncer to Pods with a label that no other test has,
// and a namespace under restricted Pod Security.
type injection struct {
	namespace, label string
	values           map[string]any
}

// inject installs such a release, and waits until its policies are in force. The values
// are added to the connection.
func inject(t *testing.T, values string) injection {
	t.Helper()
	ns := restricted(t)
	i := injection{ns, "test.example/" + ns, map[string]any{}}
	for _, text := range []string{connection + "shape: none", values} {
		if err := sigsyaml.Unmarshal([]byte(text), &i.values); err != nil {
			t.Fatal(err)
		}
	}
	own, _ := i.values["inject"].(map[string]any)
	i.values["inject"] = map[string]any{"enabled": true, "label": i.label}
	maps.Copy(i.values["inject"].(map[string]any), own)
	deploy.Connect(t, cluster.Config()).Install(t, i.release(t, "r"))
	i.inForce(t)
	return i
}

func (i injection) release(t *testing.T, name string) deploy.Release {
	t.Helper()
	text, err := sigsyaml.Marshal(i.values)
	if err != nil {
		t.Fatal(err)
	}
	return deploy.Release{Name: name, Namespace: i.namespace, Values: string(text)}
}

// inForce waits until both policies apply to a Pod: one changes it, and the other one
// refuses an unknown value of the label.
func (i injection) inForce(t *testing.T) {
	t.Helper()
	wrong := i.pod()
	wrong.Labels[i.label] = "yes"
	i.awaitSyncer(t, i.pod())
	proctest.Eventually(t, "a Pod that is refused", func() bool {
		warned := &warnings{}
		_, err := i.tryWith(t, wrong, warned)
		return err != nil || len(warned.texts) > 0
	})
}

// pod is an application's Pod with the label, which the restricted profile admits.
func (i injection) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "app-", Labels: map[string]string{i.label: "true"}, Annotations: map[string]string{
			"conjur.org/conjur-secrets.db": "- password: app/password\n",
		}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers:         []corev1.Container{confined("app")},
		},
	}
}

func confined(name string) corev1.Container {
	return corev1.Container{Name: name, Image: name, SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}
}

// try sends a Pod to the API server, which does not keep it.
func (i injection) try(t *testing.T, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return i.tryWith(t, pod, &warnings{})
}

func (i injection) tryWith(t *testing.T, pod *corev1.Pod, w *warnings) (*corev1.Pod, error) {
	t.Helper()
	return pods(t, i.namespace, w).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func isInjected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == "syncer" })
}

// handWritten is the Pod that a chart with Syncer's named templates renders from the same
// values (testdata/app).
func (i injection) handWritten(t *testing.T) *corev1.Pod {
	t.Helper()
	values := maps.Clone(i.values)
	delete(values, "inject")
	text, err := sigsyaml.Marshal(map[string]any{"syncer": values})
	if err != nil {
		t.Fatal(err)
	}
	chart := appChart(t)
	if err := os.Remove(filepath.Join(chart, "values.yaml")); err != nil {
		t.Fatal(err)
	}
	objects := deploy.Release{Name: "app", Namespace: i.namespace, Chart: chart, Values: string(text)}.Objects(t)
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(podOf(t, objects[0]).Object, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// without takes out of a Pod everything that the chart's templates added.
func without(pod *corev1.Pod) *corev1.Pod {
	bare := pod.DeepCopy()
	bare.Spec.InitContainers, bare.Spec.Volumes, bare.Spec.Containers[0].VolumeMounts = nil, nil, nil
	return bare
}

// TestInjectedPodIsTheOneOfTheTemplates: with any values, the label creates the same Pod as
// the named templates.
func TestInjectedPodIsTheOneOfTheTemplates(t *testing.T) {
	for name, values := range map[string]string{
		"as it is":   "",
		"hook":       "sidecar: {startup: hook}",
		"init":       "sidecar: {mode: init}",
		"in place":   "sidecar: {restartInPlace: true}",
		"ConfigMap":  "config: {conjur: {login: host/app}}\ncredentials: {connectConfigMap: connect}",
		"API key":    "credentials: {apiKey: {secretName: key}, certificate: {secretName: ca, key: own.pem}}",
		"no limit":   "sidecar: {resources: {limits: null}}",
		"templates":  "sidecar: {templatesConfigMap: templates, resources: {limits: {memory: 1.5Gi, cpu: 1}, requests: null}}",
		"token":      "credentials: {token: {audience: 'a \"quoted\" \\ one', expirationSeconds: 600}, certificate: {configMapName: ca}}",
		"audience":   `credentials: {token: {audience: "a: '\"b\n          expirationSeconds: 9"}}`,
		"numbers":    `{credentials: {apiKey: {secretName: "1", key: "2"}, certificate: {configMapName: "3", key: "4"}, connectConfigMap: "1e3"}, sidecar: {templatesConfigMap: "0"}}`,
		"a number":   `credentials: {token: {audience: "1"}, certificate: {secretName: "3", key: "4"}}`,
		"image":      `image: {repository: registry.example.com:5000/syncer, digest: "sha256:` + strings.Repeat("0", 64) + `", pullPolicy: Always}`,
		"authn-k8s":  `config: {conjur: {applianceUrl: "https://conjur", account: a, authnUrl: "https://conjur/authn-k8s/b", login: host/app}}`,
		"hard texts": `{extraArgs: ["--log-level=debug", 'a"b\c', "'); [] + ("], extraEnv: [{name: HARD, value: "line 1\nline 2\t<&>{{ }} ${x} $(MY_POD_NAME) \u2028 ü 🙂 ?:"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			i := inject(t, values)
			written := i.handWritten(t)
			i.assertSameAsWritten(t, written, without(written))
			written.Spec.Containers = append(written.Spec.Containers, confined("helper"))
			listed := without(written)
			listed.Annotations["conjur.org/inject-containers"] = "app"
			i.assertSameAsWritten(t, written, listed)
		})
	}
}

// TestModeOfAPodIsTheOneOfTheTemplates: the label init, and the annotation, have the effect
// of the value sidecar.mode.
func TestModeOfAPodIsTheOneOfTheTemplates(t *testing.T) {
	for mode, other := range map[string]string{"sidecar": "init", "init": "sidecar"} {
		i := inject(t, "sidecar: {startup: hook, mode: "+other+"}")
		i.values["sidecar"] = map[string]any{"startup": "hook", "mode": mode}
		written := i.handWritten(t)
		pod := without(written)
		pod.Annotations["conjur.org/container-mode"] = mode
		i.assertSameAsWritten(t, written, pod)
	}
}

// assertSameAsWritten checks that the label creates the hand-written Pod.
func (i injection) assertSameAsWritten(t *testing.T, written, pod *corev1.Pod) {
	t.Helper()
	want, err := i.try(t, written)
	if err != nil {
		t.Fatal(err)
	}
	pod.Labels[i.label] = "true"
	got, err := i.try(t, pod)
	if err != nil {
		t.Fatal(err)
	}
	assertSame(t, want.Spec, got.Spec)
	i.assertToolAdds(t, pod, got)
}

// assertToolAdds checks that the tool and the API server change a Pod alike.
func (i injection) assertToolAdds(t *testing.T, pod, want *corev1.Pod) {
	t.Helper()
	template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: *pod.Spec.DeepCopy()}
	if added, problems := i.sidecar(t).Add(&template); !added || len(problems) > 0 {
		t.Errorf("the tool adds nothing: %q", problems)
	}
	got, err := i.try(t, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})
	if err != nil {
		t.Fatal(err)
	}
	assertSame(t, want.Spec, got.Spec)
}

// sidecar is the tool's sidecar for the release's values.
func (i injection) sidecar(t *testing.T) *toolinjection.Sidecar {
	t.Helper()
	s, err := toolinjection.Render([]byte(i.release(t, "r").Values))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func assertSame(t *testing.T, want, got any) {
	t.Helper()
	var texts [2]string
	for i, v := range []any{want, got} {
		text, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Errorf("by the templates:\n%s\nby the label:\n%s", texts[0], texts[1])
	}
}

// appChart is a copy of testdata/app with Syncer's chart in it.
func appChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/app": dir, chartDir: filepath.Join(dir, "charts", "syncer")} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPodsThatDoNotAskForSyncer stay as they are.
func TestPodsThatDoNotAskForSyncer(t *testing.T) {
	i := inject(t, "")
	for name, change := range map[string]func(*corev1.Pod){
		"false":    func(p *corev1.Pod) { p.Labels[i.label] = "false" },
		"no label": func(p *corev1.Pod) { delete(p.Labels, i.label) },
		"an annotation only": func(p *corev1.Pod) {
			delete(p.Labels, i.label)
			p.Annotations[i.label] = "true"
		},
	} {
		pod := i.pod()
		change(pod)
		made, err := i.try(t, pod)
		if err != nil || isInjected(made) || len(made.Spec.Volumes) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
