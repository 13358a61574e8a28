package plane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// plane is a control plane: its directory, its keys, its processes.
type plane struct {
	dir        string
	kubeconfig string // the administrator's, a path
	timeout    time.Duration
	url        string // of the API server
	ports      *ports
	authority  *authority
	client     *http.Client // the administrator
	pods       *pods        // nil: no Pod runs
	children   []*child
	died       chan *child
}

// newPlane makes the directory and what the parts need to start: keys,
// certificates, the audit policy, ports.
func newPlane(dir string, timeout time.Duration, pods *pods) (*plane, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(dir); err != nil {
		return nil, err
	} else if len(there) > 0 {
		return nil, fmt.Errorf("%s is not empty: each start makes new keys, so that old state is of no use", dir)
	}
	held, err := holdPorts()
	if err != nil {
		return nil, err
	}
	p := &plane{
		dir: dir, timeout: timeout, ports: held, pods: pods,
		kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
		url:        "https://127.0.0.1:" + strconv.Itoa(held.apiserver),
		died:       make(chan *child, 8), // never more than six are unread
	}
	if p.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	server, err := p.authority.issue("kube-apiserver", "", "127.0.0.1", "localhost", kubernetesService)
	if err != nil {
		return nil, err
	}
	admin, err := p.authority.issue("admin", "system:masters")
	if err != nil {
		return nil, err
	}
	if p.client, err = p.authority.client(admin); err != nil {
		return nil, err
	}
	if pods != nil {
		pods.cgroup = cgroupName(dir)
		if err := p.credentials(); err != nil {
			return nil, err
		}
	}
	return p, errors.Join(
		p.authority.write(dir),
		server.write(dir, "apiserver"),
		writeServiceAccountKey(dir),
		os.WriteFile(p.path("audit-policy.yaml"), []byte(auditPolicy), 0o600),
		os.WriteFile(p.kubeconfig, p.authority.kubeconfig(p.url, admin), 0o600),
	)
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

// start starts etcd, the API server, which waits for etcd by itself, and the
// node.
func (p *plane) start() error {
	err := errors.Join(p.run(part{name: "etcd", args: p.etcdFlags()}), p.run(p.apiserver()))
	if err == nil && p.pods != nil {
		err = p.startNode()
	}
	return err
}

func (p *plane) apiserver() part { return part{name: "kube-apiserver", args: p.apiserverFlags()} }

// child returns the part of this name that was started last.
func (p *plane) child(name string) *child {
	for _, c := range slices.Backward(p.children) {
		if c.name == name {
			return c
		}
	}
	return nil
}

// kill ends what runs, the last started first, and waits for it.
func (p *plane) kill() {
	for _, c := range slices.Backward(p.children) {
		c.kill()
	}
	if p.pods != nil {
		if err := removeCgroup(p.pods.cgroup); err != nil {
			fmt.Fprintln(os.Stderr, "kube up:", err)
		}
	}
	p.ports.release()
}

func (p *plane) stopAPIServer() error {
	apiserver := p.child("kube-apiserver")
	if !apiserver.running() {
		return errors.New("kube-apiserver is not running")
	}
	apiserver.kill()
	if p.pods != nil {
		p.stopControllers()
	}
	return nil
}

func (p *plane) startAPIServer() error {
	if p.child("kube-apiserver").running() {
		return errors.New("kube-apiserver is running")
	}
	return p.run(p.apiserver())
}

// awaitReady asks again and again until ready returns no error. It gives up
// early when the API server ends.
func (p *plane) awaitReady(ready func(context.Context) error) <-chan error {
	apiserver := p.child("kube-apiserver")
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
		defer cancel()
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			err := ready(ctx)
			if err == nil {
				result <- nil
				return
			}
			select {
			case <-tick.C:
			case <-apiserver.done:
				result <- apiserver.failure()
				return
			case <-ctx.Done():
				result <- fmt.Errorf("not ready within %v: %w\n%s", p.timeout, err, apiserver.lastWords())
				return
			}
		}
	}()
	return result
}

// ready returns an error while /readyz, which includes the bootstrap roles of
// RBAC, is not 200.
func (p *plane) ready(ctx context.Context) error {
	_, err := p.get(ctx, "/readyz")
	return err
}

// get asks the API server; another status than 200 is an error.
func (p *plane) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// client is an HTTP client with the certificate given.
func (a *authority) client(id identity) (*http.Client, error) {
	pair, err := tls.X509KeyPair(id.cert, id.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}
