package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/consumers"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/rotate"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/versions"
)

// RotatorParts is what a Rotator has beside its configuration. All may be zero,
// but Log.
type RotatorParts struct {
	Version  string         // of the build
	Cluster  *kube.Client   // nil: there is none
	Targets  rotate.Targets // nil: nobody shows a step
	Lease    time.Duration  // for how long a leader that lost its Lease may not know it
	Listener rotate.Listener
	Reports  []rotate.Report // what was known of the sets before
	Inbox    *inject.Inbox
	Log      *zap.Logger
}

// NewRotator returns what rotates the sets of a configuration, and closes its
// client of Conjur when it is asked to. The error says of all sets why they
// cannot be rotated.
func NewRotator(c config.Rotation, parts RotatorParts) (r *rotate.Rotator, closing func(), err error) {
	if parts.Inbox == nil {
		parts.Inbox = inject.NewInbox(c.Conjur.InboxPath)
	}
	client, err := conjur.New(ClientConfig(c.Conjur, parts.Version, parts.Log, parts.Inbox))
	if err != nil {
		return nil, nil, err
	}
	if r, err = newRotator(c, client, parts); err != nil {
		client.Close()
		return nil, nil, err
	}
	return r, client.Close, nil
}

// newRotator returns what rotates the sets of a configuration with a client of
// Conjur.
func newRotator(c config.Rotation, client *conjur.Client, parts RotatorParts) (*rotate.Rotator, error) {
	values, err := variables.New(client, variables.Config{Logger: parts.Log})
	if err != nil {
		return nil, err
	}
	a := rotation{c, parts, client}
	var sets []rotate.Rotated
	var errs []error
	for _, set := range c.Sets {
		rotated, err := a.set(set)
		if err != nil {
			errs = append(errs, fmt.Errorf("set %s: %w", set.Set, err))
		}
		sets = append(sets, rotated)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return rotate.New(rotate.Config{
		Conjur: client, Changes: values, Sets: sets, Targets: parts.Targets, Owner: c.Owner, PerHour: c.PerHour, Paused: c.Paused, FromPolicy: c.FromPolicy,
		Interval: c.Interval, Timeout: 3 * c.Conjur.HTTPTimeout, Quiet: c.Conjur.HTTPTimeout, Listener: parts.Listener, Log: parts.Log,
		Reports: parts.Reports,
	}), nil
}

// rotation makes the parts of sets.
type rotation struct {
	config config.Rotation
	parts  RotatorParts
	client *conjur.Client
}

func (a rotation) set(set config.RotatedSet) (rotate.Rotated, error) {
	var errs []error
	who, err := consumers.New(consumers.Config{
		Set: set.Set, Wait: set.Confirm.Wait, Restarted: set.Confirm.Restarted, Ask: set.Confirm.Ask, Namespace: set.Namespace,
		Settle: set.Settle, Unused: set.Unused, Migrate: set.Migrate, Targets: a.parts.Targets, Cluster: a.parts.Cluster, Now: a.now,
	})
	errs = append(errs, err)
	actuator, outside, err := a.actuator(set)
	errs = append(errs, err)
	rotated := rotate.Rotated{
		ID: set.Set, Generate: set.Generate,
		Schedule:  rotate.Schedule{Every: set.Every, Before: set.Before, General: set.General, Retry: set.GiveUp},
		Policy:    versions.Policy{Keep: set.Keep, Lease: a.parts.Lease, GiveUp: set.GiveUp},
		Consumers: who, Actuator: actuator, Outside: outside, Adopt: set.Adopt,
	}
	if set.Cron != "" {
		rotated.Schedule.Cron, err = cron.ParseStandard(set.Cron)
		errs = append(errs, err)
	}
	if len(set.Publish) > 0 {
		rotated.Publish = map[string]rotate.Published{}
		for id, p := range set.Publish {
			rotated.Publish[id] = rotate.Published(p)
		}
	}
	return rotated, errors.Join(errs...)
}

// now is the time by Conjur's clock, and by ours while that cannot be had.
func (a rotation) now() time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Conjur.HTTPTimeout)
	defer cancel()
	now, err := a.client.Time(ctx)
	if err != nil || now.IsZero() {
		return time.Now()
	}
	return now
}
