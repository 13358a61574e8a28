package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/internal/safefile"
)

// conjur checks and completes the connection settings of Conjur.
func (l *loader) conjur(cfg *Config) {
	c := &cfg.Conjur
	c.ApplianceURL, c.AuthnURL = strings.TrimRight(c.ApplianceURL, "/"), strings.TrimRight(c.AuthnURL, "/")
	c.PodNamespace, c.PodName = cfg.Kubernetes.Namespace, cfg.Kubernetes.PodName
	for _, name := range []string{"conjur.applianceUrl", "conjur.account"} {
		if !l.process[name].set && !l.src.Assume.Connection {
			l.fail(l.key(name), "not set")
		}
	}
	if c.ApplianceURL != "" {
		if _, err := parseURL(c.ApplianceURL); err != nil {
			l.fail(l.key("conjur.applianceUrl"), "%v", err)
		}
	}
	l.authenticator(c)
	l.certificates(c)
}

// authenticator sets the authenticator and checks its required settings.
func (l *loader) authenticator(c *Conjur) {
	switch {
	case c.AuthnURL != "":
		var err error
		if c.AuthnType, _, err = parseAuthnURL(c.AuthnURL); err != nil {
			l.fail(l.key("conjur.authnUrl"), "%v", err)
		}
	case c.APIKey.Len() > 0 || c.APIKeyFile != "":
		c.useAPIKey()
	case !l.src.Assume.Connection && len(l.process["identities"].items) == 0:
		l.fail(l.key("conjur.authnUrl"), "not set, and neither is CONJUR_AUTHN_API_KEY; set one of them")
	}
	login{l, nil}.check(*c)
}

// useAPIKey selects the authenticator that has no separate URL.
func (c *Conjur) useAPIKey() {
	c.AuthnType, c.AuthnURL = AuthnAPIKey, ""
	if c.ApplianceURL != "" {
		c.AuthnURL = c.ApplianceURL + "/" + string(AuthnAPIKey)
	}
}

// checkKeyFile checks that a file is not empty. It reveals none of the content.
func (l *loader) checkKeyFile(key, path string) {
	if l.src.Assume.Files {
		return
	}
	data, err := safefile.Read(path, maxFileBytes)
	switch {
	case err != nil && !strings.Contains(path, "/"): // the text may be the key itself
		l.fail(key, "the API key cannot be read: %v", cause(err))
	case err != nil:
		l.fail(key, "the API key cannot be read: %v", err)
	case len(bytes.TrimSpace(data)) == 0:
		l.fail(key, "%s contains no API key; write it there", path)
	}
}

// checkTokenPath checks that the folder of a token exists. The kubelet may write the file
// later.
func (l *loader) checkTokenPath(key, path string) {
	if strings.HasPrefix(path, "eyJ") && strings.Count(path, ".") == 2 {
		l.fail(key, "this is a token, not the path of a file; write the token to a file, and its path here")
		return
	}
	_, err := os.Stat(path)
	if l.src.Assume.Files || !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		l.fail(key, "neither the token file %s nor its folder exists; mount the token there", path)
	}
}

// certificates checks the source that Syncer will use.
func (l *loader) certificates(c *Conjur) {
	switch {
	case c.SSLCertificate != "":
		if _, err := certs.Roots([]byte(c.SSLCertificate)); err != nil {
			l.fail(l.key("conjur.sslCertificate"), "the text contains no PEM certificate; begin it with -----BEGIN CERTIFICATE-----")
		}
	case c.CertFile != "" && !l.src.Assume.Files:
		if _, err := certs.ReadRoots(c.CertFile); errors.Is(err, certs.ErrNone) {
			l.fail(l.key("conjur.certFile"), "%s contains no PEM certificate; write one that begins with -----BEGIN CERTIFICATE-----", c.CertFile)
		} else if err != nil {
			l.fail(l.key("conjur.certFile"), "the certificate cannot be read: %v", err)
		}
	}
}
