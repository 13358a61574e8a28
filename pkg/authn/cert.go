package authn

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/safefile"
)

// Cert authenticates by a client certificate from files, read at every
// authentication.
type Cert struct {
	URL               string // as in https://host/authn-cert/service
	Login             string // empty: the certificate says who it is
	CertFile, KeyFile string // PEM; the certificate with those that it was signed by, if any

	last *tls.Certificate // the one that was used last
}

// Credential implements conjur.Authenticator. Files that do not fit together
// may be in the course of being replaced: the certificate before goes on being
// used, if there is one.
func (c *Cert) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	pair, err := c.read()
	switch {
	case err == nil:
		c.last = &pair
	case c.last == nil:
		return conjur.Credential{}, fmt.Errorf("client certificate %s with the key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return conjur.Credential{URL: c.URL, Login: hostLogin(c.Login), Certificate: c.last}, nil
}

func (c *Cert) read() (tls.Certificate, error) {
	certificate, err := safefile.Read(c.CertFile, mostRead)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := safefile.Read(c.KeyFile, mostRead)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer clear(key)
	return tls.X509KeyPair(certificate, key)
}
