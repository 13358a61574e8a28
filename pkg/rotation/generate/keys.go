package generate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/secretsync/syncer/pkg/secret"
)

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// pair generates a key pair as PEM: the private key in PKCS #8 and the public key
// in PKIX, or both in OpenSSH's formats.
func (c Config) pair() (map[string]secret.Value, error) {
	var key crypto.Signer
	var err error
	switch {
	case c.RSA != 0:
		key, err = rsa.GenerateKey(rand.Reader, c.RSA)
	case c.ECDSA != "":
		key, err = ecdsa.GenerateKey(curves[c.ECDSA], rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	if c.SSH {
		return openSSH(key)
	}
	private, err := privatePEM(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return map[string]secret.Value{"private": private, "public": toPEM("PUBLIC KEY", public)}, nil
}

func openSSH(key crypto.Signer) (map[string]secret.Value, error) {
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, fmt.Errorf("encoding a key for OpenSSH: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a public key for OpenSSH: %w", err)
	}
	return map[string]secret.Value{
		"private": secret.New(pem.EncodeToMemory(block)),
		"public":  secret.New(ssh.MarshalAuthorizedKey(public)),
	}, nil
}

func privatePEM(key crypto.Signer) (secret.Value, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return secret.Value{}, fmt.Errorf("encoding a private key: %w", err)
	}
	return toPEM("PRIVATE KEY", private), nil
}

func toPEM(kind string, der []byte) secret.Value {
	return secret.New(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
