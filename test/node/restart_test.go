//go:build node

package node

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// five are values that change together.
func five(text string) map[string]string {
	values := map[string]string{}
	for i := range 5 {
		values["shop/v"+strconv.Itoa(i)] = text
	}
	return values
}

const (
	fiveFile  = secretsDir + "five.json"
	fiveNames = "- shop/v0\n- shop/v1\n- shop/v2\n- shop/v3\n- shop/v4\n"
)

func fiveText(text string) string {
	return strings.ReplaceAll(`{"v0":"X","v1":"X","v2":"X","v3":"X","v4":"X"}`, "X", text)
}

func fiveFiles(more ...string) map[string]string {
	annotations := files(append(more, "conjur-secrets.five", fiveNames, "secret-file-format.five", "json", "secrets-refresh-interval", "1s")...)
	delete(annotations, "conjur.org/conjur-secrets.db")
	delete(annotations, "conjur.org/secret-file-format.db")
	return annotations
}

// probes are the ways in which a liveness probe restarts the application.
var probes = map[string]func(*corev1.Pod){
	"script": func(p *corev1.Pod) { withShell(p); alive(p, script) },
	"binary": func(p *corev1.Pod) { withBinary(p); alive(p, "/tools/syncer", "probe", "unchanged") },
}

// withBinary copies Syncer's binary to where the application, which has no
// shell, finds it.
func withBinary(p *corev1.Pod) {
	mount := corev1.VolumeMount{Name: "tools", MountPath: "/tools"}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "tools", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	install := corev1.Container{Name: "install", Image: syncerImage, Args: []string{"install", "/tools"}, VolumeMounts: []corev1.VolumeMount{mount}}
	p.Spec.InitContainers = append([]corev1.Container{install}, p.Spec.InitContainers...)
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, mount)
}

// TestOneRestartForOneRotation of five values, whatever probe, users and
// folders; and none when Syncer is started again or killed, or its Pod is
// replaced.
func TestOneRestartForOneRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, five("first"))
	var pods []*pod
	specs := map[string]*corev1.Pod{}
	for probe, change := range probes {
		for _, c := range []struct {
			name, medium string
			user         int64
		}{{"memory", "Memory", 10001}, {"disk", "", 10001}, {"one-user", "Memory", 777}} {
			spec := w.documented(fiveFiles(), "run", fiveFile)
			change(spec)
			spec.Spec.Containers[0].SecurityContext.RunAsUser = &c.user
			for i := range spec.Spec.Volumes {
				if v := &spec.Spec.Volumes[i]; v.EmptyDir != nil && v.Name != "tools" {
					v.EmptyDir.Medium = corev1.StorageMedium(c.medium)
				}
			}
			name := probe + "-" + c.name
			specs[name] = spec
			pods = append(pods, w.start(name, spec))
		}
	}
	w.settled(0, pods...)
	w.set(five("second"))
	w.settled(1, pods...)
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, p := range pods {
			p.signal("syncer", signal)
		}
		for _, p := range pods {
			p.awaitRestarts("syncer", i+1)
		}
		w.settled(1, pods...)
	}
	w.set(five("third"))
	w.settled(2, pods...)
	for _, p := range pods {
		p.awaitFile(fiveFile, fiveText("third"))
		p.delete()
		w.start(p.name, specs[p.name])
	}
	w.settled(0, pods...)
}

// settled waits until the applications have run for some seconds, and thus many
// probes, after so many restarts each.
func (w *world) settled(restarts int, pods ...*pod) {
	w.t.Helper()
	var last string
	var since time.Time // of the last change that was seen
	w.eventually("applications that are no longer restarted", func() bool {
		now, done := "", true
		for _, p := range pods {
			c := container(p.get(), "app")
			now += fmt.Sprintf("%s: %d %v\n", p.name, c.RestartCount, c.State.Running != nil)
			done = done && c.State.Running != nil && int(c.RestartCount) >= restarts
		}
		if now != last {
			last, since = now, time.Now()
		}
		return done && time.Since(since) > 5*time.Second
	})
	for _, p := range pods {
		if n := p.restarts("app"); n != restarts {
			w.t.Errorf("Pod %s: the application was restarted %d times, want %d", p.name, n, restarts)
		}
	}
}

// TestSignalInASharedProcessNamespace reaches the application once for each
// rotation, and nothing else.
func TestSignalInASharedProcessNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, five("first"))
	spec := w.documented(fiveFiles("restart-app-signal", "SIGHUP"), "run", fiveFile)
	spec.Spec.ShareProcessNamespace = new(true)
	spec.Spec.Containers[0].SecurityContext.RunAsUser = new(int64(777)) // who may signal it
	p := w.start("shop", spec)
	p.ready()
	for i, text := range []string{"second", "third"} {
		w.set(five(text))
		p.eventually("signal", func() bool { return strings.Count(p.log("app"), "signal: SIGHUP") > i })
	}
	p.awaitFile(fiveFile, fiveText("third"))
	if log := p.log("app"); strings.Count(log, "signal: ") != 2 {
		t.Errorf("the application said\n%s", log)
	}
	if found := p.get(); container(found, "app").RestartCount+container(found, "syncer").RestartCount != 0 {
		t.Errorf("restarts:\n%s", p.described(t.Context()))
	}
}
