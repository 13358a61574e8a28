// Package status shows an operator the state of all targets: as a live page, as JSON,
// and as a stream of changes. It shows names, times and errors, and never a value.
package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status is the state at one time. Unknown times are zero and omitted in JSON.
type Status struct {
	At      time.Time `json:"at"`
	Version string    `json:"version,omitempty"` // of the build
	Mode    string    `json:"mode"`
	// Namespace and Pod name the Pod of the process, and Started is when it began.
	Namespace string    `json:"namespace,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	// Standby names the process that works while this one waits.
	Standby string `json:"standby,omitempty"`
	// Restart says when all containers of the Pod restart in place, and how often they did.
	Restart string   `json:"restart,omitempty"`
	Lanes   []Lane   `json:"lanes"`
	Targets []Target `json:"targets"` // sorted by name
	// Rotations lists the sets that the process rotates, sorted by id.
	Rotations []Rotation `json:"rotations,omitempty"`
}

// Rotation is the rotation of a set of versions, in words. Two are equal if a reader sees
// no difference. It is not a rotation.Report, because health imports no rotation.
type Rotation struct {
	Set     string    `json:"set"`
	Stage   string    `json:"stage,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Primary string    `json:"primary,omitempty"`
	Due     time.Time `json:"due,omitzero"` // time of the next version
	// Waits says what the rotation waits for, such as a closed gate.
	// Problem is the reason why its state is unknown.
	Waits   string `json:"waitsFor,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Unasked describes the Pods that use the set and that are not asked about it.
	Unasked string `json:"unasked,omitempty"`
	// Unread are the namespaces that show it and that Syncer cannot follow, in words.
	Unread string `json:"unread,omitempty"`
}

// Lane is one identity at Conjur with its targets.
type Lane struct {
	Name    string `json:"name"`
	Targets int    `json:"targets"`
	Login   string `json:"login,omitempty"` // at Conjur; "" if the authenticator knows it
	URL     string `json:"url,omitempty"`   // of Conjur
	// Polled is the time of the last poll that checked every variable of the lane.
	Polled time.Time `json:"polled,omitzero"`
	// Held is not zero while the brake delays removals.
	Held Held `json:"held,omitzero"`
}

// Held describes delayed removals. So many variables are gone at once that it may
// be a mistake.
type Held struct {
	Gone  int       `json:"gone"` // variables
	Of    int       `json:"of"`   // variables in use
	Until time.Time `json:"until"`
}

// State is the state of a target.
type State string

// The states.
const (
	Fresh   State = "fresh"   // holds the current values
	Waiting State = "waiting" // not synced yet
	Stale   State = "stale"   // its last proof is too old
	Limited State = "limited" // fresh, but part of its definition has no effect, or a user did not get it
	Failing State = "failing" // the last sync failed; keeps its content
	Doubted State = "doubted" // variables seem to be gone, but the proof is incomplete or held back
	Revoked State = "revoked" // variables are proven to be gone
)

// Target is one file or Kubernetes Secret.
type Target struct {
	Name  string `json:"target"` // such as file/db or secret/shop/db
	Lane  string `json:"lane"`
	State State  `json:"state"`
	// Place is the path of a file, or the namespace and the name of a Secret.
	Place string `json:"place,omitempty"`
	// Variables lists the ids of its variables, separated by commas.
	Variables string `json:"variables,omitempty"`
	// Overrides lists the node-specific variables that replace general ones,
	// separated by commas.
	Overrides string `json:"overrides,omitempty"`
	// Expires is the earliest expiry of its certificates.
	Expires time.Time `json:"expires,omitzero"`
	// Proven is the time of the last proof that the target holds the current
	// values.
	Proven time.Time `json:"proven,omitzero"`
	// Changed is the time of the last change by this process.
	Changed time.Time `json:"changed,omitzero"`
	Error   string    `json:"error,omitempty"`
	// Limits says why a target is Limited.
	Limits string    `json:"limits,omitempty"`
	Since  time.Time `json:"failingSince,omitzero"`
	// Waits says what the target waits for. Next is the expected time, if known.
	Waits string    `json:"waitsFor,omitempty"`
	Next  time.Time `json:"next,omitzero"`
}

// ErrNotFresh means that at least one target is not fresh.
var ErrNotFresh = errors.New("not every target is fresh")

// Verdict returns nil if every target is fresh, and ErrNotFresh if one is not. Any other
// error says why the process does not know.
func (s Status) Verdict() error {
	switch {
	case s.Standby != "":
		pod, _, _ := strings.Cut(s.Standby, "_") // of the Lease's holder, which begins with the host name
		return fmt.Errorf("this process stands by and knows no target; ask the leader, for example by kubectl exec %s -- syncer status", pod)
	case len(s.Lanes) == 0:
		return errors.New("this process has not begun its work and knows no target yet; ask again")
	case slices.ContainsFunc(s.Targets, func(t Target) bool { return t.State != Fresh }):
		return ErrNotFresh
	}
	return nil
}

// change is the difference between two Statuses.
type change struct {
	At      time.Time `json:"at"`
	Lanes   []Lane    `json:"lanes"`
	Targets []Target  `json:"targets,omitempty"` // new or changed
	Gone    []string  `json:"gone,omitempty"`
	// Rotations lists all rotations, changed or not.
	Rotations []Rotation `json:"rotations,omitempty"`
}

// since returns the changes in s since before. It omits a target if only its proof
// time changed through the poll of its lane. The reader derives that time from the
// lane.
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
