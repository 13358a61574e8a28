package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pods is what makes Pods run: a node, and, once the API server is ready,
// scheduler, controllers and the proxy of Services. Its parts are those of
// another program, but for the node, which is one of this.
type pods struct {
	program string // with the parts
	images  string // directory
	cgroup  string
	started bool // those that wait for the API server
}

// credentials are what the parts identify themselves with. The controllers
// have one mighty identity: making a service account for each takes seconds.
func (p *plane) credentials() error {
	kubelet, err := p.authority.issue("node", "", nodeName, nodeAddress)
	if err != nil {
		return err
	}
	client, err := p.authority.issue("kube-apiserver", "system:masters")
	if err != nil {
		return err
	}
	err = errors.Join(kubelet.write(p.dir, "kubelet-server"), client.write(p.dir, "apiserver-client"))
	for name, who := range map[string][2]string{
		"kubelet":    {"system:node:" + nodeName, "system:nodes"},
		"controller": {"system:kube-controller-manager", "system:masters"},
		"scheduler":  {"system:kube-scheduler", ""},
		"proxy":      {"system:kube-proxy", ""},
	} {
		id, issued := p.authority.issue(who[0], who[1])
		err = errors.Join(err, issued, os.WriteFile(p.path(name+".kubeconfig"), p.authority.kubeconfig(p.url, id), 0o600))
	}
	return err
}

// startNode starts the node, which waits for the API server by itself.
func (p *plane) startNode() error {
	if err := errors.Join(prepareNetwork(), makeCgroup(p.pods.cgroup)); err != nil {
		return err
	}
	args := []string{"--dir=" + p.dir, "--kubelet=" + p.pods.program, "--images=" + p.pods.images, "--cgroup=" + p.pods.cgroup}
	return p.run(part{name: "node", namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWNS, args: args})
}

// startControllers starts what would end if the API server were not there.
func (p *plane) startControllers() error {
	p.pods.started = true
	return errors.Join(
		p.run(part{program: p.pods.program, name: "kube-controller-manager", args: []string{
			"--kubeconfig=" + p.path("controller.kubeconfig"), "--leader-elect=false", "--secure-port=0",
			"--service-account-private-key-file=" + p.path("sa.key"), "--root-ca-file=" + p.path("ca.crt"),
			"--service-cluster-ip-range=" + serviceNetwork,
		}}),
		p.run(part{program: p.pods.program, name: "kube-scheduler", args: []string{
			"--kubeconfig=" + p.path("scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		}}),
		p.run(part{program: p.pods.program, name: "kube-proxy", args: []string{
			"--kubeconfig=" + p.path("proxy.kubeconfig"), "--proxy-mode=nftables", "--cluster-cidr=" + podNetwork,
			"--hostname-override=" + nodeName, "--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}}),
	)
}

// stopControllers ends them with the API server, as the loss of an election
// does: those that outlive an outage of 20 seconds look again up to 50 seconds
// after it.
func (p *plane) stopControllers() {
	for _, name := range []string{"kube-proxy", "kube-scheduler", "kube-controller-manager"} {
		p.child(name).kill()
	}
	p.pods.started = false
}

// podsReady returns an error while a Pod could not be made, run and find the
// API server.
func (p *plane) podsReady(ctx context.Context) error {
	node, err := p.get(ctx, "/api/v1/nodes/"+nodeName)
	if err != nil {
		return err
	}
	if !strings.Contains(string(node), `"type":"Ready","status":"True"`) {
		return errors.New("the node is not ready")
	}
	for _, path := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
		if _, err := p.get(ctx, "/api/v1/namespaces/default/"+path); err != nil {
			return err
		}
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(kubernetesService, "443"))
	if err != nil {
		return fmt.Errorf("the Service of the API server: %w", err)
	}
	return conn.Close()
}

// flagsForPods are those of the API server that differ.
func (p *plane) flagsForPods() []string {
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + nodeAddress, "--endpoint-reconciler-type=lease",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--kubelet-client-certificate=" + p.path("apiserver-client.crt"), "--kubelet-client-key=" + p.path("apiserver-client.key"),
		"--kubelet-certificate-authority=" + p.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
	}
}

// cgroupName is the cgroup of a plane in a directory, whose name it bears.
func cgroupName(dir string) string { return "syncer" + strings.ReplaceAll(dir, "/", "-") }
