package versions

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Each change returns the document to write next; what it was called on stays.

// New returns a set without versions.
func New(owner string) *Document { return &Document{Owner: owner} }

// Make adds a version. It is pending where something outside has to accept it.
func (d *Document) Make(id string, parts map[string]secret.Value, outside bool, now time.Time, command string) *Document {
	state := Accepted
	if outside {
		state = Pending
	}
	return d.change(now, "made "+id, command, func(next *Document) {
		v := Version{ID: id, State: state, Step: next.Step, Since: now, Made: now, Fence: id, Parts: maps.Clone(parts)}
		next.Versions = slices.Insert(next.Versions, 0, v)
	})
}

// Promote makes a version the primary; the one that was is retiring then.
func (d *Document) Promote(id string, now time.Time, command string) *Document {
	return d.change(now, "promoted "+id, command, func(next *Document) {
		for i := range next.Versions {
			switch v := &next.Versions[i]; {
			case v.ID == id:
				v.enter(Primary, next.Step, now)
				v.Promoted, v.Left = now, time.Time{}
			case v.State == Primary:
				v.enter(Retiring, next.Step, now)
			}
		}
	})
}

// Retire takes a version's bytes away.
func (d *Document) Retire(id string, now time.Time, command string) *Document {
	return d.change(now, "retired "+id, command, func(next *Document) {
		next.edit(id, func(v *Version) {
			v.enter(Retired, next.Step, now)
			v.Parts = nil
		})
		kept := 0
		next.Versions = slices.DeleteFunc(next.Versions, func(v Version) bool {
			if v.State == Retired {
				kept++
			}
			return v.State == Retired && kept > maxRetired
		})
	})
}

// Again returns the document to write where d counts, but others have been
// there that were not built on. What they have and d never had is retiring in
// it: they may have been delivered, and acted upon.
func (d *Document) Again(now time.Time, others ...*Document) *Document {
	return d.change(now, "written again", "", func(next *Document) {
		for _, other := range others {
			for _, v := range other.Versions {
				if _, known := next.Version(v.ID); !known && v.State != Retired {
					v.enter(Retiring, next.Step, now)
					v.Left, v.Forced = time.Time{}, false
					next.Versions = append(next.Versions, v)
				}
			}
		}
		slices.SortStableFunc(next.Versions, func(a, b Version) int {
			if later(a.ID, b.ID) {
				return -1
			}
			return 1
		})
	})
}

// enter is the step that all states share.
func (v *Version) enter(state State, step uint64, now time.Time) {
	v.State, v.Step, v.Since = state, step, now
}

// to brings a version into a state in which nothing but that changes.
func (d *Document) to(id string, state State, what string, now time.Time, command string) *Document {
	return d.change(now, what, command, func(next *Document) {
		next.edit(id, func(v *Version) { v.enter(state, next.Step, now) })
	})
}

// edit calls do with the version of that id.
func (d *Document) edit(id string, do func(*Version)) {
	for i := range d.Versions {
		if d.Versions[i].ID == id {
			do(&d.Versions[i])
		}
	}
}

// left notes since when consumers have left a version, or that they have not.
func (d *Document) left(id string, at, now time.Time) *Document {
	what := "all have left " + id
	if at.IsZero() {
		what = fmt.Sprintf("%s is in use again", id)
	}
	return d.change(now, what, "", func(next *Document) {
		next.edit(id, func(v *Version) { v.Left = at })
	})
}

// change returns a copy with the next step and one more line in the log.
func (d *Document) change(now time.Time, what, command string, do func(*Document)) *Document {
	next := *d
	next.Step++
	next.Versions = slices.Clone(d.Versions)
	next.Log = append(slices.Clone(d.Log), Entry{At: now, What: what, Command: command})
	if extra := len(next.Log) - maxLog; extra > 0 {
		next.Log = next.Log[extra:]
	}
	do(&next)
	return &next
}
