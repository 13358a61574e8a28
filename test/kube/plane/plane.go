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
	"strconv"
	"time"
)

// plane is a control plane: its directory, its keys, its two processes.
type plane struct {
	dir        string
	kubeconfig string // the administrator's, a path
	timeout    time.Duration
	url        string // of the API server
	ports      *ports
	authority  *authority
	client     *http.Client // the administrator
	etcd       *child
	apiserver  *child
	died       chan *child
}

// newPlane makes the directory and what the parts need to start: keys,
// certificates, the audit policy, ports.
func newPlane(dir string, timeout time.Duration) (*plane, error) {
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
		dir: dir, timeout: timeout, ports: held,
		kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
		url:        "https://127.0.0.1:" + strconv.Itoa(held.apiserver),
		died:       make(chan *child, 4), // never more than two are unread
	}
	if p.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	server, err := p.authority.issue("kube-apiserver", "", "127.0.0.1", "localhost")
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
	return p, errors.Join(
		p.authority.write(dir),
		server.write(dir, "apiserver"),
		writeServiceAccountKey(dir),
		os.WriteFile(p.path("audit-policy.yaml"), []byte(auditPolicy), 0o600),
		os.WriteFile(p.kubeconfig, p.authority.kubeconfig(p.url, admin), 0o600),
	)
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

// start starts both parts; the API server waits for etcd by itself.
func (p *plane) start() (err error) {
	if p.etcd, err = run(p.dir, "etcd", p.died, p.etcdFlags()...); err != nil {
		return err
	}
	p.apiserver, err = run(p.dir, "kube-apiserver", p.died, p.apiserverFlags()...)
	return err
}

// kill ends what runs, and waits for it.
func (p *plane) kill() {
	for _, c := range []*child{p.apiserver, p.etcd} {
		if c != nil {
			c.kill()
		}
	}
	p.ports.release()
}

func (p *plane) stopAPIServer() error {
	if !p.apiserver.running() {
		return errors.New("kube-apiserver is not running")
	}
	p.apiserver.kill()
	return nil
}

func (p *plane) startAPIServer() error {
	if p.apiserver.running() {
		return errors.New("kube-apiserver is running")
	}
	next, err := run(p.dir, "kube-apiserver", p.died, p.apiserverFlags()...)
	if err != nil {
		return err
	}
	p.apiserver = next
	return nil
}

// awaitReady asks /readyz, which includes the bootstrap roles of RBAC, until
// the answer is 200. It gives up early when the API server ends.
func (p *plane) awaitReady() <-chan error {
	apiserver := p.apiserver
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
		defer cancel()
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			err := p.ready(ctx)
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
				result <- fmt.Errorf("the API server was not ready within %v: %w\n%s", p.timeout, err, apiserver.lastWords())
				return
			}
		}
	}()
	return result
}

func (p *plane) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
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
