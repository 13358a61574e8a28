package rotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
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
	// Again is the version number before, if the value was restored. It makes the value
	// differ from the equal one before: a poll compares values, and would not report it.
	Again uint64 `json:"again,omitempty"`
	at    uint64 // Conjur's version number of the value; 0: none
}

// pending reports whether the command still waits for an answer.
func (c control) pending(now time.Time) bool {
	return c.ID != "" && c.Answer == "" && !now.After(c.ExpiresAt()) && !c.FromFuture(now)
}

// errDropped means that Conjur no longer keeps the wanted value of a control variable: it
// keeps 20, and others wrote as many meanwhile.
var errDropped = errors.New("somebody wrote many other values meanwhile")

// readControl returns the content of the control variable. With errNoCommand, the version
// number is valid.
func (s Set) readControl(ctx context.Context) (c control, err error) {
	variable := Set{Conjur: s.Conjur, ID: versions.ControlOf(s.ID)}
	for before := uint64(0); ; before = c.at {
		at, newestErr := variable.readNewestNumber(ctx)
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
	c.Again = 0 // only the value had to differ
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
// other values were also written over it, settleControl finds out in their order which one
// holds. If that is not the newest value, it writes the one that holds, and looks again. A
// command that arrives while another one is pending does not hold.
func (s Set) settleControl(ctx context.Context, over, mine control) error {
	id := versions.ControlOf(s.ID)
	holds := mine
	for put := over.at + 1; ; put++ {
		newest, err := Set{Conjur: s.Conjur, ID: id}.readNewestNumber(ctx)
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
	// Without an answer, however old it is, or at the time when next was sent.
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

// commands are the operators' commands for a set, as its rotator knows them.
type commands struct {
	set       Set
	events    *announcer
	arrived   atomic.Bool // a command may have arrived
	last      control     // as it was last read
	declared  bool        // the control variable has a value
	read      time.Time   // when it was last read
	explained struct {    // the reasons that a command got
		command string
		times   int
	}
}

// controlAgain is the time between checks for a control variable that could not be set.
const controlAgain = 10 * time.Minute

// update reads the last command if it may have changed.
func (c *commands) update(ctx context.Context, now time.Time) error {
	if !c.arrived.Swap(false) && (c.declared || time.Since(c.read) <= controlAgain) {
		return nil
	}
	err := c.readLast(ctx, now)
	if err != nil {
		c.arrived.Store(true)
	}
	return err
}

// readLast reads the last command. It initializes the control variable if that has no
// value. Without the variable, operators cannot send commands.
func (c *commands) readLast(ctx context.Context, now time.Time) error {
	c.read = time.Now()
	last, err := c.set.readControl(ctx)
	switch {
	case errors.Is(err, ErrUndeclared):
		c.last, c.declared = control{}, false
		c.warnUndeclared()
		return nil
	case err == nil && last.at == 0:
		return c.writeFirst(ctx)
	case err == nil && last.FromFuture(now):
		last.Command, err = versions.Command{}, fmt.Errorf("its time, %s, is in the future; check the clocks, and send it again", last.At.Format(time.RFC3339))
	case err != nil && !errors.Is(err, errNoCommand):
		return err
	}
	c.last, c.declared = last, true
	if err != nil {
		c.events.emit(Event{Reason: EventFailed, Message: fmt.Sprintf("the command in %q is ignored: %v", versions.ControlOf(c.set.ID), err), Warning: true})
	}
	return nil
}

// writeFirst writes the first value of a control variable, unless a command arrived.
func (c *commands) writeFirst(ctx context.Context) error {
	c.last, c.declared = control{}, false
	err := c.set.putControl(ctx, control{}, control{})
	switch {
	case err == nil:
		c.declared = true
	case errors.Is(err, ErrConflict):
		return errors.New("a command came just now")
	case nothingWritten(err):
		c.warnUndeclared()
		return nil
	}
	return err
}

func (c *commands) warnUndeclared() {
	c.events.emit(Event{Reason: EventWaiting, Message: fmt.Sprintf("commands are not possible: %q is not declared, or this identity may not update it", versions.ControlOf(c.set.ID)), Warning: true})
}

// answer tells the sender of the last command its outcome, which is a line of the set's
// log.
func (c *commands) answer(ctx context.Context, e versions.Entry) error {
	answered := c.last
	answered.Answer, answered.Refused, answered.Waits = e.What, e.Refused, ""
	err := c.set.putControl(ctx, c.last, answered)
	switch {
	case errors.Is(err, ErrConflict):
		c.arrived.Store(true)
	case err != nil && !nothingWritten(err): // no right: nothing waits for the answer
		return fmt.Errorf("the answer to a command: %w", err)
	}
	c.last = answered
	return nil
}

// explain tells the sender of the pending command why it was not obeyed yet. A failure
// changes nothing: the command stays pending.
func (c *commands) explain(ctx context.Context, why string) {
	why = brief.OneLine(why, maxWaits)
	switch {
	case why == "" || why == c.last.Waits:
		return
	case c.explained.command != c.last.ID:
		c.explained.command, c.explained.times = c.last.ID, 0
	}
	if c.explained.times++; c.explained.times > mostWaits {
		return
	}
	told := c.last
	told.Waits = why
	switch err := c.set.putControl(ctx, c.last, told); {
	case err == nil:
		told.at = c.last.at + 1
		c.last = told
	case errors.Is(err, ErrConflict):
		c.arrived.Store(true)
	}
}
