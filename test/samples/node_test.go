//go:build linux && long

package samples

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
)

// pod simulates the node's part of a Pod of the API server. conjurd uses it as its cluster.
type pod struct {
	*world
	name        string
	dir         string
	annotations map[string]string
	spec        corev1.PodSpec
	owners      []string // each as kind/name

	mu      sync.Mutex
	made    map[string]*container
	scripts int // the scripts that sh received
}

// container is one of the Pod's.
type container struct {
	podtest.Container
	env     []string
	command []string // and arguments
}

// container returns a container of the Pod, which it makes at the first call.
func (p *pod) container(name string) *container {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.made[name]; c != nil {
		return c
	}
	all := slices.Concat(p.spec.InitContainers, p.spec.Containers)
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		p.Fatalf("there is no container %s", name)
	}
	spec := all[i]
	c := &container{Container: podtest.Container{Root: filepath.Join(p.dir, "roots", name), Mounts: p.mounts(spec)}}
	p.check(os.MkdirAll(c.Root, 0o755))
	switch spec.Image {
	case syncerImage:
		p.check(p.image.unpack(c.Root))
		config := p.image.config.Config
		user, group, _ := strings.Cut(config.User, ":")
		c.User, c.Group = p.number(user), p.number(group)
		c.env, c.command = slices.Clone(config.Env), slices.Concat(config.Entrypoint, spec.Args)
	case appImage:
		for _, dir := range []string{"/bin", "/lib", "/lib64", "/usr"} { // a shell and what it needs
			if _, err := os.Stat(dir); err == nil {
				c.Mounts = append(c.Mounts, podtest.Mount{Source: dir, Path: dir, ReadOnly: true})
			}
		}
		p.check(errors.Join(os.Mkdir(filepath.Join(c.Root, "tmp"), 0o777), os.Chmod(filepath.Join(c.Root, "tmp"), 0o1777)))
		c.env = []string{"PATH=/usr/bin:/bin"}
	default:
		p.Fatalf("the node has no image %s", spec.Image)
	}
	if spec.Command != nil {
		c.command = slices.Concat(spec.Command, spec.Args)
	}
	if s := spec.SecurityContext; s != nil && s.RunAsUser != nil {
		c.User, c.Group = int(*s.RunAsUser), 0
	}
	c.env = append(c.env, p.environment(spec)...)
	p.made[name] = c
	return c
}

func (p *pod) number(text string) int {
	p.Helper()
	n, err := strconv.Atoi(text)
	p.check(err)
	return n
}

// environment returns the variables that the manifest and the cluster add to the image's.
func (p *pod) environment(c corev1.Container) (env []string) {
	p.Helper()
	server, err := url.Parse(plane.URL())
	p.check(err)
	env = []string{"HOSTNAME=" + p.name, "KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	for _, from := range c.EnvFrom {
		var all map[string]string
		if from.ConfigMapRef != nil {
			all = p.configMap(from.ConfigMapRef.Name, nil)
		} else {
			all = p.secret(from.SecretRef.Name, nil)
		}
		for name, value := range all {
			env = append(env, from.Prefix+name+"="+value)
		}
	}
	for _, e := range c.Env {
		value := e.Value
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil:
			value = p.field(from.FieldRef.FieldPath)
		case from.ConfigMapKeyRef != nil:
			value = p.configMap(from.ConfigMapKeyRef.Name, nil)[from.ConfigMapKeyRef.Key]
		case from.SecretKeyRef != nil:
			value = p.secret(from.SecretKeyRef.Name, nil)[from.SecretKeyRef.Key]
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

// start starts a container's process.
func (p *pod) start(name string) *proctest.Process {
	p.Helper()
	c := p.container(name)
	cmd := &exec.Cmd{Path: c.command[0], Args: c.command, Env: slices.Clone(c.env)}
	return proctest.Start(p.TB, cmd, c.Start)
}

// exec runs a command in a container, and returns its exit status and what it
// printed.
func (p *pod) exec(name string, command ...string) (status int, printed string) {
	p.Helper()
	cmd := &exec.Cmd{Path: command[0], Args: command}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p.check(p.container(name).begin(cmd))
	timer := time.AfterFunc(proctest.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit status says it
	return cmd.ProcessState.ExitCode(), out.String()
}

// begin starts a command in a container beside what runs there.
func (c *container) begin(cmd *exec.Cmd) error {
	cmd.Env = slices.Clone(c.env)
	return c.Start(cmd)
}

// stat looks at a file of a container.
func (p *pod) stat(name, path string) (os.FileInfo, error) {
	p.Helper()
	c := p.container(name)
	host := filepath.Join(c.Root, path)
	for _, m := range c.Mounts { // the last that has it is the deepest
		if below, ok := strings.CutPrefix(path, m.Path+"/"); ok {
			host = filepath.Join(m.Source, below)
		}
	}
	return os.Stat(host)
}

// hook runs the postStart hook of Syncer's container, if it has one.
func (p *pod) hook() {
	p.Helper()
	if h := p.spec.Containers[0].Lifecycle; h != nil {
		if status, text := p.exec(provider, h.PostStart.Exec.Command...); status != 0 {
			p.Fatalf("the postStart hook failed with %d: %s", status, text)
		}
	}
}

// probe requires the exit status of the application's liveness probe, if there is one.
func (p *pod) probe(want int) {
	p.Helper()
	if l := p.spec.Containers[1].LivenessProbe; l != nil {
		if status, text := p.exec("app", l.Exec.Command...); status != want {
			p.Errorf("the liveness probe ended with %d, want %d: %s", status, want, text)
		}
	}
}

// Pod implements conjurd.Pods.
func (p *pod) Pod(_ context.Context, namespace, name string) (*conjurd.Pod, error) {
	if namespace != p.namespace || name != p.name {
		return nil, nil
	}
	found := &conjurd.Pod{ServiceAccount: p.spec.ServiceAccountName, Controllers: p.owners}
	for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
		found.Containers = append(found.Containers, c.Name)
	}
	return found, nil
}

// Exec implements conjurd.Pods, as a kubelet does it: the end of the input comes
// late, here after that of the process.
func (p *pod) Exec(ctx context.Context, _, _, name string, script []byte) error {
	p.mu.Lock()
	p.scripts++
	c := p.made[name]
	p.mu.Unlock()
	if c == nil {
		return errors.New("the container does not run")
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer feed.Close()
	cmd := &exec.Cmd{Path: "sh", Args: []string{"sh"}, Stdin: in}
	err = c.begin(cmd)
	_ = in.Close()
	if err != nil {
		return err
	}
	_, err = io.Copy(feed, bytes.NewReader(script))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case end := <-ended:
		return errors.Join(err, end)
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		return ctx.Err()
	}
}
