package main

import (
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/workers"
)

// newClient makes the lane's client of Conjur.
func (l *lane) newClient() (*conjur.Client, error) {
	c := clientConfig(l.identity.Conjur, l.log)
	c.Confirmations = l.cfg.Removal.Confirmations
	c.ConfirmAfter = confirmAfter(l.cfg)
	c.Grace = l.cfg.Removal.Grace
	c.Brake = brake(l.cfg.Removal)
	c.RequestBudget = requestBudget(l.cfg)
	c.Observe = l.observe
	c.Held = func(e conjur.HoldEvent) { l.held(l, e) }
	return conjur.New(c)
}

// clientConfig is how Conjur is reached.
func clientConfig(c config.Conjur, log *zap.Logger) conjur.Config {
	var authenticator conjur.Authenticator = conjur.JWT{URL: c.AuthnURL, TokenPath: c.JWTTokenPath, Login: c.Login}
	if c.AuthnType == config.AuthnAPIKey {
		authenticator = conjur.APIKey{URL: c.AuthnURL, Login: c.Login, Key: c.APIKey, KeyFile: c.APIKeyFile}
	}
	return conjur.Config{
		ApplianceURL:  c.ApplianceURL,
		Account:       c.Account,
		Authenticator: authenticator,
		CA:            c.SSLCertificate,
		CAFile:        c.CertFile,
		HTTPTimeout:   c.HTTPTimeout,
		Version:       version(),
		Logger:        log,
	}
}

// brake is what holds removals back; see conjur.Brake.
func brake(r config.Removal) conjur.Brake {
	return conjur.Brake{Disabled: r.Brake == 0, Share: float64(r.Brake) / 100, Hold: r.BrakeHold}
}

// confirmAfter is the least time between two proofs that a variable is gone:
// such that the next poll, or the next retry where none is coming, counts.
func confirmAfter(cfg *config.Config) time.Duration {
	if cfg.Refresh.Enabled {
		return cfg.Refresh.Interval / 2
	}
	return cfg.Retry.Interval / 2
}

// queueConfig says how failures are retried: for ever beside an application
// that runs, within the configured limit before one that waits.
func (l *lane) queueConfig() queue.Config {
	limit := l.cfg.Retry.Limit
	if !l.cfg.Mode.OneShot() {
		limit = -1
	}
	return queue.Config{
		Backoff:   queue.Backoff{First: l.cfg.Retry.Interval, Max: l.cfg.LongestRetry()},
		Limit:     limit,
		Permanent: l.permanent,
		Name:      identityName(l.identity),
		Metrics:   l.queues,
	}
}

// permanent tells the errors that no retry mends. A variable that is gone is
// one of them where the poll will see it come back.
func (l *lane) permanent(err error) bool {
	return workers.Permanent(err, l.cfg.Refresh.Enabled)
}
