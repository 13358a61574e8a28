package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// act carries out an action that is due. done means that the step is over. Otherwise the
// outcome of an act outside is a new fact.
func (s *step) act(ctx context.Context, action versions.Action) (done bool, err error) {
	if action.Verb == answer {
		s.doing = string(answer)
		return true, s.set.commands.answer(ctx, *s.answer)
	}
	if err := s.mendBefore(ctx, action); err != nil {
		return false, err
	}
	switch action.Verb {
	case versions.Wait, versions.Idle:
		err = s.confirmIdle(ctx)
	case versions.Write:
		if err = s.checkWrite(ctx, action.Doc); err == nil {
			err = s.writeSet(ctx, action.Doc)
		}
	case versions.Make:
		if err = s.checkMake(ctx); err == nil {
			err = s.makeVersion(ctx, action)
		}
	default:
		return s.actOutside(ctx, action)
	}
	return true, err
}

// actOutside carries out an action outside, and records the outcome as a fact. New parts
// that the outside mints are written to the set at once.
func (s *step) actOutside(ctx context.Context, action versions.Action) (done bool, err error) {
	if action.Verb == versions.Revoke {
		if _, err := s.set.publisher.readAnnotatedNumbers(ctx); err != nil { // another writer may use the variables
			return false, err
		}
	}
	if !s.known.IsZero() && time.Since(s.known) > s.tried/2 {
		return true, nil
	}
	good, minted, err := s.callActuator(ctx, action)
	if err != nil {
		return false, err
	}
	if v, _ := s.doc.Version(action.Version); mintedAnew(v, minted) {
		if v.Filled {
			return false, fmt.Errorf("the service returned different credentials for version %s than before; it must return the same ones for the same id", action.Version)
		}
		return true, s.writeSet(ctx, s.doc.Fill(action.Version, minted, versions.Entry{At: s.now}))
	}
	if s.known.IsZero() {
		s.known = time.Now()
	}
	s.facts.Tried[versions.Try{Verb: action.Verb, Version: action.Version}] = good
	s.facts.Refusal = s.refusal
	return false, nil
}

// checkMake returns nil if a version may be made now. The limiter then counts it.
func (s *step) checkMake(ctx context.Context) error {
	if err := s.set.publisher.checkFree(ctx, s.doc); err != nil {
		return err
	}
	if err := s.startLimiter.readOthers(ctx, s.now); err != nil {
		return err
	}
	if barred := s.startLimiter.barred(&s.set.Plan, s.doc, s.now, true); barred != "" {
		return &holdError{why: barred}
	}
	return nil
}

// checkWrite returns nil if a document may be written. It stops the revocation of a version
// that this process has not seen without consumers for long enough, whatever the clock says.
func (s *step) checkWrite(ctx context.Context, next *versions.Document) error {
	least := min(s.set.Policy.Keep, s.config.Watch)
	for id, since := range s.set.watched {
		v, _ := next.Version(id)
		if rest := least - time.Since(since); v.State == versions.Revoking && !v.Forced && !s.once && rest > 0 {
			return &holdError{why: fmt.Sprintf("%s is watched for another %s", id, brief.Duration(rest.Round(time.Second))), until: s.now.Add(rest)}
		}
	}
	return s.checkPromote(ctx, next)
}

// makeVersion creates a version.
func (s *step) makeVersion(ctx context.Context, action versions.Action) error {
	s.doing = string(versions.Make)
	var prepared map[string]secret.Value
	if preparer, ok := s.set.Actuator.(actuators.Preparer); ok {
		var err error
		if prepared, err = preparer.Prepare(ctx, s.doc); err != nil {
			return fmt.Errorf("no version can begin: %w", err)
		}
	}
	generated, since, err := s.generateParts(ctx)
	if err != nil {
		return err
	}
	parts := map[string]secret.Value{}
	maps.Copy(parts, generated)
	maps.Copy(parts, prepared)
	if s.set.Actuator == nil { // otherwise the outside may supply some parts
		if err := checkParts(s.doc, parts); err != nil {
			return err
		}
	}
	by := versions.Entry{At: s.now, Command: action.Command}
	if by.Command != "" {
		by.Reason = s.set.commands.last.Reason
	}
	next := s.doc.Make(action.Version, parts, s.set.Policy.Outside, by)
	next.Versions[0].Made = since
	return s.writeSet(ctx, next)
}

// generateParts makes the parts of a version and returns the time since when they exist.
// The first version may adopt existing values.
func (s *step) generateParts(ctx context.Context) (parts map[string]secret.Value, since time.Time, err error) {
	if len(s.set.Adopt) > 0 && len(s.doc.Versions) == 0 {
		return s.adoptVariables(ctx)
	}
	if s.set.Generate == (generate.Config{}) {
		return nil, s.now, nil
	}
	var issuer *generate.Issuer
	if s.set.Generate.X509 != nil && s.set.Generate.X509.CA != "" {
		held, err := Set{Conjur: s.config.Conjur, ID: s.set.Generate.X509.CA}.Read(ctx)
		if err != nil {
			return nil, s.now, fmt.Errorf("the certificate's authority: %w", err)
		}
		if held.Document != nil {
			defer held.Wipe()
			primary, _ := held.Primary()
			issuer = &generate.Issuer{Crt: primary.Parts["crt"], Private: primary.Parts["private"]}
		}
	}
	parts, err = s.set.Generate.Parts(s.now, issuer)
	return parts, s.now, err
}

// adoptVariables reads the variables that become the first version. The version is as old
// as the Secret that holds them, or new if no Secret does.
func (s *step) adoptVariables(ctx context.Context) (parts map[string]secret.Value, since time.Time, err error) {
	parts = map[string]secret.Value{}
	for part, id := range s.set.Adopt {
		values := s.config.Conjur.Variable(ctx, id, "")
		value, ok := values.Found[id]
		if !ok {
			return nil, s.now, fmt.Errorf("%q, which this set adopts, cannot be read: %w", id, errors.Join(values.Err, values.Bad[id]))
		}
		parts[part] = value
	}
	if s.config.Targets != nil {
		if since, err = s.config.Targets.Since(ctx, slices.Collect(maps.Values(s.set.Adopt))); err != nil {
			return nil, s.now, fmt.Errorf("cannot read the creation time of the Secret with the value to adopt: %w", err)
		}
	}
	if since.IsZero() || since.After(s.now) { // a different clock
		since = s.now
	}
	return parts, since.UTC(), nil
}

// writeSet writes the set and the values that it publishes.
func (s *step) writeSet(ctx context.Context, next *versions.Document) error {
	s.doing = string(versions.Write)
	others, err := s.preparePublished(ctx, next)
	defer wipeValues(others)
	if err != nil {
		return err
	}
	if next.Claimed != s.doc.Claimed {
		s.set.verified = time.Time{}
	}
	if s.shown != nil {
		next = next.Note(listNamespaces(s.shown, s.doc))
	}
	s.wrote = next
	err = s.set.stored.write(ctx, s.held, next, others...)
	if s.set.Policy.Lease == 0 && s.set.stored.server.uncompared.Load() {
		s.set.stored.server.warn.Do(func() {
			s.config.Log.Warn("This server has no compare-and-swap, and there is no Lease: let only this process rotate the sets of its owner", zap.String("owner", s.config.Owner))
		})
	}
	if errors.Is(err, ErrUncertain) {
		s.set.stored.server.quiet(s.config.Quiet)
	}
	if err != nil {
		s.set.unmended.Store(len(s.set.Publish) > 0)
	}
	return err
}

// mintedAnew reports whether the outside has minted parts that a version does not have.
func mintedAnew(v versions.Version, minted map[string]secret.Value) bool {
	for name, part := range minted {
		if has, ok := v.Parts[name]; !ok || !has.Equal(part) {
			return true
		}
	}
	return false
}

// callActuator lets the actuator carry out an action. The error means that the outcome is
// unknown.
func (s *step) callActuator(ctx context.Context, action versions.Action) (good bool, minted map[string]secret.Value, err error) {
	v, _ := s.doc.Version(action.Version)
	s.doing = string(action.Verb)
	switch action.Verb {
	case versions.Apply:
		minted, err = s.set.Actuator.Apply(ctx, v)
	case versions.Verify:
		err = s.set.Actuator.Verify(ctx, v)
	case versions.Revoke:
		err = s.set.Actuator.Revoke(ctx, v)
	}
	good, refused := err == nil, errors.Is(err, actuators.ErrRefused)
	if refused {
		s.refusal = brief.OneLine(err.Error(), versions.MaxRefusal)
	}
	if v.State == versions.Primary && action.Verb == versions.Verify {
		s.set.verified = time.Time{}
		if good {
			s.set.verified = time.Now()
		}
	}
	if good || refused {
		return good, minted, nil
	}
	if later, ok := errors.AsType[*actuators.LaterError](err); ok {
		return false, nil, &holdError{why: later.Why, until: s.now.Add(time.Until(later.Until))}
	}
	return false, nil, fmt.Errorf("%s %s: %w", action.Verb, v.ID, err)
}

// confirmIdle periodically uses the primary, even if nothing is due. An outside system may
// have forgotten the primary, for example after a restore. It then receives the primary
// again, with the same bytes.
func (s *step) confirmIdle(ctx context.Context) error {
	if s.gates.unknown != nil {
		return s.gates.unknown
	}
	primary, ok := s.doc.Primary()
	if s.set.Actuator == nil || !ok || s.config.Paused || time.Since(s.set.verified) < verifiedFor || !s.mayChange() || s.doc.Paused {
		return nil
	}
	for _, verb := range []versions.Verb{versions.Verify, versions.Apply, versions.Verify} {
		if verb == versions.Apply {
			if err := s.set.publisher.checkAlone(ctx); err != nil { // another writer is active
				return err
			}
		}
		good, _, err := s.callActuator(ctx, versions.Action{Verb: verb, Version: primary.ID})
		switch {
		case err != nil:
			return err
		case good && verb == versions.Verify:
			return nil
		case !good && verb == versions.Apply:
			return fmt.Errorf("the primary %s cannot be used, and is not accepted again (%s); create a new version with \"now\", or return with \"rollback\"", primary.ID, s.refusal)
		}
	}
	return fmt.Errorf("the primary %s cannot be used: %s", primary.ID, s.refusal)
}

// mendBefore mends the published values before an action, if one may differ from the set.
// Nothing passes a publication that cannot be mended: readers of the variable still use the
// version that it has. Only a step that obeys a command without a promotion does, such as
// "pause".
func (s *step) mendBefore(ctx context.Context, action versions.Action) error {
	if s.held.Document == nil || !s.mayChange() || s.config.Paused || !s.set.unmended.Load() {
		return nil
	}
	if action.Verb == versions.Write && s.answersCommand(action.Doc) && !promotes(s.doc, action.Doc) {
		return nil
	}
	s.doing = "publish"
	s.set.unmended.Store(false) // before the look, so that a change meanwhile counts
	err := s.set.publisher.mendValues(ctx, s.doc)
	if err != nil {
		s.set.unmended.Store(true)
	}
	return err
}

// preparePublished returns the values to publish with a step. A command is obeyed even
// while publishing is not allowed.
func (s *step) preparePublished(ctx context.Context, next *versions.Document) ([]conjur.NewValue, error) {
	promoted := promotes(s.doc, next)
	if !s.changesPublished(promoted) {
		return nil, nil
	}
	var hold *holdError
	if err := s.set.publisher.checkVacant(ctx, s.doc); errors.As(err, &hold) && !promoted && s.answersCommand(next) {
		s.set.unmended.Store(true)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return s.set.publisher.renderValues(next)
}

// answersCommand reports whether a step obeys an operator's command.
func (s *step) answersCommand(next *versions.Document) bool {
	_, before := s.doc.Answer(s.set.commands.last.ID)
	_, after := next.Answer(s.set.commands.last.ID)
	return after && !before
}

// changesPublished reports whether a published value changes with a step.
func (s *step) changesPublished(promoted bool) bool {
	for _, p := range s.set.Publish {
		if promoted || p.Text == "" {
			return true
		}
	}
	return false
}

// promotes reports whether a step has another primary.
func promotes(doc, next *versions.Document) bool {
	was, _ := doc.Primary()
	is, _ := next.Primary()
	return was.ID != is.ID
}

// checkPromote returns nil if a primary may be published. Before the first primary,
// variables without a value get theirs. The server's own rotator never changes a variable
// without a value. If that rotator runs, it must change the login before a consumer has
// it.
func (s *step) checkPromote(ctx context.Context, next *versions.Document) error {
	if !promotes(s.doc, next) {
		return nil
	}
	newest, err := s.set.publisher.readAnnotatedNumbers(ctx)
	if err != nil || len(newest) == 0 {
		return err
	}
	if _, used := s.doc.Primary(); !used && slices.Contains(slices.Collect(maps.Values(newest)), 0) {
		s.doing = "publish"
		if err := s.set.publisher.checkVacant(ctx, s.doc); err != nil {
			return err
		}
		values, err := s.set.publisher.renderValues(next)
		defer wipeValues(values)
		if err != nil {
			return err
		}
		if err := writeValues(ctx, s.config.Conjur, values); err != nil {
			return err
		}
	}
	return s.set.publisher.checkAlone(ctx)
}

// checkParts refuses a version with other parts than the primary, because programs could
// not read it.
func checkParts(d *versions.Document, parts map[string]secret.Value) error {
	primary, ok := d.Primary()
	if !ok {
		return nil
	}
	is, was := versions.Version{Parts: parts}.PartNames(), primary.PartNames()
	if strings.Join(is, " ") != strings.Join(was, " ") {
		return fmt.Errorf("the primary has the parts %q, and the new version would have %q; generate the same kind", was, is)
	}
	return nil
}
