package tool

import (
	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// login describes how the process that fills a target logs in to Conjur.
type login struct {
	Authenticator config.AuthnType `json:"authenticator,omitempty"` // empty: unknown
	Proof         string           `json:"proof,omitempty"`         // how the identity is proven
	Missing       []config.Problem `json:"missing"`
}

// loginOf returns how a process with the configuration logs in, as one of its identities.
// It returns nil if the configuration has no settings for Conjur. p is the provider in
// the manifest, or nil.
func (t *Tool) loginOf(cfg *config.Config, as config.Conjur, p *secretsprovider.Provider) *login {
	if cfg == nil || as.AuthnType == "" && as.ApplianceURL == "" && as.Account == "" {
		return nil
	}
	l := &login{Authenticator: as.AuthnType, Proof: as.AuthnType.Proof(), Missing: []config.Problem{}}
	var complete config.Validation // the problems without assumptions
	if p == nil {
		src := t.Sources
		src.Assume = config.Assumptions{Namespace: true, Files: true}
		_, complete = t.loadFrom(src)
	} else {
		_, complete = p.Load(t.Sources, t.TemplatesNamed, true)
	}
	l.Missing = append(l.Missing, complete.Errors...)
	if p != nil && p.Unknown(secretsprovider.AuthnURL) && cfg.Conjur.AuthnURL == as.AuthnURL {
		l.Authenticator, l.Proof = "", ""
		l.Missing = append(l.Missing, config.Problem{Key: secretsprovider.AuthnURL, Message: "the manifest has no value for it"})
	}
	return l
}

// addTo adds the login to an explanation.
func (l *login) addTo(table table) {
	if l == nil {
		return
	}
	head := "not known"
	if l.Authenticator != "" {
		head = string(l.Authenticator) + ": " + l.Proof
	}
	lines := []string{head}
	for _, p := range l.Missing {
		lines = append(lines, "missing: "+p.Error())
	}
	table.list("login", lines)
}
