//go:build node

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/test/proctest"
)

// TestReactions to edits while Pods run: of an annotation, a mounted ConfigMap, and a
// labeled Secret.
func TestReactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.configMap("templates", map[string]string{"greeting.tpl": `hello {{ secret "user" }}`})
	spec := w.documented(files("secrets-refresh-interval", "1h", // so that nothing but the edit is followed
		"conjur-secrets.greeting", "- user: shop/user\n", "secret-file-format.greeting", "template"), "run")
	s := &spec.Spec.InitContainers[0]
	s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: "templates", MountPath: "/conjur/templates"})
	spec.Spec.Volumes = append(spec.Spec.Volumes, corev1.Volume{Name: "templates", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "templates"}},
	}})
	p := w.start("shop", spec)
	p.ready()
	const greeting = secretsDir + "greeting.out"
	p.awaitFile(greeting, "hello anna")

	edit := []byte(`{"metadata":{"annotations":{"conjur.org/secret-file-format.db":"dotenv"}}}`)
	_, err := client.CoreV1().Pods(w.namespace).Patch(t.Context(), p.name, types.MergePatchType, edit, metav1.PatchOptions{})
	w.check(err)
	p.awaitFile(secretsDir+"db.dotenv", "user=\"anna\"\npassword=\"first\"")

	edit = []byte(`{"data":{"greeting.tpl":"good day {{ secret \"user\" }}"}}`)
	_, err = client.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "templates", types.MergePatchType, edit, metav1.PatchOptions{})
	w.check(err)
	p.awaitFile(greeting, "good day anna")

	w.release(map[string]any{"config": map[string]any{"refresh": map[string]any{"interval": "1h"}}})
	w.managed("db", "user: shop/user\n", nil)
	w.awaitSecret("db", map[string]string{"user": "anna"})
	edit = []byte(`{"stringData":{"conjur-map":"login: shop/user\npassword: shop/password\n"}}`)
	_, err = client.CoreV1().Secrets(w.namespace).Patch(t.Context(), "db", types.MergePatchType, edit, metav1.PatchOptions{})
	w.check(err)
	w.awaitSecret("db", map[string]string{"user": "", "login": "anna", "password": "first"})
}

// large returns eight values with this total size, and largeNames is their list in an
// annotation.
func large(bytes int, letter string) map[string]string {
	values := map[string]string{}
	for i := range 8 {
		values[fmt.Sprintf("shop/large%d", i)] = strings.Repeat(letter, bytes/8)
	}
	return values
}

func largeNames() (list string) {
	for i := range 8 {
		list += fmt.Sprintf("- shop/large%d\n", i)
	}
	return list
}

// TestLargeValuesFitIntoTheDocumentedMemory at the start and after a rotation, although
// files in memory count too.
func TestLargeValuesFitIntoTheDocumentedMemory(t *testing.T) {
	t.Parallel()
	for _, megabytes := range []int{4, 8} {
		t.Run(fmt.Sprint(megabytes), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, large(8, "a"))
			w.set(large(megabytes<<20, "a"))
			p := w.start("shop", w.documented(files("conjur-secrets.db", largeNames(), "secrets-refresh-interval", "1s"), "watch", dbFile))
			p.ready()
			for _, letter := range []string{"b", "c"} {
				w.set(large(megabytes<<20, letter))
				p.eventually("file of "+letter, func() bool { return strings.Contains(p.rootFile("app", dbFile), letter+letter) })
			}
			if log := p.log("app"); strings.Contains(log, "torn") {
				t.Errorf("the application said\n%s", log)
			}
			if n := p.restarts("syncer"); n != 0 {
				t.Errorf("Syncer was restarted:\n%s", p.described(t.Context()))
			}
		})
	}
}

// rootFile reads a file as a container sees it, without the API server.
func (p *pod) rootFile(name, path string) string {
	p.t.Helper()
	return p.reader(name, path)()
}

// reader returns a function that reads the file repeatedly.
func (p *pod) reader(name, path string) func() string {
	p.t.Helper()
	pids := p.processes(name)
	return func() string {
		for _, pid := range pids {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", pid, path)); err == nil {
				return string(text)
			}
		}
		return ""
	}
}

// TestKilledWhileItWrites leaves no torn file, and the next start completes the write. The
// test kills Syncer when its temporary file appears. It repeats that until the file also
// exists afterwards, which shows that Syncer was killed during the write.
func TestKilledWhileItWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, large(8, "a")) // whose values are in a ConfigMap, which holds 1 MB
	w.set(large(2<<20, "a"))
	p := w.start("shop", w.documented(files("conjur-secrets.db", largeNames(), "secrets-refresh-interval", "1s"), "watch", dbFile))
	p.ready()
	folder := fmt.Sprintf("/proc/%d/root%s", p.processes("app")[0], secretsDir)
	caught := 0
	for kills := 1; kills <= 5 || caught == 0; kills++ {
		letter := string(rune('b' + kills%20))
		p.killAtWrite(folder, func() { w.set(large(2<<20, letter)) })
		if left, _ := filepath.Glob(folder + safefile.TempPrefix + "*"); left != nil {
			caught++
		}
		p.awaitRestarts("syncer", kills)
		p.eventually("file of "+letter, func() bool { return strings.Contains(p.rootFile("app", dbFile), letter+letter) })
	}
	t.Logf("killed %d times before the file was renamed", caught)
	if log := p.log("app"); strings.Contains(log, "torn") {
		t.Errorf("the application said\n%s", log)
	}
	if left, _ := filepath.Glob(folder + safefile.TempPrefix + "*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// killAtWrite kills Syncer when, after a change, a temporary file appears in a folder, and
// waits until it has ended.
func (p *pod) killAtWrite(folder string, change func()) {
	p.t.Helper()
	watcher, err := fsnotify.NewWatcher()
	p.check(err)
	defer watcher.Close()
	p.check(watcher.Add(folder))
	pids := p.processes("syncer")
	change()
	deadline := time.After(proctest.Patience)
	for writes := false; !writes; {
		select {
		case e := <-watcher.Events:
			writes = e.Has(fsnotify.Create) && strings.HasPrefix(filepath.Base(e.Name), safefile.TempPrefix)
		case <-deadline:
			p.t.Fatal("no temporary file")
		}
	}
	p.send(syscall.SIGKILL, pids)
	p.eventually("end of Syncer", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
}

// TestAPIServerAway for 22 seconds: files stay fresh all the time, Secrets are fresh again
// afterwards, and nothing restarts. The test runs alone, because it stops the API server for
// all.
func TestAPIServerAway(t *testing.T) {
	w := newWorld(t, shop())
	w.release(nil)
	w.managed("db", "user: shop/user\npassword: shop/password\n", nil)
	sidecar := w.start("shop", w.documented(files("secrets-refresh-interval", "1s"), "watch", dbFile))
	sidecar.ready()
	w.awaitSecret("db", map[string]string{"password": "first"})
	standalone := w.podOf("app.kubernetes.io/name=syncer")
	standalone.ready()
	set, read := w.setter(), sidecar.reader("app", dbFile)
	plane.StopAPIServer(t)
	for i, end := 0, time.Now().Add(22*time.Second); time.Now().Before(end); i++ {
		password := fmt.Sprintf("away%d", i)
		set(map[string]string{"shop/password": password})
		w.eventually("file with "+password, func() bool { return read() == db(password) })
	}
	plane.StartAPIServer(t)
	w.awaitSecret("db", map[string]string{"password": w.values["shop/password"]})
	for name, p := range map[string]*pod{"standalone": standalone, "sidecar": sidecar} {
		p.ready()
		if n := p.restarts("syncer"); n != 0 {
			t.Errorf("%s: Syncer was restarted:\n%s", name, p.described(t.Context()))
		}
	}
	restartKubelet(t) // else it looks again up to 50 seconds after the outage
}
