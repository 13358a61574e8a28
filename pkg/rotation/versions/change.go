package versions

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// Each change returns the document to write next. The receiver stays unchanged. by is the
// new line of the log; the method fills in its What.

// New returns a set without versions.
func New(owner string) *Document { return &Document{Owner: owner} }

// Make adds a version. It is pending if the outside must accept it.
func (d *Document) Make(id string, parts map[string]secret.Value, outside bool, by Entry) *Document {
	state := Accepted
	if outside {
		state = Pending
	}
	return d.change("made "+id, by, func(next *Document) {
		v := Version{ID: id, State: state, Step: next.Step, Since: by.At, Made: by.At, Fence: id, Parts: maps.Clone(parts)}
		next.Versions = slices.Insert(next.Versions, 0, v)
	})
}

// Fill adds the parts that the outside minted to a pending version. An empty part removes
// the part of that name.
func (d *Document) Fill(id string, parts map[string]secret.Value, by Entry) *Document {
	return d.change("filled "+id, by, func(next *Document) {
		next.edit(id, func(v *Version) {
			v.Filled = true
			v.Parts = maps.Clone(v.Parts)
			maps.Copy(v.Parts, parts)
			maps.DeleteFunc(v.Parts, func(_ string, part secret.Value) bool { return part.Len() == 0 })
		})
	})
}

// With returns the set for readers who may have only the named parts. The result has no
// identity, because it is not an independent set. It has no pending version that the
// outside has not filled with these parts yet.
func (d *Document) With(parts []string) *Document {
	view := *d
	view.Identity, view.Claimed, view.Namespaces = "", "", nil
	view.Versions = slices.Clone(d.Versions)
	for i := range view.Versions {
		v := &view.Versions[i]
		v.Parts, v.Refused = maps.Clone(v.Parts), ""
		maps.DeleteFunc(v.Parts, func(name string, _ secret.Value) bool { return !slices.Contains(parts, name) })
	}
	view.Versions = slices.DeleteFunc(view.Versions, func(v Version) bool { return v.State == Pending && len(v.Parts) == 0 })
	return &view
}

// Promote makes a version the primary. The previous primary becomes retiring.
func (d *Document) Promote(id string, by Entry) *Document {
	return d.change("promoted "+id, by, func(next *Document) {
		for i := range next.Versions {
			switch v := &next.Versions[i]; {
			case v.ID == id:
				v.enter(Primary, next.Step, by.At)
				v.Promoted, v.Left = by.At, time.Time{}
			case v.State == Primary:
				v.enter(Retiring, next.Step, by.At)
			}
		}
	})
}

// Retire removes a version's bytes.
func (d *Document) Retire(id string, by Entry) *Document {
	return d.change("retired "+id, by, func(next *Document) {
		next.edit(id, func(v *Version) {
			v.enter(Retired, next.Step, by.At)
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

// Merge returns the document to write if d holds but others were written that d is not
// based on. Versions that the others have and d never had become retiring: they may have
// been delivered and used.
func (d *Document) Merge(by Entry, others ...*Document) *Document {
	return d.change("written again", by, func(next *Document) {
		for _, other := range others {
			for _, v := range other.Versions {
				if _, known := next.Version(v.ID); !known && v.State != Retired {
					v.enter(Retiring, next.Step, by.At)
					v.Left, v.Forced = time.Time{}, false
					next.Versions = append(next.Versions, v)
				}
			}
		}
		slices.SortStableFunc(next.Versions, func(a, b Version) int {
			if Later(a.ID, b.ID) {
				return -1
			}
			return 1
		})
	})
}

// enter makes the changes that all states share.
func (v *Version) enter(state State, step uint64, now time.Time) {
	v.State, v.Step, v.Since = state, step, now
}

// to moves a version into a state that changes nothing else.
func (d *Document) to(id string, state State, what string, by Entry) *Document {
	return d.change(what, by, func(next *Document) {
		next.edit(id, func(v *Version) { v.enter(state, next.Step, by.At) })
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

// left records since when consumers have left a version, or that they have not left it.
func (d *Document) left(id string, at time.Time, by Entry) *Document {
	what := "all have left " + id
	if at.IsZero() {
		what = fmt.Sprintf("%s is in use again", id)
	}
	return d.change(what, by, func(next *Document) {
		next.edit(id, func(v *Version) { v.Left = at })
	})
}

// change returns a copy with the next step and one more line in the log.
func (d *Document) change(what string, by Entry, do func(*Document)) *Document {
	by.What = what
	next := *d
	next.Step++
	next.Versions = slices.Clone(d.Versions)
	next.Log = append(slices.Clone(d.Log), by)
	next.Log = trimmed(next.Log)
	do(&next)
	return &next
}

// trimmed returns the last lines of a log. Before them it keeps lines that answer a
// command which has not expired yet, so that the command is not obeyed again. Their
// number is limited, so that commands cannot fill the set.
func trimmed(log []Entry) []Entry {
	extra := max(len(log)-maxLog, 0)
	now := log[len(log)-1].At
	kept := slices.DeleteFunc(slices.Clone(log[:extra]), func(e Entry) bool {
		return e.Command == "" || now.Sub(e.At) > 2*commandLife // clocks may differ
	})
	return append(kept[max(len(kept)-maxAnswers, 0):], log[extra:]...)
}
