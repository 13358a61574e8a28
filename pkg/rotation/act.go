package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// do carries out the due action: first the acts outside, one after the other while their
// outcomes are known, then one write.
func (r *Rotator) do(ctx context.Context, s *rotated, facts versions.Facts, g gates, action versions.Action) (outcome, error) {
	var known time.Time // when the first outcome was known
	for {
		switch action.Verb {
		case versions.Wait, versions.Idle:
			if g.unknown != nil {
				return outcome{}, g.unknown
			}
			if err := r.verifyIdle(ctx, s); err != nil {
				return r.held(ctx, s, g, facts.Now, err)
			}
			return r.wait(ctx, s, g, facts.Now, action)
		case versions.Write:
			if wait, ok := r.tooEarly(s, action.Doc, facts.Now); ok {
				return r.wait(ctx, s, g, facts.Now, wait)
			}
			if err := r.mayPromote(ctx, s, action.Doc); err != nil {
				return r.held(ctx, s, g, facts.Now, err)
			}
			return r.held(ctx, s, g, facts.Now, r.write(ctx, s, action.Doc))
		case versions.Revoke:
			if _, err := r.untouched(ctx, s); err != nil { // another writer may use the variables
				return r.held(ctx, s, g, facts.Now, err)
			}
		case versions.Make:
			if err := r.vacant(ctx, s); err != nil {
				return r.held(ctx, s, g, facts.Now, err)
			}
			if err := r.alone(ctx, s); err != nil {
				return r.held(ctx, s, g, facts.Now, err)
			}
			if err := r.takeStock(ctx, facts.Now); err != nil {
				return outcome{}, err
			}
			if barred := r.ledger.begin(s, s.doc(), facts.Now); barred != "" {
				return r.wait(ctx, s, g, facts.Now, versions.Action{Verb: versions.Wait, Why: barred})
			}
			return r.held(ctx, s, g, facts.Now, r.make(ctx, s, facts, action))
		}
		if !known.IsZero() && time.Since(known) > r.tried/2 {
			return outcome{}, nil
		}
		good, minted, err := s.act(ctx, action)
		if err != nil {
			return outcome{}, err
		}
		if v, _ := s.doc().Version(action.Version); mintedAnew(v, minted) {
			if v.Filled {
				return outcome{}, fmt.Errorf("what accepts %s answers other parts each time; it has to answer the same ones for an id that it knows", action.Version)
			}
			return r.held(ctx, s, g, facts.Now, r.write(ctx, s, s.doc().Fill(action.Version, minted, versions.Entry{At: facts.Now})))
		}
		if known.IsZero() {
			known = time.Now()
		}
		facts.Tried[versions.Try{Verb: action.Verb, Version: action.Version}] = good
		facts.Refusal = s.refusal
		action = s.next(facts)
	}
}

// watch records since when this process has seen versions without consumers.
func (s *rotated) watch() {
	for _, v := range s.doc().Versions {
		if v.State != versions.Retiring || v.Left.IsZero() {
			delete(s.watched, v.ID)
		} else if s.watched[v.ID].IsZero() {
			s.watched[v.ID] = time.Now()
		}
	}
}

// tooEarly stops the revocation of a version that this process has not seen without
// consumers for long enough, whatever the clock says.
func (r *Rotator) tooEarly(s *rotated, next *versions.Document, now time.Time) (versions.Action, bool) {
	least := min(s.Policy.Keep, r.config.Watch)
	for id, since := range s.watched {
		v, _ := next.Version(id)
		if rest := least - time.Since(since); v.State == versions.Revoking && !v.Forced && !r.once && rest > 0 {
			return versions.Action{Verb: versions.Wait, Why: fmt.Sprintf("%s is watched for another %v", id, rest.Round(time.Second)), Until: now.Add(rest)}, true
		}
	}
	return versions.Action{}, false
}

// takeStock reads the sets that this process has not read yet. Versions that an earlier
// process began count too. A set that cannot be read contributes nothing.
func (r *Rotator) takeStock(ctx context.Context, now time.Time) error {
	for id, s := range r.sets {
		if r.ledger.knows(id) {
			continue
		}
		held, err := s.set.read(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || held.Document == nil {
			held.Document = versions.New("")
		}
		r.ledger.note(id, held.Document, now)
		held.Wipe()
	}
	return nil
}

// make creates a version.
func (r *Rotator) make(ctx context.Context, s *rotated, facts versions.Facts, action versions.Action) error {
	s.doing = string(versions.Make)
	doc := s.doc()
	parts := map[string]secret.Value{}
	if preparer, ok := s.Actuator.(actuators.Preparer); ok {
		prepared, err := preparer.Prepare(ctx, doc)
		if err != nil {
			return fmt.Errorf("no version can begin: %w", err)
		}
		maps.Copy(parts, prepared)
	}
	generated, since, err := r.generate(ctx, s, facts.Now)
	if err != nil {
		return err
	}
	for name, part := range generated {
		if _, decided := parts[name]; !decided {
			parts[name] = part
		}
	}
	if s.Actuator == nil { // otherwise the outside may supply some parts
		if err := sameParts(doc, parts); err != nil {
			return err
		}
	}
	next := doc.Make(action.Version, parts, s.Policy.Outside, versions.Entry{At: facts.Now, Command: action.Command, Reason: s.reason(action.Command)})
	next.Versions[0].Made = since
	return r.write(ctx, s, next)
}

func (s *rotated) reason(command string) string {
	if command == "" {
		return ""
	}
	return s.control.command.Reason
}

// generate makes the parts of a version and returns the time since when they exist. The
// first version may adopt existing values.
func (r *Rotator) generate(ctx context.Context, s *rotated, now time.Time) (parts map[string]secret.Value, since time.Time, err error) {
	if len(s.Adopt) > 0 && len(s.doc().Versions) == 0 {
		return r.adopt(ctx, s, now)
	}
	if s.Generate == (generate.Config{}) {
		return nil, now, nil
	}
	var issuer *generate.Issuer
	if s.Generate.X509 != nil && s.Generate.X509.CA != "" {
		held, err := Set{Conjur: r.config.Conjur, ID: s.Generate.X509.CA}.Read(ctx)
		if err != nil {
			return nil, now, fmt.Errorf("the certificate's authority: %w", err)
		}
		if held.Document != nil {
			defer held.Wipe()
			primary, _ := held.Primary()
			issuer = &generate.Issuer{Crt: primary.Parts["crt"], Private: primary.Parts["private"]}
		}
	}
	parts, err = s.Generate.Parts(now, issuer)
	return parts, now, err
}

// adopt reads the variables that become the first version. The version is as old as the
// Secret that holds them, or new if no Secret does.
func (r *Rotator) adopt(ctx context.Context, s *rotated, now time.Time) (parts map[string]secret.Value, since time.Time, err error) {
	parts = map[string]secret.Value{}
	for part, id := range s.Adopt {
		values := r.config.Conjur.Variable(ctx, id, "")
		value, ok := values.Found[id]
		if !ok {
			return nil, now, fmt.Errorf("%q, which this set adopts, cannot be read: %w", id, errors.Join(values.Err, values.Bad[id]))
		}
		parts[part] = value
	}
	if r.config.Targets != nil {
		if since, err = r.config.Targets.Since(ctx, slices.Collect(maps.Values(s.Adopt))); err != nil {
			return nil, now, fmt.Errorf("cannot read the creation time of the Secret with the value to adopt: %w", err)
		}
	}
	if since.IsZero() || since.After(now) { // a different clock
		since = now
	}
	return parts, since.UTC(), nil
}

// write writes the set and the values that it publishes, and emits the Event for the
// step.
func (r *Rotator) write(ctx context.Context, s *rotated, next *versions.Document) error {
	s.doing = string(versions.Write)
	before := s.doc()
	others, err := r.following(ctx, s, next)
	defer wipe(others)
	if err != nil {
		return err
	}
	if next.Claimed != before.Claimed {
		s.verified = time.Time{}
	}
	if showing := s.showing(); showing != nil {
		next = next.Note(showing)
	}
	s.wrote = next
	err = s.set.write(ctx, s.held, next, others...)
	if s.Policy.Lease == 0 && r.server.uncompared.Load() {
		r.warn.Do(func() {
			r.config.Log.Warn("This server has no compare-and-swap, and there is no Lease: let only this process rotate the sets of its owner", zap.String("owner", r.config.Owner))
		})
	}
	switch {
	case errors.Is(err, ErrUncertain):
		r.server.quiet(r.config.Quiet)
		s.unmended.Store(true)
		return err
	case err != nil:
		s.unmended.Store(len(s.Publish) > 0)
		return err
	}
	for _, e := range r.news(s, before, next) {
		r.emit(s, e)
	}
	return nil
}

// news returns the name of a step.
func (r *Rotator) news(s *rotated, before, after *versions.Document) (events []Event) {
	for _, v := range after.Versions {
		was, known := before.Version(v.ID)
		switch {
		case !known:
			events = append(events, Event{Reason: EventStarted, Message: "made " + v.ID})
		case v.State == was.State:
		case v.State == versions.Primary && was.State == versions.Returning:
			events = append(events, Event{Reason: EventRolledBack, Message: v.ID + " is the primary again", Result: ResultRolledBack})
		case v.State == versions.Primary:
			r.ledger.outcome(s, true)
			events = append(events, Event{Reason: EventPromoted, Message: v.ID + " is the primary", Result: ResultPromoted})
		case v.State == versions.Retiring && was.State != versions.Primary:
			r.ledger.outcome(s, false)
			events = append(events, Event{Reason: EventFailed, Message: s.because(after.Log[len(after.Log)-1].What), Warning: true, Result: ResultDropped})
		case v.State == versions.Retired:
			events = append(events, Event{Reason: EventDone, Message: "retired " + v.ID})
		}
	}
	return events
}
