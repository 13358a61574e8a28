package config

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
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

// proxies checks the proxy variables as net/http reads them. It ignores an
// unparsable value, and connects directly. A value may contain a password, so no message
// shows it.
func (l *loader) proxies() {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if text := l.src.Getenv(name); text != "" && !isProxy(text) {
			l.fail(name, "not the address of a proxy; write http://HOST:PORT")
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if !isProxyExemption(l.src.Getenv(name)) {
			l.fail(name, "not a list of hosts, domains, addresses and CIDR ranges; separate them by commas, without https:// or a path")
		}
	}
	for _, name := range []string{"ALL_PROXY", "all_proxy"} {
		if l.src.Getenv(name) != "" {
			l.warn(name, "not used; set HTTPS_PROXY")
		}
	}
}

// isProxy reports whether a text is the address of a proxy. Without a scheme it is an
// address of HTTP.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		if u, err = url.Parse("http://" + text); err != nil {
			return false
		}
	}
	known := slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
	slip := u.Hostname() == "http" || u.Hostname() == "https" // http:/proxy, https//proxy
	return known && !slip && isHost(u.Hostname()) && isPort(cmp.Or(u.Port(), "80")) && !strings.HasSuffix(u.Host, ":")
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// isProxyExemption reports whether a text is a list for NO_PROXY.
func isProxyExemption(text string) bool {
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		_, _, isRange := net.ParseCIDR(item)
		if item == "" || item == "*" || isRange == nil {
			continue
		}
		if host, port, err := net.SplitHostPort(item); err == nil && isPort(port) {
			item = host
		}
		if !isHost(strings.TrimPrefix(strings.TrimPrefix(item, "*"), ".")) {
			return false
		}
	}
	return true
}

// isHost reports whether a text can be the name or the address of a host.
func isHost(text string) bool {
	return text != "" && (net.ParseIP(text) != nil || !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("/\\:;[]@?#%*", r)
	}))
}

// authenticator sets the authenticator and checks its required settings.
func (l *loader) authenticator(c *Conjur) {
	switch {
	case c.AuthnURL != "":
		var err error
		if c.AuthnType, _, err = parseAuthnURL(c.AuthnURL); err != nil {
			l.fail(l.key("conjur.authnUrl"), "%v", err)
		}
	case c.APIKey.Len() > 0 || c.APIKeyFile != "" || l.process["conjur.apiKey"].bad:
		c.useAPIKey()
	case !l.src.Assume.Connection && len(l.process["identities"].items) == 0:
		l.fail(l.key("conjur.authnUrl"), "not set, and neither is CONJUR_AUTHN_API_KEY; set one of them")
	}
	login{l, nil}.checkAuthenticator(*c)
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
	data, err := safefile.Read(path, safefile.MaxInput)
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

// certificates checks the source that Syncer will use. It only warns of an expired certificate:
// a bundle may contain another one, and the clock may be wrong.
func (l *loader) certificates(c *Conjur) {
	key, what, text := l.key("conjur.sslCertificate"), "the text", []byte(c.SSLCertificate)
	if c.SSLCertificate == "" {
		if c.CertFile == "" || l.src.Assume.Files {
			return
		}
		var err error
		key, what = l.key("conjur.certFile"), c.CertFile
		if text, err = safefile.Read(c.CertFile, safefile.MaxInput); err != nil {
			l.fail(key, "the certificate cannot be read: %v", err)
			return
		}
	}
	if _, err := certs.Roots(text); err != nil {
		l.fail(key, "%s %v", what, err)
	}
	if expired := certs.Expired(text, time.Now()); len(expired) > 0 {
		l.warn(key, "%s has expired certificates, which prove no server: %s; replace them by current ones", what, brief.List(expired))
	}
}
