//go:build upgrade

package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
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

// upgraded is a cluster with 200 Secrets, a rotated set, a Deployment and a sidecar.
type upgraded struct {
	*world
	sidecar    []string // its flags
	secrets    []string
	deployment func() map[string]string // the annotations of its Pods
	file       string                   // of the sidecar
}

func newUpgraded(t *testing.T) *upgraded {
	w := newWorld(t)
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 15s}}")
	w.settings = append(w.settings, "restarts: {quietPeriod: 1s}")
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
	pod := w.Pod(map[string]string{"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": "1s"})
	pod.Group("app", "yaml", "app/v000", "app/v001")
	pod.Annotate()
	u.sidecar, u.file = append([]string{"run"}, pod.Flags()...), pod.Path("secrets", "app.yaml")
	return u
}

// state is what an upgrade must not change.
type state struct {
	versions map[string]string // of the Secrets
	pods     string            // the annotations of the Deployment's Pods
	file     os.FileInfo
	content  []byte
}

func (u *upgraded) state() state {
	u.Helper()
	s := state{versions: map[string]string{}, pods: fmt.Sprint(u.deployment())}
	for _, name := range u.secrets {
		secret := u.read(name)
		if got, want := string(secret.Data["v"]), u.Value["app/v"+name[1:]]; got != want {
			u.Errorf("%s: its value is lost or wrong", name)
		}
		s.versions[name] = secret.ResourceVersion
	}
	var err error
	if s.file, err = os.Stat(u.file); err != nil {
		u.Fatal(err)
	}
	if s.content, err = os.ReadFile(u.file); err != nil {
		u.Fatal(err)
	}
	return s
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
	if !os.SameFile(before.file, after.file) || !before.file.ModTime().Equal(after.file.ModTime()) || !bytes.Equal(before.content, after.content) {
		u.Errorf("%s: the sidecar has written its file again", how)
	}
}

// run runs a version until stop: the Deployment and the sidecar.
func (u *upgraded) run(program string) (stop func()) {
	u.Helper()
	u.moveAddress()
	u.started++
	leader := u.Spawn(program, u.Environ(), "run", "--config", u.configure(), "--annotations", filepath.Join(u.dir, "annotations"), "--status-dir", filepath.Join(u.dir, "status"))
	env := proctest.Environ(u.Server.Env("app"), "TMPDIR="+u.dir)
	sidecar := u.Spawn(program, env, u.sidecar...)
	eventually(u, "a ready Deployment", u.ready)
	eventually(u, "the sidecar's file", func() bool { _, err := os.Stat(u.file); return err == nil })
	return func() { leader.Stop(); sidecar.Stop() }
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
	u.Renew("app/v000") // the Pods' annotations are not empty
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
		id := u.Renew("app/v001") // still followed
		u.awaitData("s001", map[string]string{"v": id})
		from = step.program
	}
	stop()
}
