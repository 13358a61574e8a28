package plane

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Node runs a node: containerd and runc, which are the system's, and the
// kubelet. It is the first process of a process namespace, so that its end
// takes every container along, and has a mount namespace of its own, so that
// no mount outlives it. The result is an exit code.
func Node(args []string) int {
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	dir := flags.String("dir", "", "the control plane's `directory`")
	kubelet := flags.String("kubelet", "", "`program` with the kubelet")
	images := flags.String("images", "", "`directory` with archives of images")
	cgroup := flags.String("cgroup", "", "`name` of the cgroup that holds all Pods")
	_ = flags.Parse(args) // ends the process on an error
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, `kube node: is started by "kube up --node"`)
		return 2
	}
	n := node{dir: filepath.Join(*dir, "node"), plane: *dir, cgroup: *cgroup}
	err := errors.Join(n.writeConfiguration(), n.isolate())
	if err == nil {
		err = n.run(*kubelet, *images)
	}
	fmt.Fprintln(os.Stderr, "kube node:", err)
	return 1
}

// node is what runs as process 1.
type node struct {
	dir, plane, cgroup string
}

func (n node) path(name string) string { return filepath.Join(n.dir, name) }

// socket is containerd's.
func (n node) socket() string { return n.path("containerd.sock") }

// writeConfiguration writes the files of containerd, the Pod network and the
// kubelet.
func (n node) writeConfiguration() error {
	fill := strings.NewReplacer("NODE_DIR", n.dir, "PLANE_DIR", n.plane, "CGROUP", n.cgroup, "POD_NETWORK", podNetwork).Replace
	err := errors.Join(os.MkdirAll(n.path("cni"), 0o755), os.MkdirAll(n.path("plugins"), 0o755))
	for name, text := range map[string]string{
		"cni/pods.conflist": podNetworkConfig, "containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig,
	} {
		err = errors.Join(err, os.WriteFile(n.path(name), []byte(fill(text)), 0o600))
	}
	return err
}

// isolate keeps what the node changes from the rest of the machine.
func (n node) isolate() error {
	// Every mount bears the name of the directory, in its source if nowhere else.
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(n.dir, "/proc", "proc", 0, ""),
	)
	// The kubelet insists on these values, which are the whole machine's: it is
	// shown files that hold them.
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := n.path(strings.ReplaceAll(name, "/", "."))
		err = errors.Join(err, os.WriteFile(file, []byte(value+"\n"), 0o444), unix.Mount(file, "/proc/sys/"+name, "", unix.MS_BIND, ""))
	}
	// Paths that no setting moves.
	for _, dir := range []string{"/run/containerd", "/run/netns", "/var/log/containers", "/var/lib/cni"} {
		err = errors.Join(err, os.MkdirAll(dir, 0o755), unix.Mount(n.dir, dir, "tmpfs", 0, ""))
	}
	return err
}

// run starts containerd, gives it the images, starts the kubelet, and returns
// when one of the two has ended. A kubelet that ends well was told to, and is
// started again, as a service manager does.
func (n node) run(kubelet, images string) error {
	containerd, err := n.start("containerd", "containerd", "--config", n.path("containerd.toml"))
	if err != nil {
		return err
	}
	if err := n.awaitSocket(); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(images, "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		ctr, err := n.start("ctr", "ctr", "-a", n.socket(), "-n", "k8s.io", "images", "import", archive)
		if err != nil {
			return err
		}
		if _, status, err := reapUntil(ctr); err != nil || status.ExitStatus() != 0 {
			return fmt.Errorf("%s cannot be imported: see %s", archive, n.path("ctr.log"))
		}
	}
	for {
		k, err := n.start("kubelet", kubelet, "kubelet", "--config="+n.path("kubelet.yaml"),
			"--kubeconfig="+filepath.Join(n.plane, "kubelet.kubeconfig"), "--root-dir="+n.path("kubelet"),
			"--cert-dir="+n.path("kubelet/pki"), "--hostname-override="+nodeName, "--node-ip="+nodeAddress)
		if err != nil {
			return err
		}
		pid, status, err := reapUntil(containerd, k)
		if err != nil {
			return err
		}
		if pid != k || status.ExitStatus() != 0 {
			return fmt.Errorf("containerd or the kubelet ended with the status %d", status.ExitStatus())
		}
	}
}

func (n node) awaitSocket() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("unix", n.socket())
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("containerd, see %s: %w", n.path("containerd.log"), err)
		}
	}
}

// start starts a program with its output in name.log, and returns its process
// id.
func (n node) start(name, program string, args ...string) (int, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(n.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	p, err := os.StartProcess(path, append([]string{name}, args...), &os.ProcAttr{Files: []*os.File{nil, log, log}})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
}

// reapUntil waits for children, orphans of containers among them, until one of
// those named has ended, and returns which.
func reapUntil(pids ...int) (pid int, status unix.WaitStatus, err error) {
	for {
		pid, err = unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || slices.Contains(pids, pid) {
			return pid, status, err
		}
	}
}
