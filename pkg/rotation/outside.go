package rotation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// mintedAnew reports whether the outside has minted parts that a version does not have.
func mintedAnew(v versions.Version, minted map[string]secret.Value) bool {
	for name, part := range minted {
		if has, ok := v.Parts[name]; !ok || !has.Equal(part) {
			return true
		}
	}
	return false
}

// actOutside lets the actuator carry out an action. The error means that the outcome is
// unknown.
func (s *step) actOutside(ctx context.Context, action versions.Action) (good bool, minted map[string]secret.Value, err error) {
	v, _ := s.doc().Version(action.Version)
	s.doing = string(action.Verb)
	switch action.Verb {
	case versions.Apply:
		minted, err = s.Actuator.Apply(ctx, v)
	case versions.Verify:
		err = s.Actuator.Verify(ctx, v)
	case versions.Revoke:
		err = s.Actuator.Revoke(ctx, v)
	}
	good, refused := err == nil, errors.Is(err, actuators.ErrRefused)
	if refused {
		s.refusal = brief.Cut(err.Error(), longestReason)
	}
	if v.State == versions.Primary && action.Verb == versions.Verify {
		s.verified = time.Time{}
		if good {
			s.verified = time.Now()
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

// longestReason limits the reported reason of a refusal, in bytes. A cut adds some bytes.
const longestReason = versions.MaxRefusal - 12

// withRefusal returns the event, and the reason if the outside gave one in this step.
func (s *step) withRefusal(what string) string {
	if s.refusal == "" {
		return what
	}
	return what + ": " + s.refusal
}

// confirmIdle periodically uses the primary, even if nothing is due. An outside system may
// have forgotten the primary, for example after a restore. It then receives the primary
// again, with the same bytes.
func (s *step) confirmIdle(ctx context.Context) error {
	if s.gates.unknown != nil {
		return s.gates.unknown
	}
	primary, ok := s.doc().Primary()
	if s.Actuator == nil || !ok || s.r.config.Paused || time.Since(s.verified) < verifiedFor || !s.mine() || s.doc().Paused {
		return nil
	}
	for _, verb := range []versions.Verb{versions.Verify, versions.Apply, versions.Verify} {
		if verb == versions.Apply {
			if err := s.checkAlone(ctx); err != nil { // another writer is active
				return err
			}
		}
		good, _, err := s.actOutside(ctx, versions.Action{Verb: verb, Version: primary.ID})
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
