package rotation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Errors of a command. They are wrapped.
var (
	// ErrPending means that another command is pending and that this one was not sent.
	ErrPending = errors.New("another command is pending")
	// ErrRejected means that the rotator of the set refused a command, or that somebody
	// withdrew the command before.
	ErrRejected = errors.New("the command was rejected")
	// ErrReplaced means that somebody overwrote a pending command.
	ErrReplaced = errors.New("somebody wrote over the command before it was answered")
	// ErrUnanswered means that nobody answered in time.
	ErrUnanswered = errors.New("nobody answered the command")
)

const (
	lookEvery = 250 * time.Millisecond // while a command is pending
	// mostMissed is how many checks in a row must find another command instead of this one.
	// Without compare-and-swap, a late command is visible for a moment.
	mostMissed = 8
)

// SendCommand sends a command to the rotator of the set and does not wait. The command is
// obeyed before it expires, or not at all. While another command is pending, the error is
// ErrPending and nothing is sent.
func (s Set) SendCommand(ctx context.Context, c versions.Command) error {
	c, err := identify(c)
	if err == nil {
		_, err = s.send(ctx, c)
	}
	return wrapError(s.ID, err)
}

// Withdraw cancels the pending command and returns its name; empty if none is pending.
func (s Set) Withdraw(ctx context.Context, now time.Time) (what string, err error) {
	defer func() { err = wrapError(s.ID, err) }()
	for {
		there, err := s.readControl(ctx)
		if err != nil && !errors.Is(err, errNoCommand) {
			return "", s.explainUnsent(err)
		}
		if !there.pending(now) {
			return "", nil
		}
		if err := s.putControl(ctx, there, control{Command: there.Command, Answer: "withdrawn", Refused: true}); err == nil {
			return describe(there.Command), nil
		} else if !errors.Is(err, ErrConflict) { // otherwise it was answered just now
			return "", s.explainUnsent(err)
		}
	}
}

// identify returns the command with an id, if the command is valid.
func identify(c versions.Command) (versions.Command, error) {
	if c.ID == "" {
		c.ID = strings.ToLower(rand.Text())
	}
	return c, c.Check()
}

// send writes a command to the control variable and returns the version number of the new
// value.
func (s Set) send(ctx context.Context, c versions.Command) (uint64, error) {
	there, err := s.readControl(ctx)
	if err != nil && !errors.Is(err, errNoCommand) {
		return 0, s.explainUnsent(err)
	}
	if there.pending(c.At) && there.ID != c.ID {
		return 0, fmt.Errorf("%w, sent at %s: %s", ErrPending, there.At.Format(time.RFC3339), there.describePending())
	}
	switch err = s.putControl(ctx, there, control{Command: c}); {
	case errors.Is(err, ErrConflict):
		return 0, fmt.Errorf("%w, sent at the same moment", ErrPending)
	case err != nil:
		return 0, s.explainUnsent(err)
	}
	return there.at + 1, nil
}

func (s Set) explainUnsent(err error) error {
	return fmt.Errorf("the command was not sent; read, execute and update on %q are needed: %w", versions.ControlOf(s.ID), err)
}

// Command sends a command like SendCommand, but waits while another command is pending. It
// returns the outcome after the rotator of the set has answered. After the maximum wait,
// the error is ErrPending or ErrUnanswered. The maximum wait does not cancel requests, so
// that a slow request is not mistaken for a missing right. Meanwhile waits receives each
// reason why the rotator does not obey yet; nil ignores them.
func (s Set) Command(ctx context.Context, c versions.Command, most time.Duration, waits func(why string)) (what string, err error) {
	defer func() { err = wrapError(s.ID, err) }()
	end := time.NewTimer(most)
	defer end.Stop()
	if c, err = identify(c); err != nil {
		return "", err
	}
	unanswered := fmt.Errorf("%w; it is obeyed until %s, if something rotates the set: is a standalone with this set, or \"syncer rotate run\", running?", ErrUnanswered, c.ExpiresAt().Format(time.RFC3339))
	var at uint64 // 0: not sent yet
	missed := 0   // checks in a row that found another command
	why := ""     // the rotator's last reason
	for {
		if at == 0 {
			at, err = s.send(ctx, c)
			if err != nil && !errors.Is(err, ErrPending) {
				return "", err
			}
		} else {
			answered, err := s.readAnswer(ctx, c, at)
			switch {
			case err != nil:
				return "", err
			case answered.ID != c.ID:
				if missed++; missed >= mostMissed {
					return s.readLogged(ctx, c)
				}
			case answered.Refused:
				return "", fmt.Errorf("%w: %s", ErrRejected, answered.Answer)
			case answered.Answer != "":
				return answered.Answer, nil
			default:
				missed = 0
				if answered.Waits == why {
					break
				}
				if why = answered.Waits; waits != nil {
					waits(why)
				}
				unanswered = fmt.Errorf("%w yet, because the set waits; the command is obeyed until %s", ErrUnanswered, c.ExpiresAt().Format(time.RFC3339))
			}
		}
		if at != 0 {
			err = unanswered
		}
		select {
		case <-time.After(lookEvery):
		case <-end.C:
			return "", err
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// readLogged returns the entry in the set's log for a command that was overwritten. If
// there is no entry, or the set may not be read, the error is ErrReplaced.
func (s Set) readLogged(ctx context.Context, c versions.Command) (what string, err error) {
	held, err := s.readNewest(ctx)
	if err == nil && held.Document != nil {
		defer held.Document.Wipe()
		if e, ok := held.Document.Answer(c.ID); ok && e.Refused {
			return "", fmt.Errorf("%w: %s", ErrRejected, e.What)
		} else if ok {
			return e.What, nil
		}
	}
	return "", ErrReplaced
}

// readAnswer returns the answer to a command with the given version number in the control
// variable. It finds the answer even if later commands were sent.
func (s Set) readAnswer(ctx context.Context, c versions.Command, at uint64) (there control, err error) {
	newest, err := s.readControl(ctx)
	if errors.Is(err, errNoCommand) {
		err = nil
	}
	if err != nil || newest.ID == c.ID {
		return newest, err
	}
	for n := newest.at - 1; n > at && n+10 > newest.at; n-- {
		if there, err = s.controlAt(ctx, n); err == nil && there.ID == c.ID && there.Answer != "" {
			return there, nil
		}
	}
	return newest, nil
}

// describePending describes a pending command, and why it waits.
func (c control) describePending() string {
	if c.Waits == "" {
		return describe(c.Command)
	}
	return describe(c.Command) + ", which waits: " + c.Waits
}

// describe describes the action of a command.
func describe(c versions.Command) string { return strings.TrimSpace(c.Verb + " " + c.Version) }
