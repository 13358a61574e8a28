package conjurd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// authenticateCert returns an access token for the host that a client certificate
// identifies. By default the path names the host, and the host's annotation must
// equal the certificate's common name. In the host mode "spiffe" the SPIFFE URI of
// the certificate names the host.
func (s *Server) authenticateCert(c *call) reply {
	a := newAuthenticator(authnCert, c)
	role, err := s.checkCert(c, a)
	return s.decide(c, a, role, err)
}

func (s *Server) checkCert(c *call, a *authenticator) (role string, err error) {
	if err := s.view(c.ctx(), a.readSettings); err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(a.setting["ca-cert"])) {
		return "", errors.New("the variable ca-cert holds no certificate in PEM")
	}
	leaf, err := s.clientCertificate(c, roots)
	if err != nil {
		return "", err
	}
	if a.setting["host-mode"] == "spiffe" {
		if c.vars["login"] != "" {
			return "", errors.New("the path names a host, and the certificate does too")
		}
		id, err := a.spiffeHost(leaf)
		if err != nil {
			return "", err
		}
		role = string(policy.MakeRef(a.account, "host", id))
		return role, s.admit(c, a, role, func(*store.Object) error { return nil })
	}
	if c.vars["login"] == "" {
		return "", errors.New("the path names no host")
	}
	role = roleOf(a.account, c.vars["login"])
	return role, s.admit(c, a, role, func(o *store.Object) error {
		asked, err := a.restrictions(o, "cn")
		if err != nil {
			return err
		}
		if asked["cn"] == "" {
			return errors.New("the host needs the annotation authn-cert/cn")
		}
		return match(asked, map[string]string{"cn": leaf.Subject.CommonName})
	})
}

// clientCertificate returns the client certificate of the connection. One of the
// roots must have signed it, directly or through intermediates, for client
// authentication. A certificate in a proxy's header is ignored, because anybody can
// send one.
func (s *Server) clientCertificate(c *call, roots *x509.CertPool) (*x509.Certificate, error) {
	if c.r.TLS == nil || len(c.r.TLS.PeerCertificates) == 0 {
		return nil, errors.New("the connection has no client certificate")
	}
	leaf, between := c.r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, cert := range c.r.TLS.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: s.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return leaf, err
}

// spiffeHost returns the id of the host in a certificate's SPIFFE URI.
func (a *authenticator) spiffeHost(leaf *x509.Certificate) (string, error) {
	if len(leaf.URIs) != 1 || leaf.URIs[0].Scheme != "spiffe" {
		return "", errors.New("the certificate has not one SPIFFE URI")
	}
	uri := leaf.URIs[0]
	if uri.Host != a.setting["trust-domain"] {
		return "", fmt.Errorf("the certificate is of the trust domain %q", uri.Host)
	}
	id := strings.Trim(uri.Path, "/")
	if path := strings.Trim(a.setting["identity-path"], "/"); path != "" {
		id = path + "/" + id
	}
	return id, nil
}
