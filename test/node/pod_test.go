//go:build node

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/tools/watch"

	"github.com/secretsync/syncer/test/proctest"
)

// pod is a Pod by its name.
type pod struct {
	*world
	name string
}

// start creates a Pod.
func (w *world) start(name string, spec *corev1.Pod) *pod {
	w.t.Helper()
	spec = spec.DeepCopy()
	spec.Name = name
	// The account's token is made by a controller; then the Pod is admitted.
	w.eventually("the default service account", func() bool {
		_, err := client.CoreV1().ServiceAccounts(w.namespace).Get(w.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	_, err := client.CoreV1().Pods(w.namespace).Create(w.t.Context(), spec, metav1.CreateOptions{})
	w.check(err)
	return &pod{world: w, name: name}
}

// get returns the Pod as it is.
func (p *pod) get() *corev1.Pod {
	p.t.Helper()
	found, err := client.CoreV1().Pods(p.namespace).Get(p.t.Context(), p.name, metav1.GetOptions{})
	p.check(err)
	return found
}

// await waits until the Pod is as it should be.
func (p *pod) await(what string, condition func(*corev1.Pod) bool) {
	p.t.Helper()
	p.eventually("Pod "+p.name+": "+what, func() bool { return condition(p.get()) })
}

func (p *pod) ready() {
	p.t.Helper()
	p.await("ready", func(found *corev1.Pod) bool {
		return slices.ContainsFunc(found.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

// container returns the state of a container.
func container(found *corev1.Pod, name string) corev1.ContainerStatus {
	all := slices.Concat(found.Status.InitContainerStatuses, found.Status.ContainerStatuses)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return corev1.ContainerStatus{}
	}
	return all[i]
}

// restarts returns how often a container was started again.
func (p *pod) restarts(name string) int {
	p.t.Helper()
	return int(container(p.get(), name).RestartCount)
}

// awaitRestarts waits until a container runs that was started again so often.
func (p *pod) awaitRestarts(name string, times int) {
	p.t.Helper()
	p.await(fmt.Sprintf("%d restarts of %s", times, name), func(found *corev1.Pod) bool {
		c := container(found, name)
		return int(c.RestartCount) >= times && c.State.Running != nil
	})
}

// exec runs a command in a container, and returns what it printed. The error
// names its exit status.
func (p *pod) exec(name string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), proctest.Patience)
	defer cancel()
	url := client.CoreV1().RESTClient().Post().Namespace(p.namespace).Resource("pods").Name(p.name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: name, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(plane.Config(), "GET", url.String())
	if err != nil {
		return "", err
	}
	var out, failure bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &failure})
	return out.String() + failure.String(), err
}

// read returns what a file is to the application, or why it cannot be read.
func (p *pod) read(path string) string {
	p.t.Helper()
	text, err := p.exec("app", "/app", "read", path)
	if err != nil {
		return err.Error() + ": " + text
	}
	return text
}

// awaitFile waits until a file of the application holds a text.
func (p *pod) awaitFile(path, want string) {
	p.t.Helper()
	var got string
	defer func() {
		if got != want {
			p.t.Logf("Pod %s: %s is %s", p.name, path, got)
		}
	}()
	p.eventually(fmt.Sprintf("Pod %s: %s with %s", p.name, path, want), func() bool {
		got = p.read(path)
		return got == want
	})
}

// log returns what a container has printed since it was started last.
func (p *pod) log(name string) string {
	p.t.Helper()
	return p.logs(p.t.Context(), name)
}

func (p *pod) logs(ctx context.Context, name string) string {
	stream, err := client.CoreV1().Pods(p.namespace).GetLogs(p.name, &corev1.PodLogOptions{Container: name}).Stream(ctx)
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// described is what "kubectl describe pod" says of states and events.
func (p *pod) described(ctx context.Context) string {
	var text strings.Builder
	found, err := client.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, c := range slices.Concat(found.Status.InitContainerStatuses, found.Status.ContainerStatuses) {
		fmt.Fprintf(&text, "  %s: %d restarts, ready %v", c.Name, c.RestartCount, c.Ready)
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if w := state.Waiting; w != nil {
				fmt.Fprintf(&text, "; waits: %s %s", w.Reason, w.Message)
			}
			if e := state.Terminated; e != nil {
				fmt.Fprintf(&text, "; ended: %s %d %s", e.Reason, e.ExitCode, e.Message)
			}
		}
		text.WriteString("\n")
	}
	events, err := client.CoreV1().Events(p.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", p.name).String(),
	})
	if err != nil {
		return err.Error()
	}
	for _, e := range events.Items {
		fmt.Fprintf(&text, "  %s %s %s\n", e.Type, e.Reason, e.Message)
	}
	return text.String()
}

// awaitDescription waits until "kubectl describe pod" shows a text.
func (p *pod) awaitDescription(want string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("description of Pod %s with %q", p.name, want), func() bool {
		return strings.Contains(p.described(p.t.Context()), want)
	})
}

// delete deletes the Pod, waits until it is gone, and returns how it was last
// before, while it had its time of grace.
func (p *pod) delete() (last *corev1.Pod) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), proctest.Patience)
	defer cancel()
	pods, selected := client.CoreV1().Pods(p.namespace), fields.OneTermEqualSelector("metadata.name", p.name)
	named := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", p.namespace, selected)
	// The version of a Pod that has not changed for long may be too old for a watch.
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: selected.String()})
	p.check(err)
	p.check(pods.Delete(ctx, p.name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.get().UID))}))
	_, err = watch.Until(ctx, list.ResourceVersion, named, func(e apiwatch.Event) (bool, error) {
		now, ok := e.Object.(*corev1.Pod)
		if ok && e.Type != apiwatch.Deleted && now.DeletionTimestamp != nil && *now.DeletionGracePeriodSeconds > 0 {
			last = now
		}
		return e.Type == apiwatch.Deleted, nil
	})
	if err != nil || last == nil {
		p.t.Fatalf("deletion of Pod %s: %v", p.name, err)
	}
	return last
}

// file reads a file of a volume of the Pod that is on the node's disk.
func (p *pod) file(volume, path string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(testDir, "s", "node", "kubelet", "pods", string(p.get().UID), "volumes", "kubernetes.io~empty-dir", volume, path))
	p.check(err)
	return string(text)
}

// abandon deletes the Pod without waiting.
func (p *pod) abandon() {
	p.t.Helper()
	p.check(client.CoreV1().Pods(p.namespace).Delete(p.t.Context(), p.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
}

// signal sends a signal to the processes of a container.
func (p *pod) signal(name string, s syscall.Signal) {
	p.t.Helper()
	p.send(s, p.processes(name))
}

// send sends a signal to processes. One that has ended may have been a probe.
func (p *pod) send(s syscall.Signal, pids []int) {
	p.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); !errors.Is(err, syscall.ESRCH) {
			p.check(err)
		}
	}
}

// processes are the ids of a container's, outside of it.
func (p *pod) processes(name string) (pids []int) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.cgroup("pids", name), "cgroup.procs"))
	p.check(err)
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		p.check(err)
		pids = append(pids, pid)
	}
	return pids
}

// running are the processes of a container by its id; none if it has ended.
func (p *pod) running(container string) (pids []int) {
	_, id, _ := strings.Cut(container, "://")
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		for _, class := range []string{"", "/burstable", "/besteffort"} {
			found, _ := filepath.Glob(root + "/syncer-*/kubepods" + class + "/pod*/" + id + "/cgroup.procs")
			for _, file := range found {
				text, _ := os.ReadFile(file)
				for field := range strings.FieldsSeq(string(text)) {
					if pid, err := strconv.Atoi(field); err == nil {
						pids = append(pids, pid)
					}
				}
			}
		}
	}
	return pids
}

// cgroup is the folder of a container's cgroup, in the hierarchy of a
// controller where there are several.
func (p *pod) cgroup(controller, name string) string {
	p.t.Helper()
	_, id, _ := strings.Cut(container(p.get(), name).ContainerID, "://")
	for _, root := range []string{"/sys/fs/cgroup/" + controller, "/sys/fs/cgroup"} {
		for _, class := range []string{"", "/burstable", "/besteffort"} {
			found, err := filepath.Glob(root + "/syncer-*/kubepods" + class + "/pod*/" + id)
			p.check(err)
			if len(found) == 1 && id != "" {
				return found[0]
			}
		}
	}
	p.t.Fatalf("Pod %s: no cgroup of %s", p.name, name)
	return ""
}
