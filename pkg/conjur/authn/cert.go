package authn

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/pkg/conjur"
)

// Cert authenticates by a client certificate from files. It reads them at every
// authentication.
type Cert struct {
	URL               string // as in https://host/authn-cert/service
	Login             string // empty if the certificate names the identity
	CertFile, KeyFile string // PEM; CertFile may include intermediates

	last *tls.Certificate // the last certificate in use
}

// Credential implements conjur.Authenticator. Files that do not match may be in the
// middle of a replacement. In that case it continues to use the previous
// certificate, if there is one.
func (c *Cert) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	pair, err := certs.ReadPair(c.CertFile, c.KeyFile)
	switch {
	case err == nil:
		c.last = &pair
	case c.last == nil:
		return conjur.Credential{}, fmt.Errorf("client certificate %s with the key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return conjur.Credential{URL: c.URL, Login: hostLogin(c.Login), Certificate: c.last}, nil
}
