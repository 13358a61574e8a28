package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// allIdentities are the default one, if there is any, and those of the
// configuration file.
func (l *loader) allIdentities(cfg *Config) []Identity {
	var ids []Identity
	if cfg.Conjur.AuthnType != "" || len(l.identities.items) == 0 || cfg.Destination != DestinationKubernetes {
		ids = append(ids, Identity{Conjur: cfg.Conjur})
	}
	if cfg.Destination != DestinationKubernetes {
		return ids
	}
	served := map[string]string{} // namespace, or namespace/name → the identity
	for i := range l.identities.items {
		id := &l.identities.items[i]
		if !id.Name.set || id.Name.bad {
			continue
		}
		if slices.ContainsFunc(ids, func(other Identity) bool { return other.Name == id.Name.text }) {
			l.fail(id.Name.key, "the name %q is already that of another identity", id.Name.text)
			continue
		}
		ids = append(ids, Identity{
			Name:       id.Name.text,
			Namespaces: l.ownNamespaces(id, cfg.Kubernetes, served),
			Secrets:    l.ownSecrets(id, cfg.Kubernetes, served),
			Conjur:     l.identityConjur(id, cfg.Conjur),
		})
		if !id.Namespaces.set && !id.Secrets.set {
			l.fail(id.Name.key, "the identity %q serves nothing; list namespaces or secrets", id.Name.text)
		}
	}
	l.checkServed(ids, cfg.Kubernetes)
	return ids
}

// ownNamespaces are the namespaces of an identity, which no other may have.
func (l *loader) ownNamespaces(id *fileIdentity, k Kubernetes, served map[string]string) (kept []string) {
	key := id.Namespaces.key
	for _, name := range l.unique(key, id.Namespaces.names()) {
		switch other, taken := served[name]; {
		case name == AllNamespaces:
			l.fail(key, "* is not the name of a namespace; what no identity serves is served as the process's own")
		case checkLabel(name) != nil:
			l.fail(key, "%v", checkLabel(name))
		case taken:
			l.fail(key, "the namespace %q is already that of the identity %q", name, other)
		case !k.serves(name):
			l.fail(key, "the namespace %q is not one that is served; add it to the list of namespaces", name)
		default:
			served[name] = id.Name.text
			kept = append(kept, name)
		}
	}
	return kept
}

// ownSecrets are the Secrets of an identity, which no other may have.
func (l *loader) ownSecrets(id *fileIdentity, k Kubernetes, served map[string]string) (kept []string) {
	key := id.Secrets.key
	for _, text := range l.unique(key, id.Secrets.names()) {
		namespace, name, ok := strings.Cut(text, "/")
		listed := func(def targets.SecretDefinition) bool { return def.Namespace == namespace && def.Name == name }
		switch other, taken := served[text]; {
		case !ok || checkLabel(namespace) != nil || targets.CheckObjectName(name) != nil:
			l.fail(key, "%q is not the place of a Secret; write namespace/name", text)
		case taken:
			l.fail(key, "the Secret %q is already that of the identity %q", text, other)
		case !k.serves(namespace):
			l.fail(key, "the namespace %q is not one that is served; add it to the list of namespaces", namespace)
		case !k.ByLabel() && !slices.ContainsFunc(k.Definitions, listed):
			l.fail(key, "the Secret %q is not one that is listed", text)
		default:
			served[text] = id.Name.text
			kept = append(kept, text)
		}
	}
	return kept
}

// checkServed wants an identity for everything, when there is no default.
func (l *loader) checkServed(ids []Identity, k Kubernetes) {
	if len(ids) == 0 || ids[0].Name == "" || l.src.Assume.Connection {
		return
	}
	const format = "no identity serves the %s %q, and the process has none of its own; name it in one, or set %s"
	all := &Config{Identities: ids}
	for _, namespace := range k.Namespaces {
		if _, ok := all.IdentityOf(namespace, ""); !ok && k.ByLabel() {
			l.fail(l.identities.key, format, "namespace", namespace, l.key(nameAuthnURL))
		}
	}
	for _, def := range k.Definitions {
		if _, ok := all.IdentityOf(def.Namespace, def.Name); !ok {
			l.fail(l.identities.key, format, "Secret", def.Namespace+"/"+def.Name, l.key(nameAuthnURL))
		}
	}
}

// accountOf is the account of the identity that a Secret is filled as.
func (l *loader) accountOf(namespace, name, process string) string {
	account := process
	for i := range l.identities.items {
		id := &l.identities.items[i]
		if slices.Contains(id.Secrets.names(), namespace+"/"+name) {
			return cmp.Or(id.Conjur.Account.text, process)
		}
		if slices.Contains(id.Namespaces.names(), namespace) {
			account = cmp.Or(id.Conjur.Account.text, process)
		}
	}
	return account
}

// identityConjur is how an identity reaches Conjur: as the process does, save
// for what it has of its own.
func (l *loader) identityConjur(id *fileIdentity, process Conjur) Conjur {
	own, c := &id.Conjur, process
	c.Login, c.APIKey, c.APIKeyFile = own.Login.text, secret.Value{}, own.APIKeyFile.text
	c.Account = cmp.Or(own.Account.text, process.Account)
	c.JWTTokenPath = cmp.Or(own.JWTTokenPath.text, process.JWTTokenPath)
	c.AzureClientID = cmp.Or(own.AzureClientID.text, process.AzureClientID)
	c.ClientCertFile = cmp.Or(own.ClientCertFile.text, process.ClientCertFile)
	c.ClientKeyFile = cmp.Or(own.ClientKeyFile.text, process.ClientKeyFile)
	key := cmp.Or(own.AuthnURL.key, id.Name.key)
	switch {
	case own.AuthnURL.set:
		var err error
		c.AuthnURL = strings.TrimRight(own.AuthnURL.text, "/")
		if c.AuthnType, _, err = parseAuthnURL(c.AuthnURL); err != nil {
			l.fail(key, "%v", err)
			return c
		}
	case own.APIKeyFile.set && process.AuthnType != AuthnAPIKey:
		c.AuthnType, c.AuthnURL = AuthnAPIKey, ""
		if c.ApplianceURL != "" {
			c.AuthnURL = c.ApplianceURL + "/" + string(AuthnAPIKey)
		}
	case process.AuthnType == "" && !l.src.Assume.Connection:
		l.fail(key, "the identity %q has neither conjur.apiKeyFile nor conjur.authnUrl, and the process has no authenticator either; set one of them", id.Name.text)
		return c
	}
	who := identityLogin{l, id}
	l.checkLogin(who, c)
	if a, ok := authenticatorNamed(c.AuthnType); ok {
		for _, name := range credentialSettings() {
			if val := who.own(name); val.set && !slices.Contains(a.settings(), name) {
				l.warn(val.key, "not used by the authenticator %s", a.name)
			}
		}
	}
	return c
}
