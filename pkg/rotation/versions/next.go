package versions

import (
	"fmt"
	"time"
)

// clockStep is how much less time may have passed than Conjur's clock shows. The time in
// an access token is in whole seconds.
const clockStep = 2 * time.Second

// Verb is the kind of an Action.
type Verb string

const (
	// Idle does nothing: the set is idle, and no new version is due.
	Idle Verb = "idle"
	// Wait does nothing. Action.Why is the reason for the wait.
	Wait Verb = "wait"
	// Write sets the variable to Action.Doc.
	Write Verb = "write"
	// Make generates the parts of a version with the id Action.Version and writes the
	// result of Document.Make.
	Make Verb = "make"
	// Apply makes the outside accept a version and remember its fence. The outside refuses
	// a fence that is earlier than the remembered one, or revoked.
	Apply Verb = "apply"
	// Verify uses a version.
	Verify Verb = "verify"
	// Revoke makes the outside refuse a version, and all versions with its fence or an
	// earlier one, even unknown ones. A version for which the outside remembers a later
	// fence stays accepted.
	Revoke Verb = "revoke"
)

// Policy is the configuration of a set.
type Policy struct {
	Owner string
	// Outside means that an outside system must accept each version: the versions are
	// logins. Otherwise they are keys, and consumers must know a key before it becomes
	// primary.
	Outside bool
	// Keep is the minimum time that a version stays valid after the last consumer has
	// left it.
	Keep time.Duration
	// Lease is the maximum time in which a controller may still act after it has lost its
	// Lease, because it has not noticed.
	Lease time.Duration
	// GiveUp is how long a version may fail to be accepted; 0 means forever.
	GiveUp time.Duration
}

// Facts are facts beside the document, observed after it was read. Unknown facts are
// absent: the zero Facts open no gate.
type Facts struct {
	Now time.Time // by Conjur's clock
	// Seen is the highest step that any target shows or that this process saw.
	Seen uint64
	// Due means that the schedule requests a new version. Barred, if not empty, is why
	// none may begin: a budget, or failures in a row.
	Due    bool
	Barred string
	// Introduced opens gate A, before the primary: every consumer has the accepted
	// version, from the step that accepted it or a later one.
	Introduced bool
	// Left opens gate B, after retiring, by the ID of a version. true means that every
	// consumer uses the primary, from a document with the version's step or a later one.
	// It also means that no session remains and the migration is complete. false means
	// that the version is in use. If the ID is absent, its use is unknown.
	Left map[string]bool
	// Shown are the versions that a target shows as the primary, by ID.
	Shown   map[string]bool
	Command Command
	// Tried holds the known outcomes of acts after the document was read, within the last
	// minute. false is a refusal: a login that fails, or a version that will not be
	// accepted. A revocation is refused if its fence is earlier than the remembered one.
	Tried map[Try]bool
	// Refusal is why the outside refused the last act, in at most MaxRefusal bytes. It is
	// empty if the outside did not refuse or gave no reason.
	Refusal string
}

// Try is an outside act.
type Try struct {
	Verb    Verb // Apply, Verify or Revoke
	Version string
}

// Action is the next action.
type Action struct {
	Verb    Verb
	Version string    // of Make, Apply, Verify and Revoke
	Command string    // answered by Make
	Doc     *Document // of Write
	Why     string    // of Wait
	// Until is when the wait ends; zero if it waits for a fact that does not depend on
	// time.
	Until time.Time
}

// Next returns the due action for a set that was read as doc. The caller carries it out.
// After an outside act with a known outcome, the caller may call Next again with that
// fact. After anything else, including a write with an unknown outcome, the caller first
// reads the set again.
func Next(doc *Document, p Policy, f Facts) Action {
	d := decision{doc, p, f}
	if a := d.obey(); a.Verb != "" {
		return a
	}
	switch {
	case f.Seen > doc.Step:
		return wait(`step %d was delivered already, but the set is at %d, as after a restored backup; look at it and then "claim" it`, f.Seen, doc.Step)
	case doc.Owner != p.Owner:
		return Action{Verb: Wait, Why: doc.OwnerText()}
	case doc.Paused:
		return wait(`it is paused; to go on, "resume" it`)
	}
	var waiting Action
	for _, v := range doc.Versions {
		a := d.byState(v)
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

// decision is one call of Next. obey is in command.go.
type decision struct {
	doc    *Document
	policy Policy
	facts  Facts
}

// by is the log line for an action that is due.
func (d decision) by() Entry { return Entry{At: d.facts.Now} }

// commanded is the log line for an action that an operator ordered.
func (d decision) commanded() Entry {
	return Entry{At: d.facts.Now, Command: d.facts.Command.ID, Reason: d.facts.Command.Reason}
}

// byState returns the due action for one version; the zero Action if nothing will ever be due.
func (d decision) byState(v Version) Action {
	switch v.State {
	case Pending:
		return d.whilePending(v)
	case Accepted:
		return d.whileAccepted(v)
	case Returning:
		return d.whileReturning(v)
	case Retiring:
		return d.whileRetiring(v)
	case Revoking:
		return d.whileRevoking(v)
	}
	return Action{}
}

// whilePending returns the next action for a version that the outside must accept first.
func (d decision) whilePending(v Version) Action {
	if a := d.apply(v, "gave up "+v.ID, v.ID+" was refused"); a.Verb != "" {
		return a
	}
	return write(d.doc.to(v.ID, Accepted, "accepted "+v.ID, d.by()))
}

// whileAccepted promotes a version, once it can be used outside or all consumers have it.
func (d decision) whileAccepted(v Version) Action {
	_, hasPrimary := d.doc.Primary()
	by, forced := d.by(), d.isOrdered("promote", v.ID) || d.isOrdered("promote", "")
	if forced {
		by = d.commanded()
	}
	switch {
	case d.policy.Outside && d.givenUp(v):
		return d.drop(v, "gave up "+v.ID)
	case d.policy.Outside:
		if a := d.verify(v); a.Verb != "" {
			return a
		}
	case hasPrimary && !forced && !d.facts.Introduced:
		return wait("not all consumers have %s", v.ID)
	}
	return write(d.doc.Promote(v.ID, by))
}

// whileReturning makes the former version primary again. The outside first gets a new fence. A
// controller that is about to revoke the version does not have that fence.
func (d decision) whileReturning(v Version) Action {
	if a := d.apply(v, "gave up the way back to "+v.ID, v.ID+" was revoked already"); a.Verb != "" {
		return a
	}
	return write(d.doc.Promote(v.ID, d.by()))
}

// apply returns the action that is missing for the outside to accept a version; no Verb
// if none is missing. It drops a version that is given up or refused, with the given
// reason.
func (d decision) apply(v Version, givenUp, refused string) Action {
	if !d.policy.Outside {
		return Action{}
	}
	if d.givenUp(v) {
		return d.drop(v, givenUp)
	}
	if accepted, tried := d.facts.Tried[Try{Apply, v.ID}]; !tried {
		return Action{Verb: Apply, Version: v.ID}
	} else if !accepted {
		a := d.drop(v, refused)
		a.Doc.edit(v.ID, func(v *Version) { v.Refused = d.facts.Refusal })
		return a
	}
	return d.verify(v)
}

// whileRetiring begins the revocation when gate B is open and the version was kept for long
// enough, or an operator forces it.
func (d decision) whileRetiring(v Version) Action {
	_, hasPrimary := d.doc.Primary()
	left, known := d.facts.Left[v.ID]
	left = left || !hasPrimary
	switch {
	case d.isOrdered("retire", v.ID):
		return write(d.doc.change("retires "+v.ID+" by force", d.commanded(), func(next *Document) {
			next.edit(v.ID, func(v *Version) {
				v.enter(Revoking, next.Step, d.facts.Now)
				v.Forced = true
			})
		}))
	case known && !left && !v.Left.IsZero():
		return write(d.doc.left(v.ID, time.Time{}, d.by()))
	case !left:
		return wait("not all consumers are known to have left %s", v.ID)
	case v.Left.IsZero() && d.policy.Keep > 0:
		return write(d.doc.left(v.ID, d.facts.Now, d.by()))
	case d.policy.Keep > 0 && d.facts.Now.Before(v.Left.Add(d.policy.Keep+clockStep)):
		return waitUntil(v.Left.Add(d.policy.Keep+clockStep), "%s is kept until %s", v.ID, v.Left.Add(d.policy.Keep+clockStep).UTC().Format(time.RFC3339))
	}
	return write(d.doc.to(v.ID, Revoking, "revokes "+v.ID, d.by()))
}

// whileRevoking returns the next action for a version that must be revoked. It waits until the
// lease of other controllers has passed, and until no target shows the version as the
// primary. Unless the operator forced it, it then waits until all consumers use the
// primary. A login is revoked only right after the login of the primary has worked.
func (d decision) whileRevoking(v Version) Action {
	primary, hasPrimary := d.doc.Primary()
	switch {
	case d.facts.Now.Before(v.Since.Add(d.policy.Lease)):
		return waitUntil(v.Since.Add(d.policy.Lease), "another controller may have decided otherwise")
	case d.facts.Shown[v.ID]:
		return wait("a target still shows %s as the primary", v.ID)
	case hasPrimary && !v.Forced && !d.facts.Left[v.ID]:
		return wait("not all consumers are known to use %s", primary.ID)
	case d.policy.Outside && hasPrimary:
		if a := d.verify(primary); a.Verb != "" {
			return a
		}
	}
	if d.policy.Outside {
		if refused, tried := d.facts.Tried[Try{Revoke, v.ID}]; !tried {
			return Action{Verb: Revoke, Version: v.ID}
		} else if !refused {
			return wait(`%s was revoked under an earlier fence than the outside carries; if that lasts, "claim" the set`, v.ID)
		}
	}
	return write(d.doc.Retire(v.ID, d.by()))
}

// begin returns Make if a new version is due and may be begun.
func (d decision) begin() Action {
	ordered := d.isOrdered("now", "")
	if !d.facts.Due && !ordered {
		return Action{}
	}
	if _, coming := d.doc.Coming(); coming {
		return Action{}
	}
	live := d.doc.Live()
	_, hasPrimary := d.doc.Primary()
	switch {
	case d.facts.Barred != "":
		return wait("%s", d.facts.Barred)
	case live >= MaxVersions:
		return wait("there are %d versions already; retire some", live)
	case d.policy.Outside && (live > 1 || live == 1 && !hasPrimary):
		return wait("both users are in use, because the former one is still valid")
	}
	a := Action{Verb: Make, Version: d.doc.NewID(d.facts.Now)}
	if ordered {
		a.Command = d.facts.Command.ID
	}
	return a
}

// verify returns the zero Action if the version was just used successfully.
func (d decision) verify(v Version) Action {
	if good, tried := d.facts.Tried[Try{Verify, v.ID}]; !tried {
		return Action{Verb: Verify, Version: v.ID}
	} else if !good {
		return wait("%s cannot be used", v.ID)
	}
	return Action{}
}

// givenUp reports whether a version has failed to be accepted for too long.
func (d decision) givenUp(v Version) bool {
	return d.policy.GiveUp > 0 && !d.facts.Now.Before(v.Since.Add(d.policy.GiveUp))
}

// drop stops the promotion of a pending version. It becomes retiring, because the outside
// may know it and consumers may have it.
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
