// Package rotators makes what rotates the sets of a configuration: of each set its
// schedule, who uses it, and what has the outside accept its versions. What a set
// does then is in package rotation.
package rotators

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Parts are what a Rotator has beside its configuration. All may be zero, but Log.
type Parts struct {
	connect.Options
	Cluster  *kube.Client     // nil: there is none
	Targets  rotation.Targets // nil: nobody shows a step
	Lease    time.Duration    // for how long a leader that lost its Lease may not know it
	Listener rotation.Listener
	Reports  []rotation.Report // what was known of the sets before
}

// Connect returns what rotates the sets of a configuration, and what closes its
// client of Conjur. The errors are those of New.
func Connect(c config.Rotation, parts Parts) (r *rotation.Rotator, closing func(), err error) {
	client, err := connect.Conjur(c.Conjur, parts.Options)
	if err != nil {
		return nil, nil, err
	}
	if r, err = New(c, client, parts); err != nil {
		client.Close()
		return nil, nil, err
	}
	return r, client.Close, nil
}

// New returns what rotates the sets of a configuration with a client of Conjur. The
// error says of all sets why they cannot be rotated.
func New(c config.Rotation, client *conjur.Client, parts Parts) (*rotation.Rotator, error) {
	values, err := variables.New(client, variables.Config{Logger: parts.Log})
	if err != nil {
		return nil, err
	}
	a := assembly{c, parts, client}
	var sets []rotation.Rotated
	var errs []error
	for _, set := range c.Sets {
		rotated, err := a.set(set)
		if err != nil {
			errs = append(errs, &rotation.SetError{Set: set.Set, Err: err})
		}
		sets = append(sets, rotated)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var seen *rotation.Seen
	if c.StepsFile != "" {
		if seen, err = rotation.OpenSeen(c.StepsFile); err != nil {
			return nil, fmt.Errorf("rotation.stepsFile: %w", err)
		}
	}
	return rotation.New(rotation.Config{
		Conjur: client, Seen: seen, Changes: values, Sets: sets, Targets: parts.Targets, Owner: c.Owner, PerHour: c.PerHour, Paused: c.Paused, FromPolicy: c.FromPolicy,
		Interval: c.Interval, Timeout: 3 * c.Conjur.HTTPTimeout, Quiet: c.Conjur.HTTPTimeout, Listener: parts.Listener, Log: parts.Log,
		Reports: parts.Reports,
	}), nil
}

// assembly makes the parts of sets.
type assembly struct {
	config config.Rotation
	parts  Parts
	client *conjur.Client
}

func (a assembly) set(set config.RotatedSet) (rotation.Rotated, error) {
	var errs []error
	who, err := consumers.New(consumers.Config{
		Set: set.Set, Wait: set.Confirm.Wait, Restarted: set.Confirm.Restarted, Ask: set.Confirm.Ask, Namespace: set.Namespace,
		Settle: set.Settle, Unused: set.Unused, Migrate: set.Migrate, Targets: a.parts.Targets, Cluster: a.parts.Cluster, Now: a.now,
	})
	errs = append(errs, err)
	actuator, outside, err := a.actuator(set)
	errs = append(errs, err)
	rotated := rotation.Rotated{
		ID: set.Set, Generate: set.Generate,
		Schedule:  rotation.Schedule{Every: set.Every, Before: set.Before, General: set.General, Retry: set.GiveUp},
		Policy:    versions.Policy{Keep: set.Keep, Lease: a.parts.Lease, GiveUp: set.GiveUp},
		Consumers: who, Actuator: actuator, Outside: outside, Timeout: set.Timeout, Adopt: set.Adopt,
	}
	if set.Cron != "" {
		rotated.Schedule.Cron, err = cron.ParseStandard(set.Cron)
		errs = append(errs, err)
	}
	if len(set.Publish) > 0 {
		rotated.Publish = map[string]rotation.Published{}
		for id, p := range set.Publish {
			rotated.Publish[id] = rotation.Published(p)
		}
	}
	return rotated, errors.Join(errs...)
}

// now is the time by Conjur's clock, and by ours while that cannot be had.
func (a assembly) now() time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Conjur.HTTPTimeout)
	defer cancel()
	now, err := a.client.Time(ctx)
	if err != nil || now.IsZero() {
		return time.Now()
	}
	return now
}
