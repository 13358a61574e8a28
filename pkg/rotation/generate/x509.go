package generate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// X509 configures a certificate. Its key is ECDSA P-256.
type X509 struct {
	Subject   string   `json:"subject,omitempty" name:"subject"`                           // the common name
	Names     []string `json:"names,omitempty" name:"names" kind:"texts"`                  // DNS names and IP addresses
	Days      int      `json:"days,omitempty" name:"days" min:"1" max:"3650" follows:"90"` // from now, 1 to 3650; 0 means 90
	Authority bool     `json:"authority,omitempty" name:"authority"`                       // may sign other certificates
	CA        string   `json:"ca,omitempty" name:"ca" follows:"it signs itself"`           // set whose primary signs; "": self-signed
}

func (x X509) validate() error {
	switch {
	case x.Subject == "" && len(x.Names) == 0:
		return errors.New("generate.x509 has neither subject nor names; set one")
	case x.Days < 0 || x.Days > 3650:
		return fmt.Errorf("generate.x509.days is %d; set 1 to 3650", x.Days)
	}
	return nil
}

func (x X509) parts(now time.Time, issuer *Issuer) (map[string]secret.Value, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	crt := x.template(now)
	parent, signer := crt, crypto.Signer(key)
	if x.CA != "" {
		if parent, signer, err = issuer.signingPair(x.CA); err != nil {
			return nil, err
		}
		if parent.NotAfter.Before(crt.NotAfter) {
			return nil, fmt.Errorf("the certificate of %s ends on %s, before the one that it is to sign; rotate it first, or set fewer days", x.CA, parent.NotAfter.Format(time.DateOnly))
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, crt, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	private, err := privatePEM(key)
	if err != nil {
		return nil, err
	}
	return map[string]secret.Value{"crt": toPEM("CERTIFICATE", der), "private": private}, nil
}

func (x X509) template(now time.Time) *x509.Certificate {
	days := x.Days
	if days == 0 {
		days = 90
	}
	crt := &x509.Certificate{
		Subject:   pkix.Name{CommonName: x.Subject},
		NotBefore: now.Add(-5 * time.Minute), // tolerate clock differences
		NotAfter:  now.AddDate(0, 0, days),
		KeyUsage:  x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if x.Authority {
		crt.IsCA, crt.KeyUsage, crt.ExtKeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, nil
	}
	for _, name := range x.Names {
		if ip := net.ParseIP(name); ip != nil {
			crt.IPAddresses = append(crt.IPAddresses, ip)
		} else {
			crt.DNSNames = append(crt.DNSNames, name)
		}
	}
	return crt
}

// signingPair returns the certificate and the key of the signing set.
func (i *Issuer) signingPair(set string) (*x509.Certificate, crypto.Signer, error) {
	if i == nil {
		return nil, nil, fmt.Errorf("the set %s, which is to sign, has no primary yet; begin it first", set)
	}
	pair, err := tls.X509KeyPair(i.Crt.Bytes(), i.Private.Bytes())
	if err != nil {
		return nil, nil, fmt.Errorf("the primary of %s has no certificate with its key in the parts crt and private; it cannot sign", set)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, nil, fmt.Errorf("the certificate of %s may not sign others; generate it with authority: true", set)
	}
	return pair.Leaf, signer, nil
}
