package versions

import (
	"slices"
	"time"
)

// commandLife is for how long a command counts.
const commandLife = time.Hour

// claimed is what "claim" adds to the step: more than was ever delivered.
const claimed = 1_000_000

// Command is what a person wants. It is obeyed once: the log of the set has the
// IDs of those that were.
type Command struct {
	ID string // "" is no command
	At time.Time
	// Verb is now, promote, retire, rollback, abort, pause, resume or claim.
	// Promote and retire pass a shut gate.
	Verb    string
	Version string // of promote and retire
	Reason  string // of what passes a gate
}

// Early reports whether the command is from so long after now that it does not
// count: nobody would remember for so long that it was obeyed.
func (c Command) Early(now time.Time) bool { return c.At.After(now.Add(commandLife)) }

// commands reports whether a person wants this, of this version.
func (d decision) commands(verb, version string) bool {
	c := d.f.Command
	return c.ID != "" && c.Verb == verb && c.Version == version && !d.f.Now.After(c.At.Add(commandLife)) && !c.Early(d.f.Now) &&
		!slices.ContainsFunc(d.doc.Log, func(e Entry) bool { return e.Command == c.ID })
}

// obey returns the write that a command is; the zero Action if there is none, or
// if the command only opens a gate.
func (d decision) obey() Action {
	c := d.f.Command
	if !d.commands(c.Verb, c.Version) {
		return Action{}
	}
	if c.Verb == "claim" {
		return d.note("claimed for "+d.p.Owner, func(next *Document) {
			next.Owner = d.p.Owner
			next.Step = max(next.Step, d.f.Seen) + claimed
			if d.p.Outside {
				d.takeOver(next)
			}
		})
	}
	if d.doc.Owner != d.p.Owner || d.f.Seen > d.doc.Step {
		return Action{}
	}
	coming, isComing := d.doc.Coming()
	named, _ := d.doc.Version(c.Version)
	switch {
	case c.Verb == "pause", c.Verb == "resume":
		return d.note(c.Verb+"d", func(next *Document) { next.Paused = c.Verb == "pause" })
	case d.doc.Paused:
		return Action{}
	case c.Verb == "abort" && isComing:
		return d.note("aborted "+coming.ID, func(next *Document) {
			next.edit(coming.ID, func(v *Version) { v.enter(Retiring, next.Step, d.f.Now) })
		})
	case c.Verb == "rollback" && !isComing:
		if former, ok := d.doc.Former(); ok {
			return d.note("returns to "+former.ID, func(next *Document) {
				next.edit(former.ID, func(v *Version) {
					v.enter(Returning, next.Step, d.f.Now)
					v.Fence = d.doc.NewID(d.f.Now)
				})
			})
		}
	case c.Verb == "now" && !isComing,
		c.Verb == "promote" && (named.State == Pending || named.State == Accepted),
		c.Verb == "retire" && named.State == Retiring:
		return Action{}
	}
	return d.note("refused: "+c.Verb+" "+c.Version+" is not possible at this stage", func(*Document) {})
}

// takeOver lets the set change whatever another set left outside until now. The
// primary gets a new fence, so that the outside accepts it again.
func (d decision) takeOver(next *Document) {
	next.Claimed = d.doc.NewID(d.f.Now)
	if primary, ok := next.Primary(); ok {
		next.edit(primary.ID, func(v *Version) { v.Fence = next.Claimed })
	}
}

// note is a write that answers the command.
func (d decision) note(what string, do func(*Document)) Action {
	return write(d.doc.change(what, d.commanded(), do))
}
