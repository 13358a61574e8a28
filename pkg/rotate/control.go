package rotate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/versions"
)

// noCommand is the value of a control variable before the first command. One
// variable without a value would make the answer to many a 404.
const noCommand = "none"

// commandJSON is a command in the variable SET/control.
type commandJSON struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Verb    string    `json:"verb"`
	Version string    `json:"version,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// verbs are those of commands. Those that are true name a version and need a
// reason, as they pass a gate.
var verbs = map[string]bool{
	"now": false, "pause": false, "resume": false, "rollback": false, "abort": false, "claim": false, "promote": true, "retire": true,
}

// ControlOf returns the id of the variable by which a set is steered.
func ControlOf(set string) string { return set + "/control" }

// Steer sends a command to whoever rotates the set. It is obeyed within an hour
// or not at all.
func (s Set) Steer(ctx context.Context, c versions.Command) error {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	text, err := json.Marshal(commandJSON{fmt.Sprintf("%x", id), c.At.UTC(), c.Verb, c.Version, c.Reason})
	if err != nil {
		return err
	}
	if err := s.Conjur.Set(ctx, ControlOf(s.ID), secret.New(text)); err != nil {
		return fmt.Errorf("set %s: the command did not get to %q: %w", s.ID, ControlOf(s.ID), err)
	}
	return nil
}

// parseCommand reads the value of a control variable.
func parseCommand(value []byte) (c versions.Command, err error) {
	if string(value) == noCommand {
		return c, nil
	}
	var raw commandJSON
	if json.Unmarshal(value, &raw) != nil || raw.ID == "" || raw.At.IsZero() {
		return c, errors.New(`what it holds is no command; send one with "syncer rotate now" and the like`)
	}
	named, known := verbs[raw.Verb]
	if !known {
		return c, fmt.Errorf("%.40q is not a command", raw.Verb)
	}
	if named && (raw.Version == "" || raw.Reason == "") {
		return c, fmt.Errorf("%s needs a version and a reason", raw.Verb)
	}
	return versions.Command{ID: raw.ID, At: raw.At, Verb: raw.Verb, Version: raw.Version, Reason: raw.Reason}, nil
}

// control reads what a person wants, and begins the variable where it has no
// value. Without the variable nobody can want anything.
func (r *Rotator) control(ctx context.Context, s *rotated, now time.Time) error {
	s.controlled = time.Now()
	id := ControlOf(s.ID)
	values := r.config.Conjur.Variable(ctx, id, "")
	value, found := values.Found[id]
	switch {
	case found:
		defer value.Wipe()
		command, err := parseCommand(value.Bytes())
		if command.Early(now) {
			err = fmt.Errorf("its time, %s, is still to come; send it again", command.At.Format(time.RFC3339))
		}
		s.command, s.steered = command, true
		if err != nil {
			r.emit(s, Event{Reason: EventFailed, Message: fmt.Sprintf("the command in %q is not obeyed: %v", id, err), Warning: true})
		}
		return nil
	case values.Form != conjur.Missing:
		return fmt.Errorf("set %s: %q cannot be read: %w", s.ID, id, values.Err)
	}
	s.command = versions.Command{}
	err := r.beginControl(ctx, id)
	s.steered = err == nil
	var refused *conjur.RefusedError
	var answered *conjur.StatusError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		return fmt.Errorf("set %s: a command came just now", s.ID)
	case errors.As(err, &refused), errors.As(err, &answered) && answered.Status < http.StatusInternalServerError:
		r.emit(s, Event{Reason: EventWaiting, Message: fmt.Sprintf("it cannot be steered: %q is not declared, or may not be updated", id), Warning: true})
		return nil
	}
	return err
}

// beginControl gives a control variable its first value, unless a command came.
func (r *Rotator) beginControl(ctx context.Context, id string) error {
	none := secret.New([]byte(noCommand))
	if !r.server.uncompared.Load() {
		unset := uint64(0)
		err := r.config.Conjur.SetAll(ctx, []conjur.NewValue{{ID: id, Value: none, Version: &unset}})
		if !errors.Is(err, conjur.ErrNotOffered) {
			return err
		}
		r.server.uncompared.Store(true)
	}
	return r.config.Conjur.Set(ctx, id, none)
}
