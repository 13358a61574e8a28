package deploy_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotate returns a change of a Pod's annotation.
func annotate(name, value string) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) { p.Annotations["conjur.org/"+name] = value }
}

// labelled returns a change of the value of the label.
func labelled(value string) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, label string) { p.Labels[label] = value }
}

// mounting returns a change after which the container app has a volume at a path.
func mounting(path string) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) {
		p.Spec.Volumes = append(p.Spec.Volumes, emptyVolume("own"))
		c := &p.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "own", MountPath: path})
	}
}

// owned returns a change that makes a Pod one of a workload.
// reading has a container, an init container if it is not app, mount one of Syncer's volumes.
func reading(volume, name string, readOnly bool) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) {
		mount := corev1.VolumeMount{Name: volume, MountPath: "/own", SubPath: "a", ReadOnly: readOnly}
		if name != "app" {
			c := confined(name)
			c.VolumeMounts = append(c.VolumeMounts, mount)
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			return
		}
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, mount)
	}
}

func owned(kind string, more func(*corev1.PodSpec)) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "app", UID: "1", Controller: new(true), BlockOwnerDeletion: new(true)}}
		more(&p.Spec)
	}
}

func emptyVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func all(changes ...func(*corev1.Pod, string)) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, label string) {
		for _, change := range changes {
			change(p, label)
		}
	}
}

func nothing(*corev1.Pod, string) {}

func ownInit(p *corev1.Pod, _ string) {
	p.Spec.InitContainers = []corev1.Container{confined("migrate"), confined("second")}
}

func windows(p *corev1.Pod, _ string) {
	p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
	p.Spec.SecurityContext.SeccompProfile, p.Spec.Containers[0].SecurityContext = nil, nil
}

func helper(p *corev1.Pod, _ string) {
	p.Spec.Containers = append(p.Spec.Containers, confined("helper"))
}

// accepted are shapes of Pods that get Syncer, and the containers that see the secrets.
var accepted = map[string]struct {
	change  func(*corev1.Pod, string)
	readers string // by name; default: app
	init    bool   // delivered once
	folder  string // default: /conjur/secrets
}{
	"bare":                {change: nothing},
	"own init containers": {change: ownInit},
	"own native sidecar": {change: func(p *corev1.Pod, _ string) {
		c := confined("proxy")
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = []corev1.Container{c}
	}},
	"own volumes and mounts":   {change: mounting("/var/data")},
	"a mount above":            {change: mounting("/conjur")},
	"a mount beside":           {change: mounting("/conjur/secrets-of-mine")},
	"several containers":       {change: helper, readers: "app helper"},
	"one of several":           {change: all(helper, annotate("inject-containers", "helper")), readers: "helper"},
	"listed twice with spaces": {change: all(helper, annotate("inject-containers", " app ,app, ,helper")), readers: "app helper"},
	"a listed init container":  {change: all(ownInit, annotate("inject-containers", "second,app")), readers: "second app"},
	"an empty list":            {change: all(helper, annotate("inject-containers", "")), readers: "app helper"},
	"20 containers": {change: func(p *corev1.Pod, _ string) {
		for n := range 19 {
			c := confined(fmt.Sprint("c", n))
			if n%2 == 0 {
				p.Spec.Volumes = append(p.Spec.Volumes, emptyVolume(fmt.Sprint("v", n)))
				c.VolumeMounts = []corev1.VolumeMount{{Name: fmt.Sprint("v", n), MountPath: "/data"}}
			}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}, readers: "app c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11 c12 c13 c14 c15 c16 c17 c18"},
	"the label init":         {change: labelled("init"), init: true},
	"the mode init":          {change: annotate("container-mode", "init"), init: true},
	"the mode and the label": {change: all(labelled("init"), annotate("container-mode", "init")), init: true},
	"a restart in place":     {change: annotate("restart-app-in-place", "true")},
	"no restart in place":    {change: all(labelled("init"), annotate("restart-app-in-place", "true")), init: true},
	"the mode sidecar":       {change: annotate("container-mode", "sidecar")},
	"an empty mode":          {change: annotate("container-mode", "")},
	"another folder":         {change: annotate("inject-folder", "/etc/shop/.secrets_2-a"), folder: "/etc/shop/.secrets_2-a"},
	"a folder below /opt":    {change: annotate("inject-folder", "/opt/shop"), folder: "/opt/shop"},
	"a folder below /run":    {change: annotate("inject-folder", "/run/shop"), folder: "/run/shop"},
	"a folder like /root":    {change: annotate("inject-folder", "/rootless"), folder: "/rootless"},
	"an own read-only mount": {change: all(ownInit, reading("conjur-secrets", "wait", true))},
	"an empty folder":        {change: annotate("inject-folder", "")},
	"another user":           {change: func(p *corev1.Pod, _ string) { p.Spec.SecurityContext.RunAsUser = new(int64(1000)) }},
	"of a Deployment":        {change: owned("ReplicaSet", func(*corev1.PodSpec) {})},
	"of a Job":               {change: owned("Job", func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever })},
	"of a CronJob":           {change: owned("Job", func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyOnFailure })},
	"of a StatefulSet":       {change: owned("StatefulSet", func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "app-0", "app" })},
	"of a DaemonSet": {change: owned("DaemonSet", func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		s.NodeName = "node"
	})},
}

// refused are shapes of Pods that are rejected, and words of the message.
var refused = map[string]struct {
	change func(*corev1.Pod, string)
	want   []string
}{
	"a container syncer":       {func(p *corev1.Pod, _ string) { p.Spec.Containers = append(p.Spec.Containers, confined("syncer")) }, []string{"already has a container syncer"}},
	"an init container syncer": {func(p *corev1.Pod, _ string) { p.Spec.InitContainers = []corev1.Container{confined("syncer")} }, []string{"already has a container syncer"}},
	"a volume podinfo":         {func(p *corev1.Pod, _ string) { p.Spec.Volumes = []corev1.Volume{emptyVolume("podinfo")} }, []string{"already has a volume podinfo"}},
	"two volumes": {func(p *corev1.Pod, _ string) {
		p.Spec.Volumes = []corev1.Volume{emptyVolume("conjur-secrets"), emptyVolume("conjur-token")}
	}, []string{"volume conjur-secrets", "volume conjur-token"}},
	"a mount there":             {mounting("/conjur/secrets"), []string{"move the mounts in /conjur/secrets or /conjur/status of app"}},
	"with a slash":              {mounting("/conjur/secrets/"), []string{"move the mounts"}},
	"in another notation":       {mounting("//conjur/./secrets//"), []string{"move the mounts"}},
	"without a slash":           {mounting("conjur/secrets"), []string{"move the mounts"}},
	"a mount below":             {mounting("/conjur/secrets/mine"), []string{"move the mounts"}},
	"a mount of the status":     {mounting("/conjur/status"), []string{"move the mounts in /conjur/secrets or /conjur/status of app"}},
	"a mount in another folder": {all(annotate("inject-folder", "/etc/shop"), mounting("/etc/shop")), []string{"move the mounts in /etc/shop or"}},
	"the label yes":             {labelled("yes"), []string{`to "true", "init" or "false"`}},
	"the label True":            {labelled("True"), []string{`to "true", "init" or "false"`}},
	"an empty label":            {labelled(""), []string{`to "true", "init" or "false"`}},
	"the mode standalone":       {annotate("container-mode", "standalone"), []string{"container-mode to sidecar or init"}},
	"the mode application":      {annotate("container-mode", "application"), []string{"container-mode to sidecar or init"}},
	"two modes":                 {all(labelled("init"), annotate("container-mode", "sidecar")), []string{"remove one of them"}},
	"a relative folder":         {annotate("inject-folder", "secrets"), []string{"inject-folder to an absolute path"}},
	"a folder up":               {annotate("inject-folder", "/etc/../conjur"), []string{"inject-folder to an absolute path"}},
	"the folder ..":             {annotate("inject-folder", "/.."), []string{"inject-folder to an absolute path"}},
	"the root":                  {annotate("inject-folder", "/"), []string{"inject-folder to an absolute path"}},
	"two slashes":               {annotate("inject-folder", "/etc//a"), []string{"inject-folder to an absolute path"}},
	"a slash at the end":        {annotate("inject-folder", "/etc/a/"), []string{"inject-folder to an absolute path"}},
	"a colon":                   {annotate("inject-folder", "/etc/a:b"), []string{"inject-folder to an absolute path"}},
	"a line break":              {annotate("inject-folder", "/etc/a\n"), []string{"inject-folder to an absolute path"}},
	"a variable":                {annotate("inject-folder", "/etc/$(HOME)"), []string{"inject-folder to an absolute path"}},
	"the end of a literal":      {annotate("inject-folder", `/a"), "name": dyn("podinfo`), []string{"inject-folder to an absolute path"}},
	"a long folder":             {annotate("inject-folder", "/"+strings.Repeat("a", 256)), []string{"inject-folder to an absolute path"}},
	"a folder of the system":    {annotate("inject-folder", "/etc"), []string{"not a folder of the system"}},
	"programs":                  {annotate("inject-folder", "/usr/bin"), []string{"not a folder of the system"}},
	"the libraries' parent":     {annotate("inject-folder", "/usr"), []string{"not a folder of the system"}},
	"below programs":            {annotate("inject-folder", "/usr/local/bin/a"), []string{"not a folder of the system"}},
	"root's home":               {annotate("inject-folder", "/root/.aws"), []string{"not a folder of the system"}},
	"the token's folder":        {annotate("inject-folder", "/var/run/secrets/kubernetes.io/serviceaccount"), []string{"not a folder of the system"}},
	"above the token's folder":  {annotate("inject-folder", "/run/secrets"), []string{"not a folder of the system"}},
	"authorities":               {annotate("inject-folder", "/etc/ssl/certs"), []string{"not a folder of the system"}},
	"a file of the kubelet":     {annotate("inject-folder", "/etc/resolv.conf"), []string{"not a folder of the system"}},
	"a writable mount":          {reading("conjur-secrets", "app", false), []string{"set readOnly: true for the mounts of Syncer's volumes in app"}},
	"of a container not chosen": {all(annotate("inject-containers", "app"), reading("conjur-secrets", "wait", false)), []string{"Syncer's volumes in wait"}},
	"of the token":              {reading("conjur-token", "app", false), []string{"Syncer's volumes in app"}},
	"in the kernel's files":     {annotate("inject-folder", "/proc/self"), []string{"not a folder of the system"}},
	"a mount with dots":         {mounting("/var/../conjur/secrets"), []string{"get the secrets without .."}},
	"a Windows Pod":             {windows, []string{"the Pod is for Windows"}},
	"a Windows node": {func(p *corev1.Pod, _ string) {
		p.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"}
	}, []string{"the Pod is for Windows"}},
	"the status folder":        {annotate("inject-folder", "/conjur/status/a"), []string{"outside /conjur/status"}},
	"above the status folder":  {annotate("inject-folder", "/conjur"), []string{"outside /conjur/status"}},
	"an unknown container":     {annotate("inject-containers", "app,ap"), []string{"lists a container that the Pod does not have"}},
	"no name in the list":      {annotate("inject-containers", " , "), []string{"lists a container that the Pod does not have"}},
	"the end of an expression": {annotate("inject-containers", "app\")] + [JSONPatch{op: \"remove\", path: \"/spec\"}] //\n"), []string{"lists a container that the Pod does not have"}},
	"an unknown annotation":    {annotate("inject-container", "app"), []string{"only conjur.org/inject-containers, conjur.org/inject-folder and conjur.org/inject-env.GROUP exist"}},
	"variables of no group":    {annotate("inject-env.db", "A"), []string{"secret-file-format to kubernetes-env, for the variables of db"}},
	"in another format":        {all(withEnv("db", "A"), withEnv("x", "B"), annotate("secret-file-format.db", "dotenv"), annotate("secret-file-format.x", "")), []string{"for the variables of db, x"}},
	"an own variable":          {all(withEnv("db", "URL"), withOwn("URL")), []string{"remove the variables of conjur.org/inject-env from env of app"}},
	"a variable twice":         {withEnv("db", "A,B,A"), []string{"each once, in conjur.org/inject-env of db"}},
	"a variable of two groups": {all(withEnv("db", "A"), withEnv("x", "B,A"), withEnv("y", "C")), []string{"each once, in conjur.org/inject-env of db, x"}},
	"a name with a space":      {withEnv("db", "A B"), []string{"list names of environment variables"}},
	"a name with a digit":      {withEnv("db", "A,1"), []string{"list names of environment variables"}},
	"a name with a line break": {withEnv("db", "A\nB"), []string{"list names of environment variables"}},
	"no names":                 {withEnv("db", " , "), []string{"list names of environment variables"}},
	"too long a list of names": {withEnv("db", strings.Repeat("A", 16385)), []string{"list names of environment variables"}},
	"the end of a patch":       {withEnv("db", "A\"}}}] + [JSONPatch{op: \"remove\", path: \"/spec\"}] //\n"), []string{"list names of environment variables"}},
	"a file outside":           {all(withEnv("db", "A"), annotate("secret-file-path.db", "a/../../b")), []string{"secret-file-path to a relative path without .. for the variables of db"}},
	"an absolute file":         {all(withEnv("db", "A"), annotate("secret-file-path.db", "/conjur/secrets/a")), []string{"secret-file-path to a relative path"}},
	"several":                  {all(labelled("yes"), annotate("inject-folder", "a"), mounting("/conjur/status")), []string{`to "true", "init"`, "absolute path", "move the mounts"}},
	"a line break and a mount": {all(annotate("inject-folder", "/etc/a\nb"), mounting("/conjur/secrets")), []string{"inject-folder to an absolute path", "move the mounts in /conjur/secrets"}},
	"many containers": {func(p *corev1.Pod, _ string) {
		p.Spec.Volumes = []corev1.Volume{emptyVolume("own")}
		for n := range 100 {
			c := confined(fmt.Sprint(strings.Repeat("c", 50), n))
			c.VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/conjur/secrets"}}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}, []string{"move the mounts", "99 other containers"}},
}

// TestPodsOfEveryShapeGetSyncer once, whole and first, and a copy of such a Pod stays as
// it is.
func TestPodsOfEveryShapeGetSyncer(t *testing.T) {
	i := inject(t, "")
	for name, c := range accepted {
		t.Run(name, func(t *testing.T) {
			pod := i.pod()
			c.change(pod, i.label)
			made, err := i.try(t, pod)
			if err != nil {
				t.Fatal(err)
			}
			syncer := made.Spec.InitContainers[0]
			if syncer.Name != "syncer" || (syncer.RestartPolicy == nil) != c.init {
				t.Errorf("the first container is %s, restarted: %v", syncer.Name, syncer.RestartPolicy)
			}
			want, folder := []string{"app"}, "/conjur/secrets"
			if c.readers != "" {
				want = strings.Fields(c.readers)
			}
			if c.folder != "" {
				folder = c.folder
			}
			if got := readers(made, folder); !slices.Equal(got, want) {
				t.Errorf("the secrets are at %s of %v, want %v", folder, got, want)
			}
			assertRestUnchanged(t, pod, made)
			i.assertToolAdds(t, pod, made)

			made.ResourceVersion, made.UID = "", ""
			again, err := i.try(t, made)
			if err != nil {
				t.Fatalf("a copy: %v", err)
			}
			assertSame(t, made.Spec, again.Spec)
		})
	}
}

// readers lists the containers, besides Syncer, that mount the secrets read-only at a
// folder, and the status beside it.
func readers(pod *corev1.Pod, folder string) (names []string) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		mounts := map[string]corev1.VolumeMount{}
		for _, m := range c.VolumeMounts {
			mounts[m.Name] = m
		}
		secrets, status := mounts["conjur-secrets"], mounts["conjur-status"]
		if c.Name != "syncer" && secrets.MountPath == folder && secrets.ReadOnly && status.MountPath == "/conjur/status" && !status.ReadOnly {
			names = append(names, c.Name)
		}
	}
	return names
}

// assertRestUnchanged checks that a Pod keeps everything that it had: its containers in
// their order, each with its mounts first, and its volumes.
func assertRestUnchanged(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	rest := after.DeepCopy()
	rest.Spec.InitContainers = slices.DeleteFunc(rest.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == "syncer" })
	rest.Spec.Volumes = rest.Spec.Volumes[:len(before.Spec.Volumes)]
	for i, lists := range [][2][]corev1.Container{{before.Spec.InitContainers, rest.Spec.InitContainers}, {before.Spec.Containers, rest.Spec.Containers}} {
		if len(lists[0]) != len(lists[1]) {
			t.Fatalf("list %d has %d containers, want %d", i, len(lists[1]), len(lists[0]))
		}
		for n, was := range lists[0] {
			is := lists[1][n]
			if is.Name != was.Name || !reflect.DeepEqual(slices.Concat(is.VolumeMounts[:len(was.VolumeMounts)]), was.VolumeMounts) {
				t.Errorf("container %s with %v, want %s with %v first", is.Name, is.VolumeMounts, was.Name, was.VolumeMounts)
			}
		}
	}
	for n, v := range before.Spec.Volumes {
		if rest.Spec.Volumes[n].Name != v.Name {
			t.Errorf("volume %s, want %s", rest.Spec.Volumes[n].Name, v.Name)
		}
	}
}

// TestPodsThatCannotGetSyncer are rejected with the reason, or stay unchanged with a warning
// that names it. They are never changed in part.
func TestPodsThatCannotGetSyncer(t *testing.T) {
	strict, lenient := inject(t, ""), inject(t, "inject: {failurePolicy: Ignore}")
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			strictly := strict.pod()
			c.change(strictly, strict.label)
			_, err := strict.try(t, strictly)
			for _, words := range c.want {
				if err == nil || !strings.Contains(err.Error(), words) || strings.Count(err.Error(), "\n") > 0 {
					t.Errorf("%v, want %q", err, words)
				}
			}
			template := corev1.PodTemplateSpec{ObjectMeta: strictly.ObjectMeta, Spec: strictly.Spec}
			if added, problems := strict.sidecar(t).Add(&template); added || err != nil && !strings.HasSuffix(err.Error(), "Syncer cannot be added to the Pod: "+strings.Join(problems, "; ")) {
				t.Errorf("the tool says %q, the API server %v", problems, err)
			}

			pod, warned := lenient.pod(), &warnings{}
			c.change(pod, lenient.label)
			made, err := lenient.tryWith(t, pod, warned)
			delete(pod.Labels, lenient.label)
			plain, refused := lenient.try(t, pod)
			if refused != nil { // by others
				if err == nil {
					t.Errorf("admitted, but without the label: %v", refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			assertSame(t, plain.Spec, made.Spec)
			for _, words := range c.want {
				if !strings.Contains(strings.Join(warned.texts, " "), words) {
					t.Errorf("warned of %q, want %q", warned.texts, words)
				}
			}
		})
	}
}
