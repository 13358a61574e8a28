package config

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/certs"
)

// login is the login whose settings are checked: an identity of the configuration file,
// or otherwise the process.
type login struct {
	*loader
	id item // nil for the process
}

// effective returns the effective setting. If the identity does not set it, the process's
// setting applies, except for settings that identify the login.
func (l login) effective(name string) value {
	own := l.id[name]
	if own.set || l.id != nil && slices.Contains([]string{"conjur.login", "conjur.apiKey", "conjur.apiKeyFile"}, name) {
		return own
	}
	return l.process[name]
}

// key is where a setting was set, or the best place to set it.
func (l login) key(name string) string {
	if l.id == nil {
		return l.loader.key(name)
	}
	return cmp.Or(l.id[name].key, l.id["name"].key)
}

// missing reports a setting that the authenticator needs.
func (l login) missing(name string, of AuthnType) {
	if l.id == nil {
		l.fail(l.key(name), "not set, but the authenticator %s needs it", of)
		return
	}
	if name == "conjur.apiKey" {
		name = "conjur.apiKeyFile"
	}
	l.fail(l.id["name"].key, "the identity %q has no %s, but the authenticator %s needs it", l.id["name"].text, name, of)
}

// checkAuthenticator checks that Syncer supports the authenticator, and that all its
// required settings are set.
func (l login) checkAuthenticator(c Conjur) {
	a, ok := authenticatorNamed(c.AuthnType)
	if !ok {
		if c.AuthnType != "" {
			l.fail(l.key("conjur.authnUrl"), "the authenticator %q is not supported; use one of %s", c.AuthnType, strings.Join(authenticatorNames(), ", "))
		}
		return
	}
	for _, oneOf := range a.needs {
		set := slices.ContainsFunc(oneOf, func(name string) bool { return l.effective(name).set })
		if !set && !l.src.Assume.Connection {
			l.missing(oneOf[0], a.name)
		}
	}
	for _, name := range a.settings() {
		l.checkCredential(name, c)
	}
}

// checkCredential checks the file or name in one setting of an authenticator.
func (l login) checkCredential(name string, c Conjur) {
	val, key := l.effective(name), l.key(name)
	switch {
	case val.bad:
	case name == "conjur.login" && c.AuthnType == AuthnK8s && val.set:
		l.checkK8sLogin(key, c.Login)
	case name == "conjur.apiKeyFile" && val.set && l.effective("conjur.apiKey").set:
		l.fail(key, "the API key itself is set too; remove one of the two")
	case name == "conjur.apiKeyFile" && val.set:
		l.checkKeyFile(key, c.APIKeyFile)
	case name == "conjur.jwtTokenPath":
		l.checkTokenPath(key, c.JWTTokenPath)
	case name == "conjur.clientCertPath":
		l.checkFolder(key, c.InboxPath)
	case name == "conjur.metadataUrl" && val.set:
		if !isMetadataURL(val.text) {
			l.fail(key, "not the address of a metadata service; write http://HOST or http://HOST:PORT")
		}
	case name == "conjur.clientKeyFile" && val.set && c.ClientCertFile != "":
		l.checkKeyPair(key, c)
	}
}

// checkKeyPair checks that a certificate and its key match. It reveals nothing of them.
func (l *loader) checkKeyPair(key string, c Conjur) {
	if l.src.Assume.Files {
		return
	}
	if _, err := certs.ReadPair(c.ClientCertFile, c.ClientKeyFile); err != nil {
		l.fail(key, "the client certificate %s and its key cannot be used: %v", c.ClientCertFile, err)
	}
}

// checkK8sLogin checks that Conjur can find the host.
func (l *loader) checkK8sLogin(key, host string) {
	switch {
	case !strings.HasPrefix(host, "host/"):
		l.fail(key, "authn-k8s needs the login of a host; begin %q with host/", host)
	case strings.Contains(host, "."):
		l.fail(key, "%q contains a dot, which Conjur replaces by a slash with authn-k8s; give the host an id without dots", host)
	}
}

// checkFolder checks that the folder for the certificate exists.
func (l *loader) checkFolder(key, path string) {
	if l.src.Assume.Files {
		return
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		l.fail(key, "Conjur writes the certificate to %s, and this folder does not exist; mount an emptyDir there", filepath.Dir(path))
	}
}

// isMetadataURL reports whether the text is a URL without a path.
func isMetadataURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// warnOfIdle warns of settings that no authenticator in use needs. It ignores the path of
// a token, because a chart sets it for all.
func (l *loader) warnOfIdle(ids []Identity) {
	used := map[string]bool{}
	var names []string
	for _, id := range ids {
		if a, ok := authenticatorNamed(id.Conjur.AuthnType); ok {
			names = append(names, string(a.name))
			for _, name := range a.settings() {
				used[name] = true
			}
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	inUse := strings.Join(slices.Compact(names), ", ")
	for _, name := range credentialSettings() {
		if val := l.process[name]; val.set && !used[name] && name != "conjur.jwtTokenPath" {
			l.warn(val.key, "not used by the authenticator %s", inUse)
		}
	}
}
