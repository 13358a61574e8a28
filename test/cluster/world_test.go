package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// world is a Conjur server, a namespace, and a service account "syncer" in it
// with the rights of a role.
type world struct {
	t         testing.TB
	server    *conjurdtest.Server
	namespace string
	core      corev1client.CoreV1Interface // as the admin
	dir       string
	env       map[string]string
	address   string            // of the probes
	started   int               // processes
	settings  []string          // lines of the configuration file
	values    []string          // all that were ever set: no log may hold one
	value     map[string]string // :: variable → the value it has
}

// newWorld makes a world with the identity "host/app", which logs in by API
// key, and the settings of a standalone process that refreshes every second
// and serves the namespace.
func newWorld(t testing.TB, options ...conjurdtest.Option) *world {
	t.Helper()
	w := &world{t: t, server: conjurdtest.Start(t, options...), namespace: plane.Namespace(t), dir: t.TempDir(), value: map[string]string{}}
	core, err := corev1client.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	w.core = core
	w.server.Policy("- !host app\n")
	plane.Bind(t, w.namespace, "syncer", rights(t)...)
	w.env = map[string]string{
		"CONJUR_APPLIANCE_URL": w.server.URL, "CONJUR_ACCOUNT": conjurdtest.Account, "CONJUR_SSL_CERTIFICATE": string(w.server.CA),
		"CONJUR_AUTHN_LOGIN": "host/app", "CONJUR_AUTHN_API_KEY": w.server.HostKey("app"),
		"MY_POD_NAMESPACE":    w.namespace,
		"KUBECONFIG":          plane.KubeconfigFor(t, plane.Token(t, w.namespace, "syncer")),
		"SECRETS_DESTINATION": "k8s_secrets", "CONTAINER_MODE": "standalone", "NAMESPACE_ALLOWLIST": w.namespace,
	}
	w.address = proctest.FreeAddress(t)
	w.settings = []string{"refresh: {interval: 1s}", fmt.Sprintf("server: {address: %q}", w.address), "removal: {grace: 0s}"}
	return w
}

// user is what the audit log calls the requests of the world's processes.
func (w *world) user() string { return kubetest.UserName(w.namespace, "syncer") }

// start starts syncer. At the end of the test its output is searched for every
// value.
func (w *world) start(flags ...string) *proctest.Process {
	w.t.Helper()
	w.started++
	path := w.configure()
	env := []string{"TMPDIR=" + w.dir, "PATH=" + os.Getenv("PATH")}
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	args := append([]string{"run", "--config", path, "--annotations", filepath.Join(w.dir, "annotations"), "--status-dir", filepath.Join(w.dir, "status")}, flags...)
	p := spawn(w.t, env, args...)
	w.t.Cleanup(func() { w.silent(p) })
	return p
}

// configure writes the settings, whole or not at all, for the process that is
// or was started last.
func (w *world) configure() (path string) {
	w.t.Helper()
	path = filepath.Join(w.dir, fmt.Sprintf("config-%d.yaml", w.started))
	if err := os.WriteFile(path+".new", []byte(strings.Join(w.settings, "\n")+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// silent looks for values in what a process printed.
func (w *world) silent(p *proctest.Process) {
	for _, value := range w.values {
		if strings.Contains(p.Log(), value) {
			w.t.Errorf("the output of process %d holds a value", p.PID())
			return
		}
	}
}

// join makes another namespace, in which the service account has the same
// rights.
func (w *world) join() string {
	w.t.Helper()
	namespace := plane.Namespace(w.t)
	roles, err := rbacv1client.NewForConfig(plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "syncer"}, Rules: rights(w.t)}
	if _, err := roles.Roles(namespace).Create(w.t.Context(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "syncer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "syncer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "syncer"}},
	}
	if _, err := roles.RoleBindings(namespace).Create(w.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return namespace
}

// leases are those of the world's namespace.
func (w *world) leases() coordinationv1client.LeaseInterface {
	w.t.Helper()
	client, err := coordinationv1client.NewForConfig(plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Leases(w.namespace)
}

// moveAddress gives the next process an address of its own for probes.
func (w *world) moveAddress() {
	w.address = proctest.FreeAddress(w.t)
	w.settings[1] = fmt.Sprintf("server: {address: %q}", w.address)
}

// ready asks the readiness probe.
func (w *world) ready() bool {
	w.t.Helper()
	code, _ := w.get("/readyz")
	return code == http.StatusOK
}

// awaitAll waits until the data of each labelled Secret of the namespaces are
// as they should be.
func (w *world) awaitAll(namespaces []string, right func(data map[string][]byte, name string) bool) {
	w.t.Helper()
	for _, namespace := range namespaces {
		eventually(w.t, "the wanted data in all Secrets of "+namespace, func() bool {
			list, err := w.core.Secrets(namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "conjur.org/managed-by-provider=true"})
			if err != nil {
				w.t.Fatal(err)
			}
			for _, s := range list.Items {
				if !right(s.Data, s.Name) {
					return false
				}
			}
			return true
		})
	}
}

// variables makes variables that the identity may read, each with a value.
func (w *world) variables(ids ...string) {
	w.t.Helper()
	var policy strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&policy, "- !variable %q\n- !permit {role: !host app, privileges: [read, execute], resource: !variable %q}\n", id, id)
	}
	w.server.Policy(policy.String())
	for _, id := range ids {
		w.renew(id)
	}
}

// renew gives a variable a new value.
func (w *world) renew(id string) string {
	w.t.Helper()
	value := "value-" + rand.Text()
	w.values = append(w.values, value)
	w.value[id] = value
	w.server.Set(id, value)
	return value
}

// secret makes a labelled Secret with a map of data keys to variables.
func (w *world) secret(name string, conjurMap map[string]string, changes ...func(*corev1.Secret)) *corev1.Secret {
	w.t.Helper()
	return w.secretIn(w.namespace, name, conjurMap, changes...)
}

// secretIn does so in another namespace.
func (w *world) secretIn(namespace, name string, conjurMap map[string]string, changes ...func(*corev1.Secret)) *corev1.Secret {
	w.t.Helper()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(conjurMap)) {
		fmt.Fprintf(&text, "%q: %q\n", key, conjurMap[key])
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"conjur.org/managed-by-provider": "true"}, Annotations: map[string]string{}},
		Data:       map[string][]byte{"conjur-map": []byte(text.String())},
	}
	for _, change := range changes {
		change(s)
	}
	made, err := w.core.Secrets(s.Namespace).Create(w.t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// read gives a Secret as it is; nil when there is none.
func (w *world) read(name string) *corev1.Secret {
	w.t.Helper()
	return w.readIn(w.namespace, name)
}

// readIn does so in another namespace.
func (w *world) readIn(namespace, name string) *corev1.Secret {
	w.t.Helper()
	s, err := w.core.Secrets(namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// awaitData waits until a Secret has the data, the map apart; a value that is
// wanted to be "" must not be there.
func (w *world) awaitData(name string, want map[string]string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("the wanted data in the Secret %s", name), func() bool {
		s := w.read(name)
		if s == nil {
			return false
		}
		for key, value := range want {
			there, ok := s.Data[key]
			if ok != (value != "") || string(there) != value {
				return false
			}
		}
		return true
	})
}

// edit changes a Secret as somebody with kubectl would.
func (w *world) edit(name string, change func(*corev1.Secret)) {
	w.t.Helper()
	for {
		s := w.read(name)
		change(s)
		_, err := w.core.Secrets(w.namespace).Update(w.t.Context(), s, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return
	}
}

// events gives the messages of the Events about a Secret that have a reason.
func (w *world) events(name, reason string) (messages []string) {
	w.t.Helper()
	list, err := w.core.Events(w.namespace).List(context.WithoutCancel(w.t.Context()), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}
