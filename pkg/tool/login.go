package tool

import (
	"path"
	"strings"

	"github.com/secretsync/syncer/config"
)

// login is how the process that fills a target logs in to Conjur.
type login struct {
	Authenticator config.AuthnType `json:"authenticator,omitempty"` // none: not known
	Proof         string           `json:"proof,omitempty"`         // what says who logs in
	Missing       []config.Problem `json:"missing"`
}

// loginOf returns how a process with the configuration logs in, as one of its
// identities; nil if nothing is said about Conjur. p is the provider in the
// manifest; nil: there is none.
func (t *Tool) loginOf(cfg *config.Config, as config.Conjur, p *provider) *login {
	if cfg == nil || as.AuthnType == "" && as.ApplianceURL == "" && as.Account == "" {
		return nil
	}
	l := &login{Authenticator: as.AuthnType, Proof: as.AuthnType.Proof(), Missing: []config.Problem{}}
	var complete config.Validation // what there is to say if nothing is assumed
	if p == nil {
		src := t.Sources
		src.Assume = config.Assumptions{Namespace: true, Files: true}
		_, complete = t.loadFrom(src)
	} else {
		_, complete = t.loadProvider(*p, true)
	}
	l.Missing = append(l.Missing, complete.Errors...)
	if p != nil && p.unknown(authnURL) && cfg.Conjur.AuthnURL == as.AuthnURL {
		l.Authenticator, l.Proof = "", ""
		l.Missing = append(l.Missing, config.Problem{Key: authnURL, Message: "the manifest has no value for it"})
	}
	return l
}

const authnURL = "CONJUR_AUTHN_URL"

// add adds the login to what is explained.
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

// onLogin says what logging in takes here, and returns what of it is to be done
// by hand.
func (n *notes) onLogin(c config.Conjur) (must []config.Problem) {
	hand := notes{}
	unmounted := func(key, file, what string) {
		if dir := path.Dir(file); file != "" && n.container.MountOf(dir) == "" {
			hand.add(key, "to be done by hand: nothing is mounted at %s; mount %s", dir, what)
		}
	}
	switch c.AuthnType {
	case config.AuthnJWT:
		if c.JWTTokenPath != "" && !strings.HasPrefix(c.JWTTokenPath, "/var/run/secrets/kubernetes.io/serviceaccount/") {
			_, key := n.setting("jwt-token-path", "JWT_TOKEN_PATH")
			unmounted(key, c.JWTTokenPath, "a projected volume with a serviceAccountToken of the audience that Conjur wants")
		}
	case config.AuthnK8s:
		if n.container.ReadOnlyRoot {
			unmounted("CONJUR_CLIENT_CERT_PATH", c.InboxPath, "an emptyDir with medium Memory, to which Conjur brings the certificate")
		}
		n.add(authnURL, "Conjur, from release 1.10 on, runs sh in this container as before, for which its own role needs create and get on pods/exec; no shell has to be in the image")
	case config.AuthnIAM:
		n.add(authnURL, "the keys are found as by every program on AWS; without AWS_REGION the region is us-east-1")
	case config.AuthnAzure:
		if _, set := n.container.Env["AZURE_FEDERATED_TOKEN_FILE"]; set {
			hand.add("AZURE_FEDERATED_TOKEN_FILE", "to be done by hand: authn-azure takes no token of AKS' workload identity; log in by authn-jwt with a projected token")
		}
		n.add(authnURL, "the machine's system-assigned identity is used; CONJUR_AUTHN_AZURE_CLIENT_ID chooses another, which was not possible before")
	case config.AuthnGCP:
		n.add(authnURL, "CONJUR_AUTHN_LOGIN may begin with host/, which it must not before")
	case config.AuthnCert:
		unmounted("CONJUR_AUTHN_CERT_FILE", c.ClientCertFile, "a Secret with the certificate")
		unmounted("CONJUR_AUTHN_CERT_KEY_FILE", c.ClientKeyFile, "a Secret with the certificate's key")
	}
	switch c.AuthnType {
	case config.AuthnIAM, config.AuthnAzure, config.AuthnGCP:
		n.add(authnURL, "the Pod keeps the identity that the cloud gives it; a network policy must let it out to 169.254.169.254")
	}
	return hand.list
}
