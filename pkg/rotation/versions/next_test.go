package versions

import (
	"strings"
	"testing"
	"time"
)

// A consumer that is silent for a moment does not have the time begin anew for
// which an old key is kept; one that uses the key does.
func TestTheTimeThatAKeyIsKept(t *testing.T) {
	d := New("us").Make("r1", parts("r1", 0), false, Entry{At: epoch}).Promote("r1", Entry{At: epoch})
	d = d.Make("r2", parts("r2", 0), false, Entry{At: epoch}).Promote("r2", Entry{At: epoch})
	p := Policy{Owner: "us", Keep: time.Hour}
	f := Facts{Now: epoch, Left: map[string]bool{"r1": true}}
	left := Next(d, p, f).Doc
	if left == nil {
		t.Fatal("it is not noted that all have left")
	}
	f.Left = nil
	if a := Next(left, p, f); a.Verb != Wait {
		t.Errorf("while nothing is known: %+v", a)
	}
	f.Left = map[string]bool{"r1": false}
	if a := Next(left, p, f); a.Verb != Write || !a.Doc.Versions[1].Left.IsZero() {
		t.Errorf("when it is used: %+v", a)
	}
	f.Left = map[string]bool{"r1": true}
	f.Now = epoch.Add(p.Keep) // what was signed last is a second younger, by a clock that counts in seconds
	if a := Next(left, p, f); a.Verb != Wait || a.Until.Sub(f.Now) != clockStep || !strings.HasSuffix(a.Why, "is kept until "+a.Until.UTC().Format(time.RFC3339)) {
		t.Errorf("when it seems to be over: %+v", a)
	}
	f.Now = f.Now.Add(clockStep)
	if a := Next(left, p, f); a.Verb != Write || a.Doc.Versions[1].State != Revoking {
		t.Errorf("when it is over: %+v", a)
	}
}

// TestWhatARevocationAwaits: each gate alone keeps a login from being revoked.
func TestWhatARevocationAwaits(t *testing.T) {
	by := Entry{At: epoch}
	d := New("us").Make("r1", parts("r1", 0), true, by).Promote("r1", by)
	d = d.Make("r2", parts("r2", 1), true, by).Promote("r2", by).to("r1", Revoking, "", by)
	forced := d.change("", by, func(next *Document) { next.edit("r1", func(v *Version) { v.Forced = true }) })
	p := Policy{Owner: "us", Outside: true, Lease: time.Minute}
	for what, c := range map[string]struct {
		d    *Document
		edit func(*Facts)
		want Action
	}{
		"all gates are open": {d, func(*Facts) {}, Action{Verb: Revoke, Version: "r1"}},
		"the lease of others": {d, func(f *Facts) { f.Now = f.Now.Add(-1) },
			Action{Verb: Wait, Why: "another controller may have decided otherwise", Until: epoch.Add(p.Lease)}},
		"a target":               {d, func(f *Facts) { f.Shown["r1"] = true }, wait("a target still shows r1 as the primary")},
		"consumers":              {d, func(f *Facts) { f.Left = nil }, wait("not all consumers are known to use r2")},
		"no consumers, by force": {forced, func(f *Facts) { f.Left = nil }, Action{Verb: Revoke, Version: "r1"}},
		"a login of the primary": {d, func(f *Facts) { f.Tried = nil }, Action{Verb: Verify, Version: "r2"}},
		"one that works":         {d, func(f *Facts) { f.Tried[Try{Verify, "r2"}] = false }, wait("r2 cannot be used")},
	} {
		f := Facts{Now: epoch.Add(p.Lease), Left: map[string]bool{"r1": true}, Shown: map[string]bool{}, Tried: map[Try]bool{{Verify, "r2"}: true}}
		c.edit(&f)
		if a := Next(c.d, p, f); a != c.want {
			t.Errorf("%s: %+v; want %+v", what, a, c.want)
		}
	}
}

// TestWhatEachStageAwaits goes through the stages of a login that is rotated, and
// rolled back.
func TestWhatEachStageAwaits(t *testing.T) {
	by := Entry{At: epoch}
	d := New("us").Make("r1", parts("r1", 0), true, by).to("r1", Accepted, "", by).Promote("r1", by)
	made := d.Make("r2", parts("r2", 1), true, by)
	accepted := made.to("r2", Accepted, "", by)
	promoted := accepted.Promote("r2", by)
	for _, c := range []struct {
		d             *Document
		stage, awaits string
	}{
		{d, "idle", ""},
		{made, "apply", "r2 is accepted outside"},
		{accepted, "introduce", "all consumers have r2"},
		{promoted, "switch", "all consumers use r2, and the earlier version was kept for long enough"},
		{promoted.to("r1", Returning, "", by), "return", "r1 is accepted outside"},
		{promoted.to("r1", Revoking, "", by), "revoke", "the earlier version is refused"},
		{promoted.Retire("r1", by), "idle", ""},
	} {
		if stage, awaits := c.d.Stage(), c.d.Awaits(); stage != c.stage || awaits != c.awaits {
			t.Errorf("stage %q awaits %q; want %q, %q", stage, awaits, c.stage, c.awaits)
		}
	}
}

// TestAClaimTakesOverTheOutside: what was there is the set's, and the outside accepts
// the primary again. Keys have nothing outside.
func TestAClaimTakesOverTheOutside(t *testing.T) {
	by := Entry{At: epoch}
	d := New("them").Make("r1", parts("r1", 0), true, by).Promote("r1", by)
	d.Identity = "x1"
	f := Facts{Now: epoch, Command: Command{ID: "c1", At: epoch, Verb: "claim"}}
	for _, d := range []*Document{d, New("us")} { // the second one has not begun
		next := Next(d, Policy{Owner: "us", Outside: true}, f).Doc
		if next == nil || next.Owner != "us" || next.Identity != d.Identity || next.Claimed != d.NewID(epoch) || next.Step <= claimStepJump {
			t.Fatalf("the claimed set is %+v", next)
		}
		if primary, ok := next.Primary(); ok && primary.Fence != next.Claimed {
			t.Errorf("the primary's fence is %s", primary.Fence)
		}
		value, err := next.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(value); err != nil || again.Claimed != next.Claimed || again.Identity != next.Identity {
			t.Errorf("it is read as %+v: %v", again, err)
		}
	}
	keys := Next(d, Policy{Owner: "us"}, f).Doc
	if primary, _ := keys.Primary(); keys.Claimed != "" || primary.Fence != "r1" {
		t.Errorf("of keys it is %+v", keys)
	}
	if view := d.With([]string{"user"}); view.Identity != "" || d.Identity == "" {
		t.Error("what is published has the identity")
	}
}
