package cluster

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// inPod has the world's processes write files as those of a Pod, with its token.
func (w *world) inPod(mode string) *corev1.Pod {
	w.Helper()
	const account = "app"
	plane.Token(w, w.namespace, account) // makes it
	pod, err := plane.Core.Pods(w.namespace).Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0"},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Env["KUBECONFIG"] = plane.KubeconfigFor(w, w.boundToken(pod))
	w.Env["CONTAINER_MODE"] = mode
	for _, name := range []string{"SECRETS_DESTINATION", "NAMESPACE_ALLOWLIST"} {
		delete(w.Env, name)
	}
	w.settings = []string{"secretsDestination: file", "log: {level: debug}"}
	w.Variables("db/user")
	if err := os.WriteFile(filepath.Join(w.dir, "annotations"), []byte("conjur.org/conjur-secrets.db=\"- db/user\"\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	for _, folder := range []string{"secrets", "status"} {
		if err := os.Mkdir(filepath.Join(w.dir, folder), 0o755); err != nil {
			w.Fatal(err)
		}
	}
	return pod
}

func (w *world) startFiles() *proctest.Process {
	return w.start("--secrets-dir", filepath.Join(w.dir, "secrets"))
}

// delivers fails the test unless an init container does its work, with that many
// warnings about the disk and no other word of it but this.
func (w *world) delivers(warnings int, debug string) {
	w.Helper()
	p := w.startFiles()
	p.Exit(0)
	if text, err := os.ReadFile(filepath.Join(w.dir, "secrets", "db.yaml")); err != nil || !strings.Contains(string(text), w.Value["db/user"]) {
		w.Errorf("nothing was delivered: %v", err)
	}
	if n := len(p.Lines("WARN", "is on a disk")); n != warnings || len(p.Lines("Failing")) > 0 {
		w.Errorf("%d warnings about the disk, want %d and no other:\n%s", n, warnings, p.Log())
	}
	if n := len(p.Lines("No Event")); (n > 0) != (debug != "") || n != len(p.Lines("DEBUG", "No Event", debug)) {
		w.Errorf("want %q said to who debugs:\n%s", debug, p.Log())
	}
}

// calls returns the calls of the Pod's account.
func (w *world) calls() []kubetest.Call {
	w.Helper()
	return plane.Calls(w, kubetest.ByUser(kubetest.UserName(w.namespace, "app")))
}

var createEvents = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}

// TestThePodSaysThatItsSecretsAreOnADisk, once for each process.
func TestThePodSaysThatItsSecretsAreOnADisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"init", "sidecar"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pod := w.inPod(mode)
			plane.Bind(t, w.namespace, "app", createEvents)
			if mode == "init" {
				w.delivers(1, "")
			} else {
				p := w.startFiles()
				eventually(t, "an Event", func() bool { return len(w.events(pod.Name, "SecretsOnDisk")) > 0 })
				p.Stop()
			}
			all, err := plane.Core.Events(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)}) // as kubectl describe
			if err != nil {
				t.Fatal(err)
			}
			if len(all.Items) != 1 || len(w.calls()) != 1 {
				t.Fatalf("Events %+v by %d calls, want one of each", all.Items, len(w.calls()))
			}
			if e := all.Items[0]; e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != "Pod" || !strings.Contains(e.Message, "medium: Memory") {
				t.Errorf("Event %+v", e)
			}
		})
	}
}

// TestWithoutAWayToSayThatSecretsAreOnADisk all else goes on.
func TestWithoutAWayToSayThatSecretsAreOnADisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kubeconfig func(*world) string // nil: as a Pod
		debug      string
		calls      int
	}{
		"no right":  {nil, "forbidden", 1},
		"no token":  {func(*world) string { return "" }, "this is not a Pod", 0},
		"no Pod's":  {func(w *world) string { return plane.KubeconfigFor(w, plane.Token(w, w.namespace, "app")) }, "bound to no Pod", 0},
		"no answer": {(*world).silence, "context canceled", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.inPod("init")
			if c.kubeconfig != nil {
				w.Env["KUBECONFIG"] = c.kubeconfig(w)
			}
			w.delivers(1, c.debug)
			if n := len(w.calls()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
		})
	}
}

// silence returns the Pod's kubeconfig with an API server that never answers.
func (w *world) silence() string {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = listener.Close() })
	path := w.Env["KUBECONFIG"]
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		w.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + listener.Addr().String()
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}

// TestAFolderInMemoryIsNoNews: what may say something asks nobody.
func TestAFolderInMemoryIsNoNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inPod("init")
	plane.Bind(t, w.namespace, "app", createEvents)
	if err := unix.Mount("tmpfs", filepath.Join(w.dir, "secrets"), "tmpfs", 0, ""); err == unix.EPERM {
		t.Skip("without the right to mount there is no folder in memory")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(w.dir, "secrets"), unix.MNT_DETACH) })
	w.delivers(0, "")
	if calls := w.calls(); len(calls) > 0 {
		t.Errorf("calls %+v", calls)
	}
}
