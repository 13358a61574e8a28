package rotation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Manual rotates a set of keys on an operator's command. No outside system has to accept
// its versions.
type Manual struct {
	Set
	Now func() time.Time
}

// Init creates the set with a primary and returns the primary's id.
func (m Manual) Init(ctx context.Context, config generate.Config) (string, error) {
	held, err := m.Read(ctx)
	switch {
	case errors.Is(err, ErrUndeclared):
		return "", fmt.Errorf("%w; replace ROTATES by your host, and declare it: %s", err, m.formatPolicy())
	case err != nil:
		return "", fmt.Errorf("%w; a set begins in a variable without a value", err)
	case held.Document != nil:
		return "", fmt.Errorf("the set %s has begun already; to add a version, use add", m.ID)
	}
	parts, err := config.Parts(m.Now(), nil)
	if err != nil {
		return "", err
	}
	id := versions.New("").NewID(m.Now())
	return id, m.Write(ctx, held, versions.New("").Make(id, parts, false, m.newEntry("")).Promote(id, m.newEntry("")))
}

// formatPolicy returns a command on one line that loads the policy which declares the set.
func (m Manual) formatPolicy() string {
	return fmt.Sprintf("echo '[!variable %s, !permit {role: !host ROTATES, privileges: [read, execute, update], resource: !variable %[1]s}]' | syncer policy load root -", m.ID)
}

// Add makes a version that all consumers receive beside the primary, and returns its id.
func (m Manual) Add(ctx context.Context, config generate.Config) (string, error) {
	held, err := m.readBegun(ctx)
	if err != nil {
		return "", err
	}
	if coming, ok := held.Coming(); ok {
		return "", fmt.Errorf("%s is pending already; promote it, or retire it", coming.ID)
	}
	parts, err := config.Parts(m.Now(), nil)
	if err != nil {
		return "", err
	}
	if err := checkParts(held.Document, parts); err != nil {
		return "", err
	}
	id := held.NewID(m.Now())
	return id, m.Write(ctx, held, held.Make(id, parts, false, m.newEntry("")))
}

// Promote makes the accepted version the primary, after all consumers have it. The id is
// also valid with ErrOwned.
func (m Manual) Promote(ctx context.Context, gate Gate) (string, error) {
	held, err := m.readBegun(ctx)
	if err != nil && !errors.Is(err, ErrOwned) {
		return "", err
	}
	coming, ok := held.Coming()
	switch {
	case err != nil && !ok:
		return "", fmt.Errorf("no version of %s waits to be promoted; create one with the command now", m.ID)
	case err != nil:
		return coming.ID, err
	case !ok || coming.State != versions.Accepted:
		return "", fmt.Errorf("no version of %s waits to be promoted; make one with add", m.ID)
	}
	if err := gate.pass(gate.checkPromote(ctx, held.Document, coming)); err != nil {
		return "", fmt.Errorf("%s is not promoted: %w", coming.ID, err)
	}
	return coming.ID, m.Write(ctx, held, held.Promote(coming.ID, m.newEntry(gate.Reason)))
}

// Retire removes a version that is not the primary, after no consumer uses it any more.
func (m Manual) Retire(ctx context.Context, id string, gate Gate) error {
	held, err := m.readBegun(ctx)
	if err != nil {
		return err
	}
	version, ok := held.Version(id)
	switch {
	case !ok:
		return fmt.Errorf("the set %s has no version %s", m.ID, id)
	case version.State == versions.Primary:
		return fmt.Errorf("%s is the primary; promote another one first", id)
	case version.State == versions.Retired:
		return fmt.Errorf("%s is retired already", id)
	}
	if err := gate.pass(gate.checkRetire(ctx, held.Document, version, m.Now())); err != nil {
		return fmt.Errorf("%s is not retired: %w", id, err)
	}
	return m.Write(ctx, held, held.Retire(id, m.newEntry(gate.Reason)))
}

// readBegun returns a set that an operator may change.
func (m Manual) readBegun(ctx context.Context) (Held, error) {
	held, err := m.Read(ctx)
	switch {
	case err != nil:
		return held, err
	case held.Document == nil:
		return held, fmt.Errorf("the set %s has not begun; use init", m.ID)
	case held.Owner != "":
		return held, fmt.Errorf("the set %s %w: it is %q's; use now, pause, abort and the like, or --force --reason …", m.ID, ErrOwned, held.Owner)
	}
	return held, nil
}

func (m Manual) newEntry(reason string) versions.Entry {
	return versions.Entry{At: m.Now().UTC().Truncate(time.Second), Reason: reason}
}

// Gate is the condition between two steps that an operator takes.
type Gate struct {
	Consumers Consumers     // nil: no check
	Keep      time.Duration // minimum time since a version became primary, before it is retired
	// Force overrides the objections to a step. The set's log keeps the Reason.
	Force  bool
	Reason string
}

// checkPromote returns the objections to making a version the primary.
func (g Gate) checkPromote(ctx context.Context, doc *versions.Document, v versions.Version) (against []string) {
	if g.Consumers != nil {
		if a := g.Consumers.Introduced(ctx, doc, v, nil); !a.Open {
			against = append(against, a.Waits)
		}
	}
	return against
}

// checkRetire returns the objections to removing a version.
func (g Gate) checkRetire(ctx context.Context, doc *versions.Document, v versions.Version, now time.Time) (against []string) {
	if since := now.Sub(v.Since); since < g.Keep && !v.Promoted.IsZero() { // it made nothing
		against = append(against, fmt.Sprintf("%s have passed of %s", brief.Duration(since.Round(time.Second)), brief.Duration(g.Keep)))
	}
	if g.Consumers != nil {
		if a := g.Consumers.Left(ctx, doc, v, nil); !a.Open {
			against = append(against, a.Waits)
		}
	}
	return against
}

// pass returns nil if there are no objections, or if an operator overrides them with a
// reason.
func (g Gate) pass(against []string) error {
	switch {
	case len(g.Reason) > versions.MaxReason:
		return fmt.Errorf("the reason has %d bytes; at most %d are kept, so shorten it", len(g.Reason), versions.MaxReason)
	case len(against) == 0:
		return nil
	case g.Force && strings.TrimSpace(g.Reason) != "":
		return nil
	case g.Force:
		return errors.New("--force needs a --reason, which the set's log keeps")
	}
	return fmt.Errorf("%s (to go on all the same, add --force --reason …)", strings.Join(against, "; "))
}

// Check returns all reasons why the set cannot be rotated: faults of the set, missing
// rights, consumers that do not answer.
func (m Manual) Check(ctx context.Context, gate Gate) (problems []string) {
	problems = listMissingRights(ctx, m.Conjur, m.ID, "execute", "update")
	held, err := m.readNewest(ctx)
	if errors.Is(err, ErrUndeclared) {
		return problems
	}
	if report := newReport(m.ID, held, err); report.Problem != "" {
		return append(problems, report.Problem)
	}
	primary, _ := held.Primary()
	return append(problems, gate.checkPromote(ctx, held.Document, primary)...)
}

// Status returns the status of the set.
func (m Manual) Status(ctx context.Context) Report {
	held, err := m.readNewest(ctx)
	return newReport(m.ID, held, err)
}
