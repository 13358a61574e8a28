package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

const defaultHTTPTimeout = 60 // seconds

// conjur puts together how Conjur is reached.
func (l *loader) conjur() Conjur {
	c := Conjur{
		ApplianceURL:   strings.TrimRight(l.required(nameApplianceURL), "/"),
		AuthnURL:       strings.TrimRight(l.text(nameAuthnURL, ""), "/"),
		Account:        l.required(nameAccount),
		Login:          l.text(nameLogin, ""),
		APIKey:         secret.New([]byte(l.text(nameAPIKey, ""))),
		JWTTokenPath:   l.text(nameJWTTokenPath, defaultJWTTokenPath),
		SSLCertificate: l.text(nameCertificate, ""),
		CertFile:       l.text(nameCertFile, ""),
		HTTPTimeout:    time.Duration(l.integer(nameHTTPTimeout, defaultHTTPTimeout)) * time.Second,
	}
	if c.ApplianceURL != "" {
		if _, err := parseURL(c.ApplianceURL); err != nil {
			l.fail(l.key(nameApplianceURL), "%v", err)
		}
	}
	l.authenticator(&c)
	l.certificates(&c)
	return c
}

// required gives a setting and reports it when it is missing.
func (l *loader) required(name string) string {
	if val := l.process[name]; !val.set && !l.src.Offline {
		l.fail(l.key(name), "not set")
	}
	return l.text(name, "")
}

// authenticator settles the type and checks what it needs.
func (l *loader) authenticator(c *Conjur) {
	switch {
	case c.AuthnURL != "":
		var err error
		if c.AuthnType, _, err = parseAuthnURL(c.AuthnURL); err != nil {
			l.fail(l.key(nameAuthnURL), "%v", err)
		}
	case c.APIKey.Len() > 0:
		c.AuthnType = AuthnAPIKey
		if c.ApplianceURL != "" {
			c.AuthnURL = c.ApplianceURL + "/" + string(AuthnAPIKey)
		}
	case !l.src.Offline:
		l.fail(l.key(nameAuthnURL), "not set, and neither is CONJUR_AUTHN_API_KEY; set one of them")
	}
	for _, name := range authenticators()[c.AuthnType].settings {
		if !l.process[name].set && !l.src.Offline {
			l.fail(l.key(name), "not set, but the authenticator %s needs it", c.AuthnType)
		}
	}
	switch {
	case c.AuthnType == "authn-k8s" && c.Login != "" && !strings.HasPrefix(c.Login, "host/"):
		l.fail(l.key(nameLogin), "%q does not begin with host/, as authn-k8s needs it", c.Login)
	case c.AuthnType != AuthnAPIKey && c.AuthnType != "" && c.APIKey.Len() > 0:
		l.warn(l.key(nameAPIKey), "not used by the authenticator %s", c.AuthnType)
	case c.AuthnType == AuthnJWT && !l.src.Offline:
		l.checkTokenPath(c.JWTTokenPath)
	}
}

// checkTokenPath lets the file itself come later, since the kubelet may still
// have to write it, but not the folder that it is mounted in.
func (l *loader) checkTokenPath(path string) {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		l.fail(l.key(nameJWTTokenPath), "neither the token file %s nor its folder exists", path)
	}
}

// certificates checks the source that will be used.
func (l *loader) certificates(c *Conjur) {
	switch {
	case c.SSLCertificate != "":
		if !hasCertificate([]byte(c.SSLCertificate)) {
			l.fail(l.key(nameCertificate), "the text holds no PEM certificate")
		}
	case c.CertFile != "" && !l.src.Offline:
		data, err := os.ReadFile(c.CertFile)
		if err != nil {
			l.fail(l.key(nameCertFile), "the certificate cannot be read: %v", err)
		} else if !hasCertificate(data) {
			l.fail(l.key(nameCertFile), "%s holds no PEM certificate", c.CertFile)
		}
	}
}

func hasCertificate(data []byte) bool {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return false
		}
		if block.Type == "CERTIFICATE" {
			if _, err := x509.ParseCertificate(block.Bytes); err == nil {
				return true
			}
		}
	}
}
