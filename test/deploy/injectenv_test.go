package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// withEnv names variables of a group, whose file has a format that the kubelet reads.
func withEnv(group, names string) func(*corev1.Pod, string) {
	return all(annotate("conjur-secrets."+group, "- DB_USER: app/user\n"), annotate("secret-file-format."+group, "kubernetes-env"), annotate("inject-env."+group, names))
}

// withOwn gives the container app a variable of its own.
func withOwn(name string) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: "$(DB_USER)"})
	}
}

// TestContainersGetVariablesFromFiles: each container that gets the secrets, and no other one,
// before its own variables. A copy of such a Pod stays as it is.
func TestContainersGetVariablesFromFiles(t *testing.T) {
	const user, password = "DB_USER=db.kubernetes-env", "DB_PASSWORD=db.kubernetes-env"
	i := inject(t, "")
	for name, c := range map[string]struct {
		change func(*corev1.Pod, string)
		want   map[string][]string // by container
	}{
		"one":                     {withEnv("db", "DB_USER"), map[string][]string{"app": {user}}},
		"several, with spaces":    {withEnv("db", " DB_USER ,,DB_PASSWORD\n"), map[string][]string{"app": {user, password}}},
		"before an own variable":  {all(withEnv("db", "DB_USER,DB_PASSWORD"), withOwn("URL")), map[string][]string{"app": {user, password, "URL"}}},
		"of two groups":           {all(withEnv("other", "X"), withEnv("db", "DB_USER")), map[string][]string{"app": {user, "X=other.kubernetes-env"}}},
		"a file":                  {all(withEnv("db", "DB_USER"), annotate("secret-file-path.db", "own/db.env")), map[string][]string{"app": {"DB_USER=own/db.env"}}},
		"a folder":                {all(withEnv("db", "DB_USER"), annotate("secret-file-path.db", "own/")), map[string][]string{"app": {"DB_USER=own/db.kubernetes-env"}}},
		"another mount":           {all(withEnv("db", "DB_USER"), annotate("inject-folder", "/etc/shop")), map[string][]string{"app": {user}}},
		"of an init container":    {all(ownInit, helper, withEnv("db", "DB_USER"), annotate("inject-containers", "second,app")), map[string][]string{"second": {user}, "app": {user}}},
		"of all containers":       {all(ownInit, helper, withEnv("db", "DB_USER")), map[string][]string{"app": {user}, "helper": {user}}},
		"delivered once":          {all(labelled("init"), withEnv("db", "DB_USER")), map[string][]string{"app": {user}}},
		"a name with all":         {withEnv("db", "-a._B0"), map[string][]string{"app": {"-a._B0=db.kubernetes-env"}}},
		"a reader of its own":     {all(ownInit, withEnv("db", "DB_USER"), reading("conjur-secrets", "wait", true)), map[string][]string{"app": {user}}},
		"an own file of a Pod":    {all(withEnv("db", "DB_USER"), ownFileKey), map[string][]string{"app": {user, "OWN=own.env"}}},
		"100 variables, 20 times": {all(withEnv("db", numbered(100)), containers(19)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := i.pod()
			c.change(pod, i.label)
			made, err := i.try(t, pod)
			if err != nil {
				t.Fatal(err)
			}
			got := variablesOf(made)
			for container, want := range c.want {
				if !slices.Equal(got[container], want) {
					t.Errorf("%s has %q, want %q", container, got[container], want)
				}
				delete(got, container)
			}
			if c.want != nil && len(got) > 0 {
				t.Errorf("others have variables: %q", got)
			}
			i.assertToolAdds(t, pod, made)

			made.ResourceVersion, made.UID = "", ""
			again, err := i.try(t, made)
			if err != nil {
				t.Fatalf("a copy: %v", err)
			}
			assertSame(t, made.Spec, again.Spec)

			made.Spec.Containers[0].Env = nil
			made.Spec.Containers = made.Spec.Containers[:1]
			if _, err := i.try(t, made); err == nil || !strings.Contains(err.Error(), "already has a container syncer") {
				t.Errorf("a Pod with the sidecar and without the variables: %v", err)
			}
		})
	}
}

// variablesOf lists the variables of each container besides Syncer, with their files.
func variablesOf(pod *corev1.Pod) map[string][]string {
	got := map[string][]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, e := range c.Env {
			text := e.Name
			if e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil && e.ValueFrom.FileKeyRef.Key == e.Name {
				text += "=" + e.ValueFrom.FileKeyRef.Path
			}
			if c.Name != "syncer" {
				got[c.Name] = append(got[c.Name], text)
			}
		}
	}
	return got
}

func ownFileKey(p *corev1.Pod, _ string) {
	p.Spec.Volumes = append(p.Spec.Volumes, emptyVolume("own"))
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "own", Path: "own.env", Key: "OWN"}}}}
}

func numbered(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("V", i))
	}
	return strings.Join(names, ",")
}

func containers(n int) func(*corev1.Pod, string) {
	return func(p *corev1.Pod, _ string) {
		for i := range n {
			p.Spec.Containers = append(p.Spec.Containers, confined(fmt.Sprint("c", i)))
		}
	}
}
