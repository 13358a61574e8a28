package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

// world is a Conjur server, a namespace, and a service account "syncer" in it
// with the rights of a role.
type world struct {
	*shared.Conjur
	namespace string
	dir       string
	address   string   // of the probes
	started   int      // processes
	settings  []string // lines of the configuration file
}

// newWorld makes a world with the settings of a standalone process that refreshes
// every second and serves the namespace.
func newWorld(t testing.TB, options ...conjurdtest.Option) *world {
	t.Helper()
	w := &world{Conjur: shared.New(t, options...), namespace: plane.Namespace(t), dir: t.TempDir()}
	plane.Bind(t, w.namespace, "syncer", rights(t)...)
	maps.Copy(w.Env, map[string]string{
		"TMPDIR": w.dir, "PATH": os.Getenv("PATH"), "MY_POD_NAMESPACE": w.namespace,
		"KUBECONFIG":          plane.KubeconfigFor(t, plane.Token(t, w.namespace, "syncer")),
		"SECRETS_DESTINATION": "k8s_secrets", "CONTAINER_MODE": "standalone", "NAMESPACE_ALLOWLIST": w.namespace,
	})
	w.address = proctest.FreeAddress(t)
	w.settings = []string{"refresh: {interval: 1s}", fmt.Sprintf("server: {address: %q}", w.address), "removal: {grace: 0s}"}
	return w
}

// user is what the audit log calls the requests of the world's processes.
func (w *world) user() string { return kubetest.UserName(w.namespace, "syncer") }

// start starts syncer.
func (w *world) start(flags ...string) *proctest.Process {
	w.Helper()
	w.started++
	args := append([]string{"run", "--config", w.configure(), "--annotations", filepath.Join(w.dir, "annotations"), "--status-dir", filepath.Join(w.dir, "status")}, flags...)
	return w.Spawn(binary, w.Environ(), args...)
}

// configure writes the settings for the process that is or was started last.
func (w *world) configure() (path string) {
	w.Helper()
	path = filepath.Join(w.dir, fmt.Sprintf("config-%d.yaml", w.started))
	shared.Replace(w, path, strings.Join(w.settings, "\n")+"\n")
	return path
}

// join makes another namespace, in which the service account has the same
// rights.
func (w *world) join() string {
	w.Helper()
	namespace := plane.Namespace(w)
	plane.Bind(w, namespace, w.namespace+"/syncer", rights(w)...)
	return namespace
}

// leases are those of the world's namespace.
func (w *world) leases() coordinationv1client.LeaseInterface {
	w.Helper()
	client, err := coordinationv1client.NewForConfig(plane.Config())
	if err != nil {
		w.Fatal(err)
	}
	return client.Leases(w.namespace)
}

// takeLease makes another candidate the holder of the Lease, for a duration.
func (w *world) takeLease(duration time.Duration) {
	w.Helper()
	for {
		lease, err := w.leases().Get(w.Context(), "syncer", metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		other, now, seconds := "another", metav1.NowMicro(), int32(duration/time.Second)
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &other, &now, &now, &seconds
		_, err = w.leases().Update(w.Context(), lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		return
	}
}

// moveAddress gives the next process another address for its probes.
func (w *world) moveAddress() {
	w.address = proctest.FreeAddress(w.TB)
	w.settings[1] = fmt.Sprintf("server: {address: %q}", w.address)
}

// standby starts a second replica, and waits until it has seen the leader.
func (w *world) standby() *proctest.Process {
	w.Helper()
	w.moveAddress()
	p := w.start()
	eventually(w, "the second to see the leader", func() bool { return strings.Contains(p.Log(), "Standing by") })
	return p
}

// ready asks the readiness probe.
func (w *world) ready() bool {
	w.Helper()
	code, _ := w.get("/readyz")
	return code == http.StatusOK
}

// awaitAll waits until the data of each labelled Secret of the namespaces are
// as they should be.
func (w *world) awaitAll(namespaces []string, right func(data map[string][]byte, name string) bool) {
	w.Helper()
	for _, namespace := range namespaces {
		eventually(w, "the wanted data in all Secrets of "+namespace, func() bool {
			list, err := plane.Core.Secrets(namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "conjur.org/managed-by-provider=true"})
			if err != nil {
				w.Fatal(err)
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

// secret makes a labelled Secret with a map of data keys to variables.
func (w *world) secret(name string, conjurMap map[string]string, changes ...func(*corev1.Secret)) *corev1.Secret {
	w.Helper()
	return w.secretIn(w.namespace, name, conjurMap, changes...)
}

// secretIn does so in another namespace.
func (w *world) secretIn(namespace, name string, conjurMap map[string]string, changes ...func(*corev1.Secret)) *corev1.Secret {
	w.Helper()
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
	made, err := plane.Core.Secrets(s.Namespace).Create(w.Context(), s, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// read gives a Secret as it is; nil when there is none.
func (w *world) read(name string) *corev1.Secret {
	w.Helper()
	return w.readIn(w.namespace, name)
}

// readIn does so in another namespace.
func (w *world) readIn(namespace, name string) *corev1.Secret {
	w.Helper()
	s, err := plane.Core.Secrets(namespace).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// awaitData waits until a Secret has the data, the map apart; a value that is
// wanted to be "" must not be there.
func (w *world) awaitData(name string, want map[string]string) {
	w.Helper()
	eventually(w, fmt.Sprintf("the wanted data in the Secret %s", name), func() bool {
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
	w.Helper()
	for {
		s := w.read(name)
		change(s)
		_, err := plane.Core.Secrets(w.namespace).Update(w.Context(), s, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		return
	}
}

// events gives the messages of the Events about a Secret that have a reason.
func (w *world) events(name, reason string) (messages []string) {
	w.Helper()
	list, err := plane.Core.Events(w.namespace).List(context.WithoutCancel(w.Context()), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}
