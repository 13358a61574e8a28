// Package gitops tests deployment tools beside Syncer: each with its own code, in the version
// of this module, on a real API server.
package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

var (
	plane    *kubetest.ControlPlane
	programs string // the folder of the programs
)

// built are the programs, each with its folder and its package.
var built = map[string][2]string{
	"syncer":  {"../..", "./cmd/syncer"},
	"helm3":   {"", "helm.sh/helm/v3/cmd/helm"},
	"helm4":   {"", "helm.sh/helm/v4/cmd/helm"},
	"kubectl": {"", "k8s.io/kubernetes/cmd/kubectl"},
}

func TestMain(m *testing.M) {
	proctest.AtOnce(8)
	os.Exit(gobuild.Main(kubetest.Main(m, &plane), func(dir string) error {
		programs = dir
		for _, name := range slices.Sorted(maps.Keys(built)) {
			if err := gobuild.Build(filepath.Join(dir, name), built[name][0], built[name][1]); err != nil {
				return err
			}
		}
		return nil
	}).Run())
}

// world is a namespace with a standalone Syncer, and a user who deploys into it.
type world struct {
	*shared.Conjur
	namespace, dir, kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Conjur: shared.New(t), namespace: plane.Namespace(t), dir: t.TempDir()}
	w.Variables("a")
	plane.Bind(t, w.namespace, "syncer", rbacv1.PolicyRule{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "events", "leases"}, Verbs: []string{"*"}})
	plane.Bind(t, w.namespace, "deployer", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	w.kubeconfig = plane.KubeconfigFor(t, plane.Token(t, w.namespace, "deployer"))
	maps.Copy(w.Env, map[string]string{
		"TMPDIR": w.dir, "PATH": os.Getenv("PATH"), "MY_POD_NAMESPACE": w.namespace,
		"KUBECONFIG":          plane.KubeconfigFor(t, plane.Token(t, w.namespace, "syncer")),
		"SECRETS_DESTINATION": "k8s_secrets", "CONTAINER_MODE": "standalone", "NAMESPACE_ALLOWLIST": w.namespace,
	})
	config := filepath.Join(w.dir, "config.yaml")
	shared.Replace(w, config, fmt.Sprintf("refresh: {interval: 1s}\nserver: {address: %q}\n", proctest.FreeAddress(t)))
	w.Spawn(filepath.Join(programs, "syncer"), w.Environ(), "run", "--config", config, "--annotations", filepath.Join(w.dir, "annotations"), "--status-dir", filepath.Join(w.dir, "status"))
	return w
}

// run runs a program as the user who deploys, and returns its output.
func (w *world) run(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.Context(), filepath.Join(programs, program), args...)
	cmd.Env = []string{"HOME=" + w.dir, "KUBECONFIG=" + w.kubeconfig, "HELM_NAMESPACE=" + w.namespace}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// manifest is the Secret "db" that a user deploys, with the map of the data key a, which
// Syncer delivers. Its other data keys are in data or stringData, as field says.
func manifest(field string, keys map[string]string) string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Secret\nmetadata: {name: db, labels: {conjur.org/managed-by-provider: \"true\"}}\n" + field + ":\n")
	all := maps.Clone(keys)
	all["conjur-map"] = "a: a"
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "  %s: %q\n", key, encoded(field, all[key]))
	}
	return text.String()
}

// write writes a manifest to a file.
func (w *world) write(text string) (path string) {
	w.Helper()
	path = filepath.Join(w.dir, "manifest.yaml")
	shared.Replace(w, path, text)
	return path
}

// read returns the Secret, or nil if there is none.
func (w *world) read() *corev1.Secret {
	w.Helper()
	s, err := plane.Core.Secrets(w.namespace).Get(w.Context(), "db", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// await waits until Syncer has delivered the data key, and returns the Secret.
func (w *world) await() (s *corev1.Secret) {
	w.Helper()
	proctest.Eventually(w, "the value from Conjur", func() bool {
		s = w.read()
		return s != nil && string(s.Data["a"]) == w.Value["a"]
	})
	return s
}

// contested returns the messages of the Events of this reason.
func (w *world) contested() (messages []string) {
	w.Helper()
	list, err := plane.Core.Events(w.namespace).List(context.WithoutCancel(w.Context()), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == "Contested" {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// must fails the test if a tool failed.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
