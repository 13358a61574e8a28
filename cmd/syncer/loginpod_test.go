package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// podHost is a cluster with one Pod, whose container is the world of a login. It
// brings certificates as Conjur does, by the binary that is called sh there.
type podHost struct {
	login  *login
	signer *signer
	// life is that of the certificates that arrive.
	life    time.Duration
	brought atomic.Int64
	gone    atomic.Bool // the Pod is
}

var _ conjurd.Pods = (*podHost)(nil)

func (p *podHost) Pod(_ context.Context, namespace, name string) (*conjurd.Pod, error) {
	if p.gone.Load() || namespace != "shop" || name != "web-0" {
		return nil, nil
	}
	return &conjurd.Pod{ServiceAccount: "web", Containers: []string{"app", "syncer"}}, nil
}

func (p *podHost) Exec(_ context.Context, _, _, container string, script []byte) error {
	if container != "syncer" {
		return errors.New("another container")
	}
	p.brought.Add(1)
	block, _ := pem.Decode(script[bytes.Index(script, []byte("-----BEGIN")):])
	long, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	certificate, err := p.signer.sign(long.PublicKey, &x509.Certificate{ // a test cannot wait for the end of the long one
		Subject: long.Subject, URIs: long.URIs, KeyUsage: long.KeyUsage, NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(p.life),
	})
	if err != nil {
		return err
	}
	return p.sh(certificate)
}

// sh is fed the script of conjurd, as by the kubelet: the input does not end.
func (p *podHost) sh(certificate []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"sh"}
	cmd.Env = []string{asCommand + "=1", "CONJUR_CLIENT_CERT_PATH=" + p.path()}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := in.Write(conjurd.InjectionScript(certificate)); err != nil {
		return err
	}
	state, err := cmd.Process.Wait() // which does not close the input
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}

func (p *podHost) path() string { return p.login.Path("ssl", "client.pem") }

func TestLoginInAPod(t *testing.T) {
	t.Parallel()
	p := &podHost{signer: newSigner(t), life: 11 * time.Second}
	l := newLogin(t, "authn-k8s/prod", "app",
		"authn-k8s/namespace: shop, authn-k8s/service-account: web, authn-k8s/authentication-container-name: syncer",
		conjurdtest.With(func(o *conjurd.Options) { o.Kubernetes = p }))
	p.login = l
	l.admit(map[string]string{"ca/cert": string(p.signer.Cert), "ca/key": string(p.signer.Key)})
	if err := os.Mkdir(l.Path("ssl"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.Env["MY_POD_NAME"], l.Env["MY_POD_NAMESPACE"] = "web-0", "shop"
	// Each login waits for a process, which takes long where many run.
	l.Env["CONJUR_CLIENT_CERT_PATH"], l.Env["CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT"] = p.path(), "8"
	l.Env["CONJUR_HTTP_TIMEOUT"] = "20"
	l.survives(
		trouble{name: "a certificate renewed before its end", begin: func() {
			first := p.brought.Load()
			eventually(t, "another certificate", func() bool { return p.brought.Load() > first })
		}, end: func() {}},
		trouble{name: "a Pod that is gone", named: refused, begin: func() { p.gone.Store(true) }, end: func() { p.gone.Store(false) }},
	)
	if left, _ := os.ReadDir(l.Path("ssl")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
