package targets

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// DeliveredSet is the state in which a target shows a set of versions. If the data keys of
// a Secret show several steps, it is the oldest of these states.
type DeliveredSet struct {
	Step    uint64   `json:"step"`
	Stage   string   `json:"stage"`
	Primary string   `json:"primary"`
	IDs     []string `json:"ids"`              // of the valid versions, newest first
	Awaits  string   `json:"awaits,omitempty"` // the event that ends the stage
	// Parts are the data keys of a Secret that show this state, in ascending order. nil
	// means that any part may show it.
	Parts []string `json:"parts,omitempty"`
	// Newer are the states that other data keys show, by ascending step.
	Newer []DeliveredSet `json:"newer,omitempty"`
	Since time.Time      `json:"-"` // when this step was first delivered or found
	// Claimed means that this process has delivered none of these states. Only the target
	// itself says that it shows them.
	Claimed bool `json:"-"`
}

// States returns the states of all parts, by ascending step. They have no Newer.
func (d DeliveredSet) States() []DeliveredSet {
	states := append([]DeliveredSet{d}, d.Newer...)
	for i := range states {
		states[i].Newer, states[i].Claimed = nil, d.Claimed
	}
	return states
}

// JoinSets returns the state of a target whose parts show the states. States must not be
// empty, and have no Newer.
func JoinSets(states []DeliveredSet) DeliveredSet {
	slices.SortStableFunc(states, func(a, b DeliveredSet) int { return cmp.Compare(a.Step, b.Step) })
	var all []DeliveredSet
	claimed := true
	for _, state := range states {
		claimed = claimed && state.Claimed
		if last := len(all) - 1; last >= 0 && all[last].Step == state.Step {
			all[last].Parts = append(slices.Clone(all[last].Parts), state.Parts...)
			slices.Sort(all[last].Parts)
			continue
		}
		all = append(all, state)
	}
	joined := all[0]
	joined.Newer, joined.Claimed = all[1:len(all):len(all)], claimed
	return joined
}

// After returns why a set may not replace the delivered one. It is older than a part of
// that one, or another set of the same step.
func (d DeliveredSet) After(was DeliveredSet) error {
	states := was.States()
	switch was := states[len(states)-1]; {
	case d.Step < was.Step:
		return fmt.Errorf("it is at step %d, but step %d was delivered already, as after a restored backup; put the later one back, or \"claim\" the set", d.Step, was.Step)
	case d.Step == was.Step && (d.Primary != was.Primary || !slices.Equal(d.IDs, was.IDs)):
		return fmt.Errorf("it has the delivered step %d, but other versions, as after a restored backup; restore the delivered value", d.Step)
	}
	return nil
}
