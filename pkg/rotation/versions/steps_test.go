package versions

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestAHighStepCanBeClaimed as long as a step is left.
func TestAHighStepCanBeClaimed(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	claim := Command{ID: "c", At: now, Verb: "claim"}
	for name, c := range map[string]struct{ step, seen uint64 }{
		"of the set":    {maxStep - 2, 0},
		"of a delivery": {7, maxStep - 2},
		"of both":       {maxStep - claimStepJump, maxStep - claimStepJump/2},
	} {
		doc := &Document{Step: c.step, Owner: "them"}
		a := Next(doc, Policy{Owner: "us"}, Facts{Now: now, Seen: c.seen, Command: claim})
		if a.Verb != Write || a.Doc.Owner != "us" || a.Doc.Step <= max(c.step, c.seen) {
			t.Errorf("%s: %+v", name, a)
			continue
		}
		value, err := a.Doc.Encode()
		if err == nil {
			_, err = Parse(value)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStepThatNoneFollowsIsRefused where it is read, or where a target shows it, with
// what to do about it.
func TestAStepThatNoneFollowsIsRefused(t *testing.T) {
	for _, step := range []string{"9007199254740992", "9007199254740993", "18446744073709551615"} {
		_, err := Parse([]byte(`{"syncerSet":1,"step":` + step + `,"versions":[]}`))
		if err == nil || !strings.Contains(err.Error(), `write a "step" below`) {
			t.Errorf("step %s: %v", step, err)
		}
	}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, seen := range []uint64{maxStep, math.MaxUint64} {
		doc := &Document{Step: 7, Owner: "us"}
		a := Next(doc, Policy{Owner: "us"}, Facts{Now: now, Seen: seen, Command: Command{ID: "c", At: now, Verb: "claim"}})
		if a.Verb != Write {
			t.Fatalf("%+v", a)
		}
		if e, _ := a.Doc.Answer("c"); !e.Refused || a.Doc.Step != 8 || !strings.Contains(e.What, "conjur.org/rotation") {
			t.Errorf("at step %d: %+v", a.Doc.Step, e)
		}
	}
}
