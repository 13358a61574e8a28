// Package connect makes the clients that a configuration describes: a Conjur client for
// an identity, and a client for the Kubernetes API server.
package connect

import (
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/kube"
)

// Options are the properties of a client that are not in the configuration. All may be
// zero.
type Options struct {
	Version  string          // of the build; servers log it
	Inbox    *inject.Inbox   // for authn-k8s; nil means the configured inbox
	Observer conjur.Observer // receives the requests to Conjur
	MayWrite func() error    // returns why Conjur must not be changed now; nil permits changes
	Log      *zap.Logger
	Remarker conjur.Remarker // receives persistent problems
}

// Conjur returns a client, which the caller must close. The error names the wrong
// setting. Conjur sends no request.
func Conjur(c config.Conjur, o Options) (*conjur.Client, error) {
	if o.Inbox == nil {
		o.Inbox = inject.NewInbox(c.InboxPath)
	}
	return conjur.New(conjur.Config{
		ApplianceURL:  c.ApplianceURL,
		Account:       c.Account,
		Authenticator: authenticator(c, o.Inbox),
		TokenTimeout:  c.TokenTimeout,
		CA:            c.SSLCertificate,
		CAFile:        c.CertFile,
		HTTPTimeout:   c.HTTPTimeout,
		MayWrite:      o.MayWrite,
		Version:       o.Version,
		Observer:      o.Observer,
		Remarker:      o.Remarker,
		Logger:        o.Log,
	})
}

// authenticator returns how an identity logs in, or nil for an unknown type.
func authenticator(c config.Conjur, inbox *inject.Inbox) conjur.Authenticator {
	switch c.AuthnType {
	case config.AuthnAPIKey:
		return authn.APIKey{URL: c.AuthnURL, Login: c.Login, Key: c.APIKey, KeyFile: c.APIKeyFile}
	case config.AuthnJWT:
		return authn.JWT{URL: c.AuthnURL, Login: c.Login, TokenPath: c.JWTTokenPath}
	case config.AuthnK8s:
		return &authn.K8s{URL: c.AuthnURL, Login: c.Login, Namespace: c.PodNamespace, Pod: c.PodName, Inbox: inbox, Wait: c.InboxWait}
	case config.AuthnIAM:
		return &authn.IAM{URL: c.AuthnURL, Login: c.Login}
	case config.AuthnAzure:
		return authn.Azure{URL: c.AuthnURL, Login: c.Login, ClientID: c.AzureClientID, Metadata: c.MetadataURL}
	case config.AuthnGCP:
		return authn.GCP{URL: c.AuthnURL, Login: c.Login, Account: c.Account, Metadata: c.MetadataURL}
	case config.AuthnCert:
		return &authn.Cert{URL: c.AuthnURL, Login: c.Login, CertFile: c.ClientCertFile, KeyFile: c.ClientKeyFile}
	}
	return nil
}

// Kubernetes returns a client, which the caller must close.
func Kubernetes(k config.Kubernetes, o Options) (*kube.Client, error) {
	return kube.Connect(kube.Config{Kubeconfig: k.Kubeconfig, UserAgent: "syncer/" + o.Version, Log: o.Log})
}
