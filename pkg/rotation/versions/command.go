package versions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// commandLife is how long a command is valid.
	commandLife = time.Hour
	// MaxReason limits a reason, in bytes.
	MaxReason = 256
)

// needsReason lists the verbs of commands, and whether each needs a reason because it
// overrides a gate.
var needsReason = map[string]bool{
	"now": false, "pause": false, "resume": false, "rollback": false, "abort": false, "claim": false, "promote": true, "retire": true,
}

// claimStepJump is the number that "claim" adds to the step. It is larger than any number of
// delivered steps.
const claimStepJump = 1_000_000

// controlSuffix follows a set's id in the id of its control variable.
const controlSuffix = "/control"

// ControlOf returns the id of the variable that holds the commands for a set.
func ControlOf(set string) string { return set + controlSuffix }

// ControlledBy returns the set of a control variable. It returns false if the id does not
// belong to a control variable.
func ControlledBy(control string) (set string, ok bool) {
	return strings.CutSuffix(control, controlSuffix)
}

// Command is an operator's order. It is obeyed only once: the set's log has the IDs of
// the obeyed commands.
type Command struct {
	ID string    `json:"id"` // "": no command
	At time.Time `json:"at"`
	// Verb is now, promote, retire, rollback, abort, pause, resume or claim. Promote and
	// retire override a closed gate.
	Verb string `json:"verb"`
	// Version is required for retire. For promote it is set if known: a sender who may
	// not read the set means the pending version.
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"` // if it overrides a gate
}

// Check returns all faults of a command. Senders of commands are not trusted with sizes,
// because the set's log stores the ID and the reason.
func (c Command) Check() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	forces, known := needsReason[c.Verb]
	if !isName(c.ID) {
		wrong("the command's id is not 1 to 63 letters, digits, - and _")
	}
	if c.At.IsZero() {
		wrong("the command has no time")
	}
	if !known {
		wrong("%.40q is not a command", c.Verb)
	}
	if forces && c.Reason == "" {
		wrong("%s needs a reason", c.Verb)
	}
	if c.Verb == "retire" && c.Version == "" {
		wrong("retire needs a version")
	}
	if c.Version != "" && !isName(c.Version) {
		wrong("the command's version is not 1 to 63 letters, digits, - and _")
	}
	if len(c.Reason) > MaxReason {
		wrong("the reason has %d bytes; at most %d are kept, so shorten it", len(c.Reason), MaxReason)
	}
	return errors.Join(problems...)
}

// FromFuture reports whether the command dates from too far in the future to be valid. No
// log would keep the answer for that long.
func (c Command) FromFuture(now time.Time) bool { return c.At.After(now.Add(commandLife)) }

// ExpiresAt returns when the command expires.
func (c Command) ExpiresAt() time.Time { return c.At.Add(commandLife) }

// Answer returns the line of the log that answers a command.
func (d *Document) Answer(command string) (Entry, bool) {
	i := slices.IndexFunc(d.Log, func(e Entry) bool { return command != "" && e.Command == command })
	if i < 0 {
		return Entry{}, false
	}
	return d.Log[i], true
}

// isOrdered reports whether an operator ordered this verb for this version.
func (d decision) isOrdered(verb, version string) bool {
	c := d.facts.Command
	_, answered := d.doc.Answer(c.ID)
	return c.ID != "" && c.Verb == verb && c.Version == version && !d.facts.Now.After(c.ExpiresAt()) && !c.FromFuture(d.facts.Now) && !answered
}

// obey returns the write for a command. It returns the zero Action if there is none, or
// if the command only opens a gate.
func (d decision) obey() Action {
	c := d.facts.Command
	if !d.isOrdered(c.Verb, c.Version) {
		return Action{}
	}
	last := max(d.doc.Step, d.facts.Seen)
	switch {
	case c.Verb == "claim" && last >= maxStep-1 && d.doc.Owner == d.policy.Owner:
		return d.refuse("no step can follow %d; if that is not the set's step, take the annotation conjur.org/rotation off the Secrets that show it", last)
	case c.Verb == "claim" && last < maxStep-1:
		return d.answerCommand("claimed for "+d.policy.Owner, func(next *Document) {
			next.Owner = d.policy.Owner
			last := max(next.Step, d.facts.Seen)
			next.Step = last + min(claimStepJump, maxStep-1-last)
			if d.policy.Outside {
				d.takeOver(next)
			}
		})
	}
	if d.doc.Owner != d.policy.Owner || d.facts.Seen > d.doc.Step {
		return Action{}
	}
	coming, isComing := d.doc.Coming()
	named, _ := d.doc.Version(c.Version)
	if c.Verb == "promote" && c.Version == "" {
		named = coming
	}
	switch {
	case c.Verb == "pause", c.Verb == "resume":
		return d.answerCommand(c.Verb+"d", func(next *Document) { next.Paused = c.Verb == "pause" })
	case d.doc.Paused:
		return Action{}
	case c.Verb == "abort" && isComing:
		return d.answerCommand("aborted "+coming.ID, func(next *Document) {
			next.edit(coming.ID, func(v *Version) { v.enter(Retiring, next.Step, d.facts.Now) })
		})
	case c.Verb == "rollback" && !isComing:
		if former, ok := d.doc.Former(); ok {
			return d.answerCommand("returns to "+former.ID, func(next *Document) {
				next.edit(former.ID, func(v *Version) {
					v.enter(Returning, next.Step, d.facts.Now)
					v.Fence = d.doc.NewID(d.facts.Now)
				})
			})
		}
	case c.Verb == "now" && !isComing,
		c.Verb == "promote" && (named.State == Pending || named.State == Accepted),
		c.Verb == "retire" && named.State == Retiring:
		return Action{}
	case c.Verb == "promote" && !isComing:
		return d.refuse("no version waits to be promoted")
	}
	return d.refuse("%s is not possible at this stage", strings.TrimSpace(c.Verb+" "+c.Version))
}

// refuse returns a write that says why the command is not obeyed.
func (d decision) refuse(format string, args ...any) Action {
	refused := Entry{At: d.facts.Now, Command: d.facts.Command.ID, Refused: true}
	return write(d.doc.change("refused: "+fmt.Sprintf(format, args...), refused, func(*Document) {}))
}

// takeOver allows the set to change everything that another set has left outside until
// now. The primary gets a new fence, so that the outside accepts it again.
func (d decision) takeOver(next *Document) {
	next.Claimed = d.doc.NewID(d.facts.Now)
	if primary, ok := next.Primary(); ok {
		next.edit(primary.ID, func(v *Version) { v.Fence = next.Claimed })
	}
}

// answerCommand returns a write that answers the command.
func (d decision) answerCommand(what string, do func(*Document)) Action {
	return write(d.doc.change(what, d.commanded(), do))
}
