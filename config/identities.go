package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// allIdentities returns the default identity, if there is one, and the identities of the
// configuration file.
func (l *loader) allIdentities(cfg *Config) []Identity {
	var ids []Identity
	if cfg.Conjur.AuthnType != "" || len(l.process["identities"].items) == 0 || cfg.Destination != DestinationKubernetes {
		ids = append(ids, Identity{Conjur: cfg.Conjur})
	}
	if cfg.Destination != DestinationKubernetes {
		return ids
	}
	served := map[string]string{} // namespace, or namespace/name → the identity
	for _, id := range l.process["identities"].items {
		name := id["name"]
		if !name.set || name.bad {
			continue
		}
		if slices.ContainsFunc(ids, func(other Identity) bool { return other.Name == name.text }) {
			l.fail(name.key, "another identity has the name %q; rename one", name.text)
			continue
		}
		if !id["namespaces"].set && !id["secrets"].set && l.process["rotation.identity"].text == name.text {
			continue // it has no lane
		}
		ids = append(ids, Identity{
			Name:       name.text,
			Namespaces: l.ownNamespaces(id, cfg.Kubernetes, served),
			Secrets:    l.ownSecrets(id, cfg.Kubernetes, served),
			Conjur:     l.identityConjur(id, cfg.Conjur),
		})
		if !id["namespaces"].set && !id["secrets"].set {
			l.fail(name.key, "the identity %q serves nothing; list namespaces or secrets", name.text)
		}
	}
	l.checkServed(ids, cfg.Kubernetes)
	return ids
}

// ownNamespaces returns the namespaces of an identity. Each namespace may have only one
// identity.
func (l *loader) ownNamespaces(id item, k Kubernetes, served map[string]string) []string {
	return l.claimServed(id, "namespaces", "namespace", served, func(name string) error {
		if name == AllNamespaces {
			return errors.New("* is not the name of a namespace; the process's own identity serves all namespaces without another one")
		}
		return cmp.Or(checkLabel(name), k.checkServes(name))
	})
}

// ownSecrets returns the Secrets of an identity. Each Secret may have only one identity.
func (l *loader) ownSecrets(id item, k Kubernetes, served map[string]string) []string {
	return l.claimServed(id, "secrets", "Secret", served, func(text string) error {
		namespace, name, ok := strings.Cut(text, "/")
		listed := func(def definitions.SecretDefinition) bool { return def.Namespace == namespace && def.Name == name }
		switch {
		case !ok || checkLabel(namespace) != nil || definitions.CheckObjectName(name) != nil:
			return fmt.Errorf("%q does not name a Secret; write namespace/name", text)
		case !k.ByLabel() && !slices.ContainsFunc(k.Definitions, listed):
			return cmp.Or(k.checkServes(namespace), fmt.Errorf("the Secret %q is not listed; add it to kubernetes.secrets", text))
		}
		return k.checkServes(namespace)
	})
}

// claimServed reads a list of the names that an identity serves. It reports and omits a name that
// check refuses or that another identity serves.
func (l *loader) claimServed(id item, list, noun string, served map[string]string, check func(string) error) (kept []string) {
	key := id[list].key
	for _, name := range l.unique(key, id[list].names()) {
		other, taken := served[name]
		switch err := check(name); {
		case err != nil:
			l.fail(key, "%v", err)
		case taken:
			l.fail(key, "the %s %q is already that of the identity %q", noun, name, other)
		default:
			served[name] = id["name"].text
			kept = append(kept, name)
		}
	}
	return kept
}

// checkServed checks that all Secrets have an identity if there is no default identity.
func (l *loader) checkServed(ids []Identity, k Kubernetes) {
	if len(ids) == 0 || ids[0].Name == "" || l.src.Assume.Connection {
		return
	}
	const format = "no identity serves the %s %q, and the process has no default identity; name it in one, or set %s"
	all := &Config{Identities: ids}
	namespaces := k.Namespaces
	if k.NamespaceSelector != "" {
		namespaces = []string{AllNamespaces}
	}
	for _, namespace := range namespaces {
		if _, ok := all.IdentityOf(namespace, ""); !ok && k.ByLabel() {
			l.fail(l.process["identities"].key, format, "namespace", namespace, l.key("conjur.authnUrl"))
		}
	}
	for _, def := range k.Definitions {
		if _, ok := all.IdentityOf(def.Namespace, def.Name); !ok {
			l.fail(l.process["identities"].key, format, "Secret", def.Namespace+"/"+def.Name, l.key("conjur.authnUrl"))
		}
	}
}

// accountOf returns the account of the identity that fills a Secret.
func (l *loader) accountOf(namespace, name, process string) string {
	account := process
	for _, id := range l.process["identities"].items {
		if slices.Contains(id["secrets"].names(), namespace+"/"+name) {
			return cmp.Or(id["conjur.account"].text, process)
		}
		if slices.Contains(id["namespaces"].names(), namespace) {
			account = cmp.Or(id["conjur.account"].text, process)
		}
	}
	return account
}

// identityConjur returns the connection settings of an identity: the process's settings,
// with the identity's own overrides.
func (l *loader) identityConjur(id item, process Conjur) Conjur {
	own := Identity{Conjur: process}
	c := &own.Conjur
	c.Login, c.APIKey, c.APIKeyFile = "", secret.Value{}, ""
	table, _ := find(fileSettings(), "identities")
	for _, s := range table.items {
		if val := id[s.name]; val.set && !val.bad {
			s.fill(val, s.in(reflect.ValueOf(&own)))
		}
	}
	c.AuthnURL = strings.TrimRight(c.AuthnURL, "/")
	key := cmp.Or(id["conjur.authnUrl"].key, id["name"].key)
	switch {
	case id["conjur.authnUrl"].set:
		var err error
		if c.AuthnType, _, err = parseAuthnURL(c.AuthnURL); err != nil {
			l.fail(key, "%v", err)
			return *c
		}
	case id["conjur.apiKeyFile"].set && process.AuthnType != AuthnAPIKey:
		c.useAPIKey()
	case process.AuthnType == "" && !l.src.Assume.Connection:
		l.fail(key, "the identity %q has neither conjur.apiKeyFile nor conjur.authnUrl, and the process has no authenticator either; set one of them", id["name"].text)
		return *c
	}
	login{l, id}.checkAuthenticator(*c)
	if a, ok := authenticatorNamed(c.AuthnType); ok {
		for _, name := range credentialSettings() {
			if val := id[name]; val.set && !slices.Contains(a.settings(), name) {
				l.warn(val.key, "not used by the authenticator %s", a.name)
			}
		}
	}
	return *c
}
