package pipeline

import (
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// newClient makes the lane's client of Conjur, and what knows its variables.
func (l *lane) newClient(cfg *config.Config) (err error) {
	c := ClientConfig(l.identity.Conjur, l.Version, l.Log, l.inbox)
	c.Observer = l
	if l.client, err = conjur.New(c); err != nil {
		return err
	}
	l.values, err = variables.New(l.client, variables.Config{Rules: rules(cfg), Listener: l, Logger: l.Log})
	return err
}

// rules are the settings about what is believed of the variables, and when.
func rules(cfg *config.Config) variables.Rules {
	return variables.Rules{
		Confirmations: cfg.Removal.Confirmations, ConfirmAfter: confirmAfter(cfg), Grace: cfg.Removal.Grace,
		Steady: steadyFor(cfg), Brake: brake(cfg.Removal), RequestBudget: requestBudget(cfg),
	}
}

// ClientConfig is how Conjur is reached.
func ClientConfig(c config.Conjur, version string, log *zap.Logger, inbox *inject.Inbox) conjur.Config {
	return conjur.Config{
		ApplianceURL:  c.ApplianceURL,
		Account:       c.Account,
		Authenticator: authenticator(c, inbox),
		TokenTimeout:  c.TokenTimeout,
		CA:            c.SSLCertificate,
		CAFile:        c.CertFile,
		HTTPTimeout:   c.HTTPTimeout,
		Version:       version,
		Logger:        log,
	}
}

// authenticator is how an identity logs in; nil for one that is not known.
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

// brake is what holds removals back; see variables.Brake.
func brake(r config.Removal) variables.Brake {
	return variables.Brake{Disabled: r.Brake == 0, Share: float64(r.Brake) / 100, Hold: r.BrakeHold}
}

// confirmAfter is the least time between two proofs that a variable is gone:
// such that the next poll, or the next retry where none is coming, counts.
func confirmAfter(cfg *config.Config) time.Duration {
	if cfg.Refresh.Enabled {
		return cfg.Refresh.Interval / 2
	}
	return cfg.Retry.Interval / 2
}

// steadyFor is how long an earlier value must be answered that is back so soon:
// a follower of Conjur that lags behind has caught up by then.
func steadyFor(cfg *config.Config) time.Duration {
	if !cfg.Refresh.Enabled {
		return 0
	}
	return max(3*cfg.Refresh.Interval, cfg.Removal.Grace)
}

// queueConfig says how failures are retried: for ever beside an application
// that runs, within the configured limit before one that waits.
func (l *lane) queueConfig(cfg *config.Config) queue.Config {
	limit := cfg.Retry.Limit
	if !cfg.Mode.OneShot() {
		limit = -1
	}
	var metrics workqueue.MetricsProvider
	if l.host != nil {
		metrics = l.host.metrics.Queues()
	}
	return queue.Config{
		Backoff:   backoffOf(cfg),
		Limit:     limit,
		Permanent: l.permanent,
		Delay:     l.renderings.Delay,
		Name:      l.name,
		Metrics:   metrics,
	}
}

// permanent reports whether no retry mends an error. A variable that is gone is
// one of them where the poll will see it come back.
func (l *lane) permanent(err error) bool {
	return workers.Permanent(err, l.config().Refresh.Enabled)
}
