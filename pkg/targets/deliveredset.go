package targets

import (
	"fmt"
	"slices"
	"time"
)

// DeliveredSet is the state in which a target shows a set of versions.
type DeliveredSet struct {
	Step    uint64    `json:"step"`
	Stage   string    `json:"stage"`
	Primary string    `json:"primary"`
	IDs     []string  `json:"ids"`              // of the valid versions, newest first
	Awaits  string    `json:"awaits,omitempty"` // the event that ends the stage
	Since   time.Time `json:"-"`                // when this step was first delivered or found
}

// After returns why a set may not replace the delivered one: it is older, or another set
// of the same step.
func (d DeliveredSet) After(was DeliveredSet) error {
	switch {
	case d.Step < was.Step:
		return fmt.Errorf("it is at step %d, but step %d was delivered already, as after a restored backup; put the later one back, or \"claim\" the set", d.Step, was.Step)
	case d.Step == was.Step && (d.Primary != was.Primary || !slices.Equal(d.IDs, was.IDs)):
		return fmt.Errorf("it has the delivered step %d, but other versions, as after a restored backup; restore the delivered value", d.Step)
	}
	return nil
}
