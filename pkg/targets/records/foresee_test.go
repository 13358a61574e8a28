package records

import "testing"

// What was foreseen is for one sync, and only until the destination was read or written.
func TestForeseen(t *testing.T) {
	var set Set
	lane, target := set.Lane(""), kube("a", nil)
	foresee := func(what string) { set.RecordBeforeFirstSync(target.Key, func() any { return what }) }
	begin := func(version string) any {
		lane.Put(target)
		r, _ := lane.Begin(target.Key)
		r.Status.Version = version
		lane.Settle(r)
		return r.Seen
	}
	foresee("old")
	foresee("new") // before there is a record
	if seen := begin(""); seen != "new" {
		t.Errorf("the first sync has %v", seen)
	}
	if seen := begin(""); seen != nil {
		t.Errorf("the second one has %v too", seen)
	}
	foresee("seen while a sync wrote it")
	lane.Put(target)
	r, _ := lane.Begin(target.Key)
	foresee("the write")
	r.Status.Version = "1"
	lane.Settle(r)
	if len(set.seen) > 0 {
		t.Errorf("kept after a write: %v", set.seen)
	}
	foresee("a change after it")
	if seen := begin("2"); seen != nil {
		t.Errorf("after a write, a sync has %v", seen)
	}
	foresee("again")
	lane.Delete(target.Key)
	foresee("another Secret of the name")
	lane.Delete(target.Key)
	if len(set.seen) > 0 {
		t.Errorf("remembered of a deleted Secret: %v", set.seen)
	}
	foresee("the one of two")
	other := kube("b", nil)
	set.RecordBeforeFirstSync(other.Key, func() any { return "the other" })
	set.Lane("").Delete(target.Key)
	if len(set.seen) != 1 || set.seen[other.Key] != "the other" {
		t.Errorf("after the Secret a is deleted, remembered: %v", set.seen)
	}
}
