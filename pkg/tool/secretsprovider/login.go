package secretsprovider

import (
	"path"
	"strings"

	"github.com/secretsync/syncer/config"
)

// onLogin notes the requirements of the login here, and returns the manual work for it.
func (n *notes) onLogin(c config.Conjur) (must []config.Problem) {
	hand := notes{}
	unmounted := func(key, file, what string) {
		if dir := path.Dir(file); file != "" && n.Container.MountOf(dir) == "" {
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
		if n.Container.ReadOnlyRoot {
			unmounted("CONJUR_CLIENT_CERT_PATH", c.InboxPath, "an emptyDir with medium Memory, to which Conjur brings the certificate")
		}
		n.add(AuthnURL, "Conjur, from release 1.10 on, runs sh in this container as before, for which its own role needs create and get on pods/exec; no shell has to be in the image")
	case config.AuthnIAM:
		n.add(AuthnURL, "the keys are found as by every program on AWS; without AWS_REGION the region is us-east-1")
	case config.AuthnAzure:
		if _, set := n.Container.Env["AZURE_FEDERATED_TOKEN_FILE"]; set {
			hand.add("AZURE_FEDERATED_TOKEN_FILE", "to be done by hand: authn-azure takes no token of AKS' workload identity; log in by authn-jwt with a projected token")
		}
		n.add(AuthnURL, "the machine's system-assigned identity is used; CONJUR_AUTHN_AZURE_CLIENT_ID chooses another, which was not possible before")
	case config.AuthnGCP:
		n.add(AuthnURL, "CONJUR_AUTHN_LOGIN may begin with host/, which it must not before")
	case config.AuthnCert:
		unmounted("CONJUR_AUTHN_CERT_FILE", c.ClientCertFile, "a Secret with the certificate")
		unmounted("CONJUR_AUTHN_CERT_KEY_FILE", c.ClientKeyFile, "a Secret with the certificate's key")
	}
	switch c.AuthnType {
	case config.AuthnIAM, config.AuthnAzure, config.AuthnGCP:
		n.add(AuthnURL, "the Pod keeps the identity that the cloud gives it; a network policy must let it out to 169.254.169.254")
	}
	return hand.list
}
