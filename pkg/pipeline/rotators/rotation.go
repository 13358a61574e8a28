// Package rotators makes the rotator of the sets of a configuration. For each set it
// makes the schedule, the consumers, and the actuator that makes the outside system
// accept versions. Package rotation defines the steps of a set.
package rotators

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Parts are the inputs of a Rotator in addition to its configuration. All but Log may be
// zero.
type Parts struct {
	connect.Options
	Cluster  *kube.Client     // nil without a cluster
	Targets  rotation.Targets // nil: targets show no steps
	Lease    time.Duration    // how long a leader may not notice that it lost its Lease
	Listener rotation.Listener
	Reports  []rotation.Report // the previous reports of the sets
}

// Connect returns the rotator of the sets of a configuration, and a function that closes
// its client of Conjur. The errors are the same as for New.
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

// New returns the rotator of the sets of a configuration, which uses a client of Conjur.
// The error contains every set that cannot be rotated, and why.
func New(c config.Rotation, client *conjur.Client, parts Parts) (*rotation.Rotator, error) {
	values, err := variables.New(client, variables.Config{Logger: parts.Log})
	if err != nil {
		return nil, err
	}
	a := assembly{c, parts, client}
	var sets []rotation.Plan
	var errs []error
	for _, set := range c.Sets {
		plan, err := a.plan(set)
		if err != nil {
			errs = append(errs, &rotation.SetError{Set: set.Set, Err: err})
		}
		sets = append(sets, plan)
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

// assembly makes the parts of the sets.
type assembly struct {
	config config.Rotation
	parts  Parts
	client *conjur.Client
}

func (a assembly) plan(set config.RotatedSet) (rotation.Plan, error) {
	var errs []error
	who, err := consumers.New(consumers.Config{
		Set: set.Set, Wait: set.Confirm.Wait, Restarted: set.Confirm.Restarted, Ask: set.Confirm.Ask, Namespace: set.Namespace,
		Settle: set.Settle, Unused: set.Unused, Migrate: set.Migrate, Cluster: a.parts.Cluster, Now: a.now,
	})
	errs = append(errs, err)
	actuator, outside, err := a.actuator(set)
	errs = append(errs, err)
	plan := rotation.Plan{
		ID: set.Set, Generate: set.Generate,
		Schedule:  rotation.Schedule{Every: set.Every, Cron: set.Times, Before: set.Before, General: set.General, Retry: set.GiveUp},
		Policy:    versions.Policy{Keep: set.Keep, Lease: a.parts.Lease, GiveUp: set.GiveUp},
		Consumers: who, Actuator: actuator, Outside: outside, Timeout: set.Timeout, Publish: set.Publish, Adopt: set.Adopt,
	}
	return plan, errors.Join(errs...)
}

// now returns the time of Conjur's clock, or the local time while Conjur's is
// unavailable.
func (a assembly) now() time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Conjur.HTTPTimeout)
	defer cancel()
	now, err := a.client.Time(ctx)
	if err != nil || now.IsZero() {
		return time.Now()
	}
	return now
}
