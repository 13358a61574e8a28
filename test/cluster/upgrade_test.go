//go:build upgrade

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

// previous is the commit of release 0.1.0.
const previous = "a18ea60"

// buildPrevious builds the previous release.
func buildPrevious(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	for _, args := range [][]string{{"clone", "-q", "--no-checkout", "../..", source}, {"-C", source, "checkout", "-q", "--detach", previous}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s; the clone must have the history of the previous release", args, err, out)
		}
	}
	path = filepath.Join(dir, "syncer")
	if err := gobuild.Build(path, source, "./cmd/syncer", "-trimpath"); err != nil {
		t.Fatal(err)
	}
	return path
}

// upgraded is a cluster with 200 Secrets, a rotated set, a Deployment and sidecars.
type upgraded struct {
	*world
	secrets    []string
	deployment func() map[string]string // the annotations of its Pods
	sidecars   []*shared.Pod            // each with a file app and a file all
}

func newUpgraded(t *testing.T) *upgraded {
	w := newWorld(t)
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 15s}}")
	w.settings = append(w.settings, "  stepsFile: "+filepath.Join(w.dir, "steps"), "restarts: {quietPeriod: 1s}")
	u := &upgraded{world: w}
	for i := range 200 {
		id, name := fmt.Sprintf("app/v%03d", i), fmt.Sprintf("s%03d", i)
		w.Variables(id)
		w.secret(name, map[string]string{"v": id}, func(s *corev1.Secret) {
			if i == 0 {
				s.Annotations["conjur.org/restart-workloads"] = "deployment/shop"
			}
		})
		u.secrets = append(u.secrets, name)
	}
	w.secret("keys", nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(`"*": {keys: jwt}`) })
	deployments := w.deployment("shop")
	u.deployment = func() map[string]string {
		d, err := deployments.Get(w.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Annotations
	}
	for _, format := range []string{"yaml", "directory", "template"} {
		pod := w.Pod(map[string]string{"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": "1s"})
		pod.Group("app", format, "app/v000", "app/v001")
		pod.Annotations["conjur-secrets.all"], pod.Annotations["secret-file-format.all"] = "- app/*", "json"
		pod.Annotations["secret-file-path.app"], pod.Annotations["secret-file-path.all"] = "app", "all"
		shared.Replace(w, pod.Path("templates", "app.tpl"), `{{ secret "v000" }} {{ secret "v001" }}`)
		pod.Annotate()
		u.sidecars = append(u.sidecars, pod)
	}
	return u
}

// state is what an upgrade must not change.
type state struct {
	versions map[string]string // of the Secrets
	pods     string            // the annotations of the Deployment's Pods
	files    map[string]string // of the sidecars: inode, time of change and content
}

func (u *upgraded) state() state {
	u.Helper()
	s := state{map[string]string{}, fmt.Sprint(u.deployment()), map[string]string{}}
	for _, name := range u.secrets {
		secret := u.read(name)
		if got, want := string(secret.Data["v"]), u.Value["app/v"+name[1:]]; got != want {
			u.Errorf("%s: its value is lost or wrong", name)
		}
		s.versions[name] = secret.ResourceVersion
	}
	for _, pod := range u.sidecars {
		if _, err := os.Stat(pod.Path("status", notify.UpdatedFile)); err == nil {
			u.Errorf("%s: the application was notified of a change", pod.Dir)
		}
		files, err := filepath.Glob(pod.Path("secrets", "*")) // also those that begin with a dot
		more, moreErr := filepath.Glob(pod.Path("secrets", "app", "*"))
		for _, file := range append(append(files, more...), pod.Path("status", notify.ProvidedFile)) {
			s.files[file] = u.file(file)
		}
		if err := errors.Join(err, moreErr); err != nil {
			u.Fatal(err)
		}
	}
	return s
}

// file describes a file or a folder, so that each change is seen.
func (u *upgraded) file(path string) string {
	u.Helper()
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil {
		u.Fatal(err)
	}
	content, _ := os.ReadFile(path) // a folder has none
	return fmt.Sprint(s.Ino, s.Mtim, s.Mode, s.Uid, s.Gid, content)
}

// compare reports what an upgrade has written.
func (u *upgraded) compare(how string, before state) {
	u.Helper()
	after := u.state()
	for name, version := range before.versions {
		if after.versions[name] != version {
			u.Errorf("%s: %s was written again", how, name)
		}
	}
	if before.pods != after.pods {
		u.Errorf("%s: the Deployment was restarted: %s, then %s", how, before.pods, after.pods)
	}
	if !maps.Equal(before.files, after.files) {
		for file := range before.files {
			if before.files[file] != after.files[file] {
				u.Errorf("%s: the sidecar has written %s again", how, file)
			}
		}
		u.Errorf("%s: the sidecars had %d files and have %d", how, len(before.files), len(after.files))
	}
}

// run runs a version until stop: the Deployment and the sidecars. Each has checked all
// that it delivers.
func (u *upgraded) run(program string) (stop func()) {
	u.Helper()
	u.moveAddress()
	u.started++
	all := []*proctest.Process{u.Spawn(program, u.Environ(), "run", "--config", u.configure(), "--annotations", filepath.Join(u.dir, "annotations"), "--status-dir", filepath.Join(u.dir, "status"))}
	addresses := []string{u.address}
	for _, pod := range u.sidecars {
		address := proctest.FreeAddress(u)
		env := proctest.Environ(u.Server.Env("app"), "TMPDIR="+u.dir, "SERVER_ADDRESS="+address)
		all, addresses = append(all, u.Spawn(program, env, append([]string{"run"}, pod.Flags()...)...)), append(addresses, address)
	}
	for _, address := range addresses {
		u.address = address
		eventually(u, "a ready process", u.ready)
	}
	return func() {
		for _, p := range all {
			p.Stop()
		}
	}
}

// renew changes values, app/v001 last, and waits until all have that one, and each
// application has read its notice.
func (u *upgraded) renew(ids ...string) {
	u.Helper()
	value := u.Renew(append(ids, "app/v001")...)
	u.awaitData("s001", map[string]string{"v": value})
	for _, pod := range u.sidecars {
		eventually(u, "the renewed value in the files, and a notice", func() bool {
			app, _ := os.ReadFile(pod.Path("secrets", "app"))
			v001, _ := os.ReadFile(pod.Path("secrets", "app", "v001"))
			all, _ := os.ReadFile(pod.Path("secrets", "all"))
			return strings.Contains(string(app)+string(v001), value) && strings.Contains(string(all), value) &&
				os.Remove(pod.Path("status", notify.UpdatedFile)) == nil
		})
	}
}

// rotateHalf begins a rotation with a version's command and waits until it is on its
// way; finish waits for its end.
func (u *upgraded) rotateHalf(program string) (finish func()) {
	u.Helper()
	first := u.shown("keys").Primary
	u.Spawn(program, proctest.Environ(u.Server.Env("rotates"), "TMPDIR="+u.dir), "rotate", "now", "jwt").Exit(0)
	eventually(u, "a rotation on its way", func() bool { return u.shown("keys").Stage == "introduce" })
	return func() {
		eventually(u, "the end of the rotation", func() bool {
			now := u.shown("keys")
			return now.Stage == "idle" && now.Primary != first && u.read("keys").Data[now.Primary+".key.primary"] != nil
		})
	}
}

// TestUpgradeAndRollback from the previous release to this one, back, and again, each in
// the middle of a rotation: no value is lost, nothing correct is written again, nothing
// restarts, and the rotation ends.
func TestUpgradeAndRollback(t *testing.T) {
	old := buildPrevious(t)
	u := newUpgraded(t)
	stop := u.run(old)
	for _, name := range u.secrets {
		u.awaitData(name, map[string]string{"v": u.Value["app/v"+name[1:]]})
	}
	eventually(t, "the first key", func() bool { return u.shown("keys").Stage == "idle" })
	u.renew("app/v000") // the Pods' annotations are not empty
	eventually(t, "the restart", func() bool { return len(u.deployment()) > 0 })
	from := old
	for _, step := range []struct{ how, program string }{{"upgrade", binary}, {"rollback", old}, {"second upgrade", binary}} {
		finish := u.rotateHalf(from)
		before := u.state()
		stop()
		stop = u.run(step.program)
		finish()
		u.polls(2)
		u.compare(step.how, before)
		u.renew()
		from = step.program
	}
	stop()
}
