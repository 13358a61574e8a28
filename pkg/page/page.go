// Package page shows an operator what is known of all targets: as a page that
// follows what happens, as JSON, and as a stream of changes. It shows names,
// times and errors, and never a value.
package page

import (
	"slices"
	"time"
)

// Status is what is known at one time. Times that are not known are zero, and
// left out in JSON.
type Status struct {
	At      time.Time `json:"at"`
	Version string    `json:"version,omitempty"` // of the build
	Mode    string    `json:"mode"`
	// Standby names the process that works while this one waits.
	Standby string   `json:"standby,omitempty"`
	Lanes   []Lane   `json:"lanes"`
	Targets []Target `json:"targets"` // in the order of their names
	// Rotations are the sets that the process rotates, in the order of their ids.
	Rotations []Rotation `json:"rotations,omitempty"`
}

// Rotation is a set of versions that is rotated.
type Rotation struct {
	Set     string    `json:"set"`
	Stage   string    `json:"stage,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Primary string    `json:"primary,omitempty"`
	Due     time.Time `json:"due,omitzero"` // the next version
	// Waits says what it waits for, such as a gate that is shut; Problem is why
	// nothing is known of it.
	Waits   string `json:"waitsFor,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Unasked are the Pods that use it and that nobody asks, in words.
	Unasked string `json:"unasked,omitempty"`
}

// Lane is an identity that Conjur is asked as.
type Lane struct {
	Name    string `json:"name"`
	Targets int    `json:"targets"`
	// Polled is when a poll last looked at every variable of the lane.
	Polled time.Time `json:"polled,omitzero"`
	// Held is not zero while the brake holds removals back.
	Held Held `json:"held,omitzero"`
}

// Held is removals that are held back, as so much is gone at once that it may be
// a mistake.
type Held struct {
	Gone  int       `json:"gone"` // variables
	Of    int       `json:"of"`   // variables in use
	Until time.Time `json:"until"`
}

// State is how a target is doing.
type State string

// The states.
const (
	Fresh   State = "fresh"   // it holds what Conjur has
	Waiting State = "waiting" // it was not synced yet
	Stale   State = "stale"   // too long ago that it was proven to
	Failing State = "failing" // the last sync failed, and it holds what it held before
	Doubted State = "doubted" // variables of it seem to be gone, which is not proven yet or held back
	Revoked State = "revoked" // variables of it are proven to be gone
)

// Target is one file or Kubernetes Secret.
type Target struct {
	Name  string `json:"target"` // such as file/db or secret/shop/db
	Lane  string `json:"lane"`
	State State  `json:"state"`
	// Overrides are the variables of the node's own that it reads in the place
	// of general ones, with commas between them.
	Overrides string `json:"overrides,omitempty"`
	// Expires is when the first of the certificates in it does.
	Expires time.Time `json:"expires,omitzero"`
	// Proven is when it was last proven to hold what Conjur has.
	Proven time.Time `json:"proven,omitzero"`
	// Changed is when this process last changed it.
	Changed time.Time `json:"changed,omitzero"`
	Error   string    `json:"error,omitempty"`
	Since   time.Time `json:"failingSince,omitzero"`
	// Waits says what it waits for; Next is when that comes, where that is known.
	Waits string    `json:"waitsFor,omitempty"`
	Next  time.Time `json:"next,omitzero"`
}

// Well reports whether every target is fresh.
func (s Status) Well() bool {
	return !slices.ContainsFunc(s.Targets, func(t Target) bool { return t.State != Fresh })
}

// change is what differs between two Statuses.
type change struct {
	At      time.Time `json:"at"`
	Lanes   []Lane    `json:"lanes"`
	Targets []Target  `json:"targets,omitempty"` // new, or not as before
	Gone    []string  `json:"gone,omitempty"`
	// Rotations are all of them.
	Rotations []Rotation `json:"rotations,omitempty"`
}

// since returns what has changed in s since before. A target that only the poll
// of its lane proves anew is not in it: whoever reads the change knows that from
// the lane.
func (s Status) since(before Status) change {
	c := change{At: s.At, Lanes: s.Lanes, Rotations: s.Rotations}
	was := make(map[string]Target, len(before.Targets))
	for _, t := range before.Targets {
		was[t.Name] = t
	}
	polled, polledBefore := s.polls(), before.polls()
	for _, t := range s.Targets {
		old, ok := was[t.Name]
		delete(was, t.Name)
		if ok && old.Proven.Equal(polledBefore[old.Lane]) && t.Proven.Equal(polled[t.Lane]) {
			old.Proven = t.Proven
		}
		if !ok || t != old {
			c.Targets = append(c.Targets, t)
		}
	}
	for name := range was {
		c.Gone = append(c.Gone, name)
	}
	slices.Sort(c.Gone)
	return c
}

func (s Status) polls() map[string]time.Time {
	polls := make(map[string]time.Time, len(s.Lanes))
	for _, l := range s.Lanes {
		polls[l.Name] = l.Polled
	}
	return polls
}
