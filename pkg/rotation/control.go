package rotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// noCommand is the value of a control variable before the first command. A single
// variable without a value would turn the answer to a batch into a 404.
const noCommand = "none"

const (
	// maxWaits limits the reason beside a pending command, in bytes.
	maxWaits = 300
	// mostWaits is how many reasons a command gets, because Conjur keeps 20 values.
	mostWaits = 5
)

// maxCommand limits the value of a control variable, in bytes. A command is shorter, even
// with all JSON escapes.
const maxCommand = 4 << 10

// errNoCommand means that the value of a control variable is not a command.
var errNoCommand = errors.New(`the value is not a command; send one with "syncer rotate now" and the like`)

// control is the content of a control variable: one command and its outcome. The zero
// control contains no command. The names are those in Conjur.
type control struct {
	versions.Command
	Answer  string `json:"answer,omitempty"`  // from the set's rotator; empty: the command is pending
	Refused bool   `json:"refused,omitempty"` // the answer is no
	// Waits is why the set's rotator cannot obey the pending command yet.
	Waits string `json:"waits,omitempty"`
	// Again is the version number before, if the value was restored. A process that has
	// seen the earlier value therefore reads again.
	Again uint64 `json:"again,omitempty"`
	at    uint64 // Conjur's version number of the value; 0: none
}

// pending reports whether the command still waits for an answer.
func (c control) pending(now time.Time) bool {
	return c.ID != "" && c.Answer == "" && !now.After(c.Void()) && !c.Early(now)
}

// errDropped means that Conjur no longer keeps the wanted value of a control variable: it
// keeps 20, and others wrote as many meanwhile.
var errDropped = errors.New("somebody wrote many other values meanwhile")

// readControl returns the content of the control variable. With errNoCommand, the version
// number is valid.
func (s Set) readControl(ctx context.Context) (c control, err error) {
	variable := Set{Conjur: s.Conjur, ID: versions.ControlOf(s.ID)}
	for before := uint64(0); ; before = c.at {
		at, newestErr := variable.newest(ctx)
		if newestErr != nil || at == 0 {
			return control{}, newestErr
		}
		if c, err = s.controlAt(ctx, at); !errors.Is(err, errDropped) || at == before {
			return c, err
		}
		c.at = at
	}
}

func (s Set) controlAt(ctx context.Context, at uint64) (control, error) {
	value, reading := s.Conjur.VariableAt(ctx, versions.ControlOf(s.ID), at)
	switch {
	case reading.Status == http.StatusNotFound:
		return control{}, fmt.Errorf("%q cannot be read: %w: %w", versions.ControlOf(s.ID), reading.Err, errDropped)
	case reading.Err != nil:
		return control{}, fmt.Errorf("%q cannot be read: %w", versions.ControlOf(s.ID), reading.Err)
	}
	defer value.Wipe()
	c, err := parseControl(value.Bytes())
	c.at = at
	return c, err
}

// parseControl reads the value of a control variable.
func parseControl(value []byte) (control, error) {
	if string(value) == noCommand {
		return control{}, nil
	}
	var c control
	if len(value) > maxCommand || json.Unmarshal(value, &c) != nil {
		return control{}, errNoCommand
	}
	if err := c.Check(); err != nil {
		return control{}, fmt.Errorf("%w: %w", errNoCommand, err)
	}
	c.Again = 0 // it has served its purpose
	return c, nil
}

// putControl writes c over the value that was read. If somebody else wrote first, the
// other value stays and the error is ErrConflict.
func (s Set) putControl(ctx context.Context, over, c control) error {
	value, id := c.value(), versions.ControlOf(s.ID)
	if offered, err := s.swap(ctx, conjur.NewValue{ID: id, Value: value, Version: &over.at}); offered {
		return err
	}
	if err := s.Conjur.Set(ctx, id, value); err != nil {
		return err
	}
	return s.settleControl(ctx, over, c)
}

// settleControl returns nil if mine, written over the value that was read, holds. If
// other values were also written over it, settleControl writes the value that holds. A
// command that arrives while another one is pending does not hold.
func (s Set) settleControl(ctx context.Context, over, mine control) error {
	id := versions.ControlOf(s.ID)
	holds := mine
	for put := over.at + 1; ; put++ {
		newest, err := Set{Conjur: s.Conjur, ID: id}.newest(ctx)
		if err != nil {
			return err
		}
		if newest == put {
			break
		}
		holds = over
		var last control
		for at := over.at + 1; at <= newest; at++ {
			last, err = s.controlAt(ctx, at)
			if errors.Is(err, errDropped) {
				return ErrConflict // those who wrote later settle it
			}
			if err != nil && !errors.Is(err, errNoCommand) {
				return err
			}
			holds = holds.then(last)
		}
		if last.same(holds) {
			break // another process has settled it
		}
		holds.Again = newest
		if err := s.Conjur.Set(ctx, id, holds.value()); err != nil {
			return err
		}
		put = newest
	}
	if answered := mine.Answer == "" && holds.ID == mine.ID; !answered && !holds.same(mine) {
		return ErrConflict
	}
	return nil
}

// then returns the control that holds after next was written over c.
func (c control) then(next control) control {
	switch {
	case next.ID == c.ID && c.Answer != "": // the same command was sent again
		return c
	case next.ID == "" && c.pending(c.At), next.ID != c.ID && c.pending(next.At):
		return c
	}
	return next
}

func (c control) same(other control) bool {
	return c.ID == other.ID && c.Answer == other.Answer
}

// value returns the value of the variable.
func (c control) value() secret.Value {
	if c.ID == "" {
		return secret.New([]byte(noCommand))
	}
	c.At = c.At.UTC()
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // encoding cannot fail: the command was checked
	}
	return secret.New(text)
}

// readCommand reads the operator's command. It initializes the control variable if that
// has no value. Without the variable, operators cannot send commands.
func (s *step) readCommand(ctx context.Context) error {
	s.controlRead = time.Now()
	id := versions.ControlOf(s.ID)
	c, err := s.set.readControl(ctx)
	switch {
	case errors.Is(err, ErrUndeclared):
		s.control, s.hasControl = control{}, false
		s.warnNoControl()
		return nil
	case err == nil && c.at == 0:
		return s.beginControl(ctx)
	case err == nil && c.Early(s.now):
		c.Command, err = versions.Command{}, fmt.Errorf("its time, %s, is in the future; check the clocks, and send it again", c.At.Format(time.RFC3339))
	case err != nil && !errors.Is(err, errNoCommand):
		return err
	}
	s.control, s.hasControl = c, true
	if err != nil {
		s.emit(Event{Reason: EventFailed, Message: fmt.Sprintf("the command in %q is ignored: %v", id, err), Warning: true})
	}
	return nil
}

// beginControl writes the first value of a control variable, unless a command arrived.
func (s *step) beginControl(ctx context.Context) error {
	s.control, s.hasControl = control{}, false
	err := s.set.putControl(ctx, control{}, control{})
	switch {
	case err == nil:
		s.hasControl = true
	case errors.Is(err, ErrConflict):
		return errors.New("a command came just now")
	case forbidden(err):
		s.warnNoControl()
		return nil
	}
	return err
}

func (s *step) warnNoControl() {
	s.emit(Event{Reason: EventWaiting, Message: fmt.Sprintf("commands are not possible: %q is not declared, or this identity may not update it", versions.ControlOf(s.ID)), Warning: true})
}

// forbidden reports whether an answer to a write proves that nothing was written.
func forbidden(err error) bool {
	var refused *conjur.RefusedError
	var answered *conjur.StatusError
	return errors.As(err, &refused) || errors.As(err, &answered) && answered.Status < http.StatusInternalServerError
}

// answer tells the sender of a command its outcome. It reports whether it wrote an
// answer.
func (s *step) answer(ctx context.Context) (bool, error) {
	e, ok := s.doc().Answer(s.control.ID)
	if !ok || s.control.Answer != "" || s.doc().Owner != s.Policy.Owner {
		return false, nil
	}
	return s.reply(ctx, e)
}

// refuse answers commands that a set cannot obey while it is paused, or while a later
// step was delivered. In these states nothing is written to the set. A command that
// stayed pending would block "resume" and "claim".
func (s *step) refuse(ctx context.Context) (bool, error) {
	verb, why := s.control.Verb, ""
	switch {
	case s.doc().Owner != s.Policy.Owner || !s.control.pending(s.now) || verb == "claim":
	case !s.mine():
		why = `the set waits for "claim"`
	case s.doc().Paused && verb != "pause" && verb != "resume":
		why = `the set is paused; "resume" it first`
	}
	if why == "" {
		return false, nil
	}
	return s.reply(ctx, versions.Entry{What: "refused: " + why, Refused: true})
}

// reply writes an answer beside the command.
func (s *step) reply(ctx context.Context, e versions.Entry) (bool, error) {
	s.doing = "answer"
	answered := s.control
	answered.Answer, answered.Refused, answered.Waits = e.What, e.Refused, ""
	err := s.set.putControl(ctx, s.control, answered)
	switch {
	case errors.Is(err, ErrConflict):
		s.commanded.Store(true)
	case err != nil && !forbidden(err): // no right: nothing waits for the answer
		return false, fmt.Errorf("the answer to a command: %w", err)
	}
	s.control = answered
	return true, nil
}

// explained counts the reasons that a command got.
type explained struct {
	command string
	times   int
}

// explain tells the sender of a pending command why it was not obeyed yet. A failure
// changes nothing: the command stays pending.
func (s *step) explain(ctx context.Context, why string) {
	why = brief.Cut(why, maxWaits)
	switch {
	case s.held.read.IsZero() || s.doc().Owner != s.Policy.Owner || !s.control.pending(s.now):
		return // not known to be for this process
	case why == "" || why == s.control.Waits:
		return
	case s.explained.command != s.control.ID:
		s.explained = explained{command: s.control.ID}
	}
	if s.explained.times++; s.explained.times > mostWaits {
		return
	}
	told := s.control
	told.Waits = why
	switch err := s.set.putControl(ctx, s.control, told); {
	case err == nil:
		told.at = s.control.at + 1
		s.control = told
	case errors.Is(err, ErrConflict):
		s.commanded.Store(true)
	}
}
