package main

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// longestRetry caps the time between two retries of a target.
const longestRetry = time.Minute

// templateLook is the time between looks at the template files without an
// event; a look is a stat of each.
const templateLook = 10 * time.Second

// newClient makes the client of Conjur.
func newClient(cfg *config.Config, log *zap.Logger) (*conjur.Client, error) {
	c := cfg.Conjur
	var authenticator conjur.Authenticator = conjur.JWT{URL: c.AuthnURL, TokenPath: c.JWTTokenPath, Login: c.Login}
	if c.AuthnType == config.AuthnAPIKey {
		authenticator = conjur.APIKey{URL: c.AuthnURL, Login: c.Login, Key: c.APIKey}
	}
	return conjur.New(conjur.Config{
		ApplianceURL:  c.ApplianceURL,
		Account:       c.Account,
		Authenticator: authenticator,
		CA:            c.SSLCertificate,
		CAFile:        c.CertFile,
		HTTPTimeout:   c.HTTPTimeout,
		ConfirmAfter:  confirmAfter(cfg),
		RequestBudget: requestBudget(cfg),
		Version:       version(),
		Logger:        log,
	})
}

// confirmAfter is the least time between two proofs that a variable is gone:
// such that the next poll, or the next retry where none is coming, counts.
func confirmAfter(cfg *config.Config) time.Duration {
	if cfg.Refresh.Enabled {
		return cfg.Refresh.Interval / 2
	}
	return min(cfg.Retry.Interval/2, longestRetry/2)
}

// queueConfig says how failures are retried: for ever beside an application
// that runs, within the configured limit before one that waits.
func (p *pipeline) queueConfig() queue.Config {
	most := longestRetry
	if p.cfg.Refresh.Enabled {
		most = min(most, p.cfg.Refresh.Interval)
	}
	limit := p.cfg.Retry.Limit
	if !p.cfg.Mode.OneShot() {
		limit = -1
	}
	return queue.Config{
		Backoff:   queue.Backoff{First: p.cfg.Retry.Interval, Max: most},
		Limit:     limit,
		Permanent: p.permanent,
	}
}

// permanent tells the errors that no retry mends: a content that cannot be
// rendered, and a variable that is gone where the poll will see it come back.
func (p *pipeline) permanent(err error) bool {
	var render *workers.RenderError
	var revoked *workers.RevokedError
	return errors.As(err, &render) || p.cfg.Refresh.Enabled && errors.As(err, &revoked)
}

// sources lists what runs above the queue: nothing in a one-shot process, and
// no watch where refresh is off.
func (p *pipeline) sources() []func(context.Context) {
	if p.cfg.Mode.OneShot() {
		return nil
	}
	run := []func(context.Context){p.newPoll().Run}
	if p.cfg.Refresh.Enabled && len(p.targets.TemplateFiles()) > 0 {
		run = append(run, p.templates.Run)
	}
	return run
}

func (p *pipeline) newPoll() *sources.Poll {
	poll := &sources.Poll{
		Interval:   p.cfg.Refresh.Interval,
		Deadline:   2 * p.cfg.Conjur.HTTPTimeout,
		Variables:  p.targets.Variables,
		Values:     p.client,
		ByVariable: p.targets.ByVariable,
		Altered:    func() []targets.Key { return p.sink.Altered(p.targets.All()) },
		Enqueue:    p.enqueue,
		Report:     p.troubles.Report,
		Beat:       p.status.Beat,
		Stuck:      p.pool.Overdue,
	}
	if anyWildcard(p.cfg.Targets) {
		poll.List = p.listing.refresh
	}
	return poll
}

func (p *pipeline) newTemplates() *sources.Templates {
	return &sources.Templates{
		Dir:        p.cfg.Folders.Templates,
		Interval:   templateLook,
		Files:      p.targets.TemplateFiles,
		ByTemplate: p.targets.ByTemplate,
		Enqueue:    p.enqueue,
		Report:     p.troubles.Report,
	}
}
