package versions

import "testing"

// TestPromoteNeedsNoVersion: who steers may have no right to read which one is on its way.
func TestPromoteNeedsNoVersion(t *testing.T) {
	by := Entry{At: epoch}
	d := New("us").Make("r1", parts("r1", 0), false, by).Promote("r1", by)
	f := Facts{Now: epoch, Command: Command{ID: "c1", At: epoch, Verb: "promote", Reason: "leak"}}
	if err := f.Command.Check(); err != nil {
		t.Error(err)
	}
	keys, logins := Policy{Owner: "us"}, Policy{Owner: "us", Outside: true}
	refused := Next(d, keys, f).Doc
	if e, ok := refused.Answer("c1"); !ok || !e.Refused || e.What != "refused: no version waits to be promoted" {
		t.Errorf("with no version on its way the answer is %+v", e)
	}
	coming := d.Make("r2", parts("r2", 1), false, by)
	f.Tried = map[Try]bool{{Verify, "r2"}: true}
	for _, p := range []Policy{keys, logins} {
		promoted := Next(coming, p, f).Doc
		primary, _ := promoted.Primary()
		if e, ok := promoted.Answer("c1"); !ok || e.Refused || e.Reason != "leak" || primary.ID != "r2" {
			t.Errorf("outside %v: the primary is %s, and the answer %+v", p.Outside, primary.ID, e)
		}
	}
	f.Command.Version = "r1"
	if e, _ := Next(coming, keys, f).Doc.Answer("c1"); !e.Refused {
		t.Errorf("another version than the one on its way: %+v", e)
	}
}
