package targets

import (
	"fmt"
	"slices"
	"time"
)

// DeliveredSet is what a target shows of a set of versions.
type DeliveredSet struct {
	Step    uint64    `json:"step"`
	Stage   string    `json:"stage"`
	Primary string    `json:"primary"`
	IDs     []string  `json:"ids"`              // of the versions that are valid, the newest first
	Awaits  string    `json:"awaits,omitempty"` // what ends the stage
	Since   time.Time `json:"-"`                // when it was first delivered, or found, at this step
}

// After returns why a set may not be delivered in place of one that was: it is
// older, or another one of the same step.
func (d DeliveredSet) After(was DeliveredSet) error {
	switch {
	case d.Step < was.Step:
		return fmt.Errorf("it is at step %d, but step %d was delivered already, as after a restored backup; put the later one back, or \"claim\" the set", d.Step, was.Step)
	case d.Step == was.Step && (d.Primary != was.Primary || !slices.Equal(d.IDs, was.IDs)):
		return fmt.Errorf("it is at step %d as what was delivered, but has other versions, as after a restored backup; put the one that was delivered back", d.Step)
	}
	return nil
}
