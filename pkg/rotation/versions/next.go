package versions

import (
	"fmt"
	"time"
)

// clockStep is how much less than by Conjur's clock may have passed: each access
// token has a whole second to count from.
const clockStep = 2 * time.Second

// Verb is what an Action does.
type Verb string

const (
	// Idle does nothing: the set is idle, and no new version is due.
	Idle Verb = "idle"
	// Wait does nothing; Action.Why says what it waits for.
	Wait Verb = "wait"
	// Write sets the variable to Action.Doc.
	Write Verb = "write"
	// Make generates the parts of a version with the id Action.Version, and
	// writes what Document.Make returns.
	Make Verb = "make"
	// Apply has the outside accept a version under its fence. The outside
	// refuses a fence that is below the one it carries, or revoked.
	Apply Verb = "apply"
	// Verify uses a version.
	Verify Verb = "verify"
	// Revoke has the outside refuse a version and all that come with its fence
	// or an earlier one, also if it does not know it. It leaves a version
	// alone that it carries under a later fence.
	Revoke Verb = "revoke"
)

// Policy is what is configured for a set.
type Policy struct {
	Owner string
	// Outside says that something outside has to accept each version: the
	// versions are logins. Without it they are keys, which consumers have to
	// know before one of them is primary.
	Outside bool
	// Keep is the least time that a version stays valid after the last
	// consumer left it.
	Keep time.Duration
	// Lease is for how long a controller that lost its Lease may not know it.
	Lease time.Duration
	// GiveUp is for how long a version may fail to be accepted; 0: for ever.
	GiveUp time.Duration
}

// Facts are what is known beside the document, as of after it was read. What is
// not known is not a fact: the zero Facts open no gate.
type Facts struct {
	Now time.Time // by Conjur's clock
	// Seen is the highest step that any target shows, or that this process saw.
	Seen uint64
	// Due says that a new version is to be made by the schedule, and Barred, if
	// it is not empty, why none may be begun: a budget, failures in a row.
	Due    bool
	Barred string
	// Introduced opens gate A: every consumer has the version that is accepted,
	// from the step that accepted it or a later one.
	Introduced bool
	// Left opens gate B of the versions in it, by ID: every consumer uses the
	// primary, from a document whose step is the version's or a later one, no
	// session is left and the migration is done. False says that a version is in
	// use; of one that is not in it, that is not known.
	Left map[string]bool
	// Shown are the versions that a target shows as the primary, by ID.
	Shown   map[string]bool
	Command Command
	// Tried has the outcomes of what was done since the document was read,
	// within the last minute. False is a refusal: a verified login that fails,
	// a version that is not accepted and will not be, a fence that is carried
	// no more. An unknown outcome is not in it.
	Tried map[Try]bool
	// Refusal is why the outside refused what was tried last, in at most MaxRefusal
	// bytes; empty: it did not, or did not say.
	Refusal string
}

// Try is an act outside.
type Try struct {
	Verb    Verb // Apply, Verify or Revoke
	Version string
}

// Action is the one thing to do.
type Action struct {
	Verb    Verb
	Version string    // of Make, Apply, Verify and Revoke
	Command string    // that Make answers
	Doc     *Document // of Write
	Why     string    // of Wait
	// Until is when the time that Wait waits for is over; zero: it waits for a
	// fact that no clock brings.
	Until time.Time
}

// Next returns what is to be done with a set that was read as doc. The caller
// does it. After an act outside with a known outcome it may ask again with that
// among the facts; after all else it reads the set anew first, as after a write
// whose outcome is unknown.
func Next(doc *Document, p Policy, f Facts) Action {
	d := decision{doc, p, f}
	if a := d.obey(); a.Verb != "" {
		return a
	}
	switch {
	case f.Seen > doc.Step:
		return wait(`step %d was delivered already, but the set is at %d, as after a restored backup; look at it and then "claim" it`, f.Seen, doc.Step)
	case doc.Owner != p.Owner:
		return Action{Verb: Wait, Why: doc.Owned()}
	case doc.Paused:
		return wait(`it is paused; to go on, "resume" it`)
	}
	var waiting Action
	for _, v := range doc.Versions {
		a := d.of(v)
		if a.Verb != "" && a.Verb != Wait {
			return a
		}
		if waiting.Verb == "" {
			waiting = a
		}
	}
	if a := d.begin(); a.Verb != "" && (a.Verb != Wait || waiting.Verb == "") {
		return a
	}
	if waiting.Verb == "" {
		return Action{Verb: Idle}
	}
	return waiting
}

type decision struct {
	doc *Document
	p   Policy
	f   Facts
}

// by is the log's line of what is done because it is due, and commanded of what a
// person wants.
func (d decision) by() Entry { return Entry{At: d.f.Now} }

func (d decision) commanded() Entry {
	return Entry{At: d.f.Now, Command: d.f.Command.ID, Reason: d.f.Command.Reason}
}

// of returns what is due for one version; the zero Action if nothing ever is.
func (d decision) of(v Version) Action {
	switch v.State {
	case Pending:
		return d.accept(v)
	case Accepted:
		return d.introduce(v)
	case Returning:
		return d.comeBack(v)
	case Retiring:
		return d.leave(v)
	case Revoking:
		return d.revoke(v)
	}
	return Action{}
}

func (d decision) accept(v Version) Action {
	if a := d.apply(v, "gave up "+v.ID, v.ID+" was refused"); a.Verb != "" {
		return a
	}
	return write(d.doc.to(v.ID, Accepted, "accepted "+v.ID, d.by()))
}

func (d decision) introduce(v Version) Action {
	_, used := d.doc.Primary()
	by, forced := d.by(), d.commands("promote", v.ID) || d.commands("promote", "")
	if forced {
		by = d.commanded()
	}
	switch {
	case d.p.Outside && d.givenUp(v):
		return d.drop(v, "gave up "+v.ID)
	case d.p.Outside:
		if a := d.verify(v); a.Verb != "" {
			return a
		}
	case used && !forced && !d.f.Introduced:
		return wait("not all consumers have %s", v.ID)
	}
	return write(d.doc.Promote(v.ID, by))
}

// comeBack makes the former version primary again. The outside gets a new
// fence first, which a controller that is about to revoke it does not have.
func (d decision) comeBack(v Version) Action {
	if a := d.apply(v, "gave up the way back to "+v.ID, v.ID+" was revoked already"); a.Verb != "" {
		return a
	}
	return write(d.doc.Promote(v.ID, d.by()))
}

// apply returns what is missing for the outside to have accepted a version, and no
// Verb when nothing is. It drops one that is given up, or refused, for that reason.
func (d decision) apply(v Version, givenUp, refused string) Action {
	if !d.p.Outside {
		return Action{}
	}
	if d.givenUp(v) {
		return d.drop(v, givenUp)
	}
	if accepted, tried := d.f.Tried[Try{Apply, v.ID}]; !tried {
		return Action{Verb: Apply, Version: v.ID}
	} else if !accepted {
		a := d.drop(v, refused)
		a.Doc.edit(v.ID, func(v *Version) { v.Refused = d.f.Refusal })
		return a
	}
	return d.verify(v)
}

func (d decision) leave(v Version) Action {
	_, used := d.doc.Primary()
	left, known := d.f.Left[v.ID]
	left = left || !used
	switch {
	case d.commands("retire", v.ID):
		return write(d.doc.change("retires "+v.ID+" by force", d.commanded(), func(next *Document) {
			next.edit(v.ID, func(v *Version) {
				v.enter(Revoking, next.Step, d.f.Now)
				v.Forced = true
			})
		}))
	case known && !left && !v.Left.IsZero():
		return write(d.doc.left(v.ID, time.Time{}, d.by()))
	case !left:
		return wait("not all consumers are known to have left %s", v.ID)
	case v.Left.IsZero() && d.p.Keep > 0:
		return write(d.doc.left(v.ID, d.f.Now, d.by()))
	case d.p.Keep > 0 && d.f.Now.Before(v.Left.Add(d.p.Keep+clockStep)):
		return waitUntil(v.Left.Add(d.p.Keep+clockStep), "%s is kept for a while", v.ID)
	}
	return write(d.doc.to(v.ID, Revoking, "revokes "+v.ID, d.by()))
}

// revoke goes by rule 1: what is refused is no primary, and no target shows it
// as one. A login is refused only right after the primary's was used, a key
// only while all use the primary.
func (d decision) revoke(v Version) Action {
	primary, used := d.doc.Primary()
	switch {
	case d.f.Now.Before(v.Since.Add(d.p.Lease)):
		return waitUntil(v.Since.Add(d.p.Lease), "another controller may have decided otherwise")
	case d.f.Shown[v.ID]:
		return wait("a target still shows %s as the primary", v.ID)
	case used && !v.Forced && !d.f.Left[v.ID]:
		return wait("not all consumers are known to use %s", primary.ID)
	case d.p.Outside && used:
		if a := d.verify(primary); a.Verb != "" {
			return a
		}
	}
	if d.p.Outside {
		if refused, tried := d.f.Tried[Try{Revoke, v.ID}]; !tried {
			return Action{Verb: Revoke, Version: v.ID}
		} else if !refused {
			return wait(`%s was revoked under an earlier fence than the outside carries; if that lasts, "claim" the set`, v.ID)
		}
	}
	return write(d.doc.Retire(v.ID, d.by()))
}

// begin returns Make if a new version is due and may be begun.
func (d decision) begin() Action {
	now := d.commands("now", "")
	if !d.f.Due && !now {
		return Action{}
	}
	if _, coming := d.doc.Coming(); coming {
		return Action{}
	}
	valid := d.doc.Live()
	_, used := d.doc.Primary()
	switch {
	case d.f.Barred != "":
		return wait("%s", d.f.Barred)
	case valid >= MaxVersions:
		return wait("there are %d versions already; retire some", valid)
	case d.p.Outside && (valid > 1 || valid == 1 && !used):
		return wait("the users take turns, and the former one is still valid")
	}
	a := Action{Verb: Make, Version: d.doc.NewID(d.f.Now)}
	if now {
		a.Command = d.f.Command.ID
	}
	return a
}

// verify returns the zero Action if the version was just used with success.
func (d decision) verify(v Version) Action {
	if good, tried := d.f.Tried[Try{Verify, v.ID}]; !tried {
		return Action{Verb: Verify, Version: v.ID}
	} else if !good {
		return wait("%s cannot be used", v.ID)
	}
	return Action{}
}

func (d decision) givenUp(v Version) bool {
	return d.p.GiveUp > 0 && !d.f.Now.Before(v.Since.Add(d.p.GiveUp))
}

// drop takes a version off its way. It is retiring then, as the outside may know
// it, and consumers may have it.
func (d decision) drop(v Version, what string) Action {
	return write(d.doc.to(v.ID, Retiring, what, d.by()))
}

func write(doc *Document) Action { return Action{Verb: Write, Doc: doc} }

func wait(format string, args ...any) Action {
	return Action{Verb: Wait, Why: fmt.Sprintf(format, args...)}
}

func waitUntil(at time.Time, format string, args ...any) Action {
	a := wait(format, args...)
	a.Until = at
	return a
}
