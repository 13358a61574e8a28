//go:build node

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// forms are the ways in which Syncer starts before its application.
var forms = map[string]func(*corev1.Pod){
	"init container":               asInitContainer,
	"sidecar with a startup probe": func(*corev1.Pod) {}, // the documented one
	"sidecar with a hook":          func(p *corev1.Pod) { asHook(p, "/syncer", "wait", "--timeout", "3s") },
	"container with a hook, as with the Secrets Provider": func(p *corev1.Pod) {
		asHook(p, "/usr/local/bin/conjur-secrets-provided.sh")
		asContainer(p)
	},
}

func asInitContainer(p *corev1.Pod) {
	s := &p.Spec.InitContainers[0]
	s.RestartPolicy, s.StartupProbe = nil, nil
	set(s, "CONTAINER_MODE", "init")
	delete(p.Annotations, "conjur.org/secrets-refresh-interval")
}

func asHook(p *corev1.Pod, command ...string) {
	s := &p.Spec.InitContainers[0]
	s.StartupProbe = nil
	s.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
}

// asContainer puts Syncer beside the application, as the first: the kubelet
// starts containers in their order, each after the hook of the one before.
func asContainer(p *corev1.Pod) {
	s := p.Spec.InitContainers[0]
	s.RestartPolicy = nil
	p.Spec.InitContainers = nil
	p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, s)
}

// set sets a variable of a container.
func set(c *corev1.Container, name, value string) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			c.Env[i].Value = value
			return
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

// TestApplicationNeverSeesAMissingOrPartialFile at its start: each form, a dozen
// times, while something else wants both processors.
func TestApplicationNeverSeesAMissingOrPartialFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	spin := corev1.Container{Image: appImage, Args: []string{"spin"}}
	first, second := spin, spin
	first.Name, second.Name = "one", "two"
	w.start("spin", &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{first, second}}}).ready()
	const times = 13
	for name, change := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := w.under(t)
			for i := range times {
				spec := w.documented(files("secrets-refresh-interval", "1s"), "run", dbFile)
				change(spec)
				p := w.start(fmt.Sprintf("%s-%d", label(name), i), spec)
				p.startedWith(dbFile, db("first"))
				p.abandon()
			}
		})
	}
}

// TestOutageAtTheStartDelaysTheApplication, says why, and leaves a Pod that can
// be deleted, also while a hook runs. What stands beside the application is in its way as long as its
// hook lasts, which here is for ever in the Pod that waits.
func TestOutageAtTheStartDelaysTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.outage(true)
	chart := w.example(map[string]any{"startup": "hook"}, "1s") // whose hook has a time-out of its own
	waiting, doomed := []*pod(nil), []*pod{chart}
	for name, change := range forms {
		spec := w.documented(files("secrets-refresh-interval", "1s", "retry-interval-sec", "1"), "run", dbFile)
		change(spec)
		beside := len(spec.Spec.InitContainers) == 0
		if beside {
			spec.Spec.Containers[0].Lifecycle.PostStart.Exec.Command = []string{"/syncer", "wait", "--timeout", "0"}
		}
		waiting = append(waiting, w.start("waits-"+label(name), spec))
		if beside {
			spec.Spec.Containers[0].Lifecycle.PostStart.Exec.Command = []string{"/syncer", "wait", "--timeout", "3s"}
		}
		doomed = append(doomed, w.start("doomed-"+label(name), spec))
	}
	for _, p := range doomed {
		p.awaitDescription(strings.TrimPrefix(w.address, "https://"))
	}
	for _, p := range waiting {
		if c := container(p.get(), "app"); c.State.Running != nil || c.RestartCount > 0 {
			t.Errorf("%s: the application runs without its file", p.name)
		}
	}
	chart.awaitHook()
	for _, p := range doomed {
		p.delete()
	}
	w.outage(false)
	for _, p := range waiting {
		p.startedWith(dbFile, db("first"))
	}
}

// awaitHook waits until Syncer's hook runs, of which the Pod's status says nothing.
func (p *pod) awaitHook() {
	p.t.Helper()
	uid := string(p.get().UID)
	p.eventually("hook", func() bool {
		processes, err := filepath.Glob("/proc/[0-9]*")
		p.check(err)
		return slices.ContainsFunc(processes, func(process string) bool {
			command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			cgroup, _ := os.ReadFile(filepath.Join(process, "cgroup"))
			return strings.HasPrefix(string(command), "/syncer\x00wait\x00") && strings.Contains(string(cgroup), uid)
		})
	})
}

// TestDeletionIsQuick in each form, while all goes well: within 3 seconds every
// container ends by itself, else the kubelet kills it, and its status says so.
func TestDeletionIsQuick(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	for name, change := range forms {
		spec := w.documented(files("secrets-refresh-interval", "1s"), "run", dbFile)
		change(spec)
		spec.Spec.TerminationGracePeriodSeconds = new(int64(3))
		p := w.start(label(name), spec)
		p.awaitLog("app", "started")
		last := p.delete()
		for _, c := range slices.Concat(last.Status.InitContainerStatuses, last.Status.ContainerStatuses) {
			if e := c.State.Terminated; e == nil || e.ExitCode != 0 {
				t.Errorf("%s: %s has ended as %+v", name, c.Name, e)
			}
		}
	}
}
