package versions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// TestBoundsOfDocuments: what is written at a bound can be read, and beyond it neither is
// possible.
func TestBoundsOfDocuments(t *testing.T) {
	text := strings.Repeat("x", MaxRefusal+1)
	live := func(n int) *Document {
		d := New("us")
		for i := range n {
			d = d.Make(fmt.Sprintf("r%d", i), parts("r", 0), false, Entry{}).to(fmt.Sprintf("r%d", i), Retiring, "", Entry{})
		}
		return d
	}
	version := func(edit func(*Version)) *Document {
		d := live(1)
		edit(&d.Versions[0])
		return d
	}
	for what, c := range map[string]struct {
		bound int
		make  func(n int) *Document
	}{
		"live versions": {MaxVersions, live},
		"a refusal":     {MaxRefusal, func(n int) *Document { return version(func(v *Version) { v.Refused = text[:n] }) }},
		"an id":         {63, func(n int) *Document { return version(func(v *Version) { v.ID = text[:n] }) }},
		"a fence":       {63, func(n int) *Document { return version(func(v *Version) { v.Fence = text[:n] }) }},
		"an identity":   {63, func(n int) *Document { d := live(1); d.Identity = text[:n]; return d }},
		"a step":        {maxStep - 1, func(n int) *Document { d := live(1); d.Step = uint64(n); return d }},
		"a part's length": {63, func(n int) *Document {
			return version(func(v *Version) { v.Parts = map[string]secret.Value{text[:n]: secret.New([]byte("x"))} })
		}},
	} {
		for _, n := range []int{c.bound - 1, c.bound, c.bound + 1} {
			d := c.make(n)
			_, err := d.Encode()
			_, readErr := Parse(d.encode())
			if good := n <= c.bound; (err == nil) != good || (readErr == nil) != good {
				t.Errorf("%s, the bound%+d: written with %v, read with %v", what, n-c.bound, err, readErr)
			}
		}
	}
}

// TestBoundsOfBytes: a log that does not fit loses lines, down to one. A value without its
// log may be as large, because the next write shortens the log.
func TestBoundsOfBytes(t *testing.T) {
	sized := func(n int, log ...Entry) *Document {
		d := New("").Make("r1", parts("r1", 0), false, Entry{})
		d.Log = log
		d.Owner = strings.Repeat("x", n-len(d.encode())-len(`"owner":"",`))
		return d
	}
	for less := -1; less <= 1; less++ {
		two, err := sized(maxBytes+less, Entry{What: "a"}, Entry{What: "b"}).Encode()
		kept, readErr := Parse(two)
		if err != nil || readErr != nil || len(kept.Log) != 2-max(less, 0) {
			t.Fatalf("the bound%+d: %v, %v, and %+v is kept", less, err, readErr, kept)
		}
		_, err = sized(maxBytes+less, Entry{What: "a"}).Encode()
		_, readErr = Parse(sized(maxBytes + less + len("null")).encode())
		if (err == nil) != (less <= 0) || (readErr == nil) != (less <= 0) {
			t.Errorf("the bound%+d: written with %v, read with %v", less, err, readErr)
		}
	}
}

// TestBoundsOfTheLog: lines, lines that answer commands, and retired versions that stay.
func TestBoundsOfTheLog(t *testing.T) {
	for less := -1; less <= 1; less++ {
		d, answered := New("us"), New("us")
		for range maxLog + less {
			d = d.change("x", Entry{At: epoch}, func(*Document) {})
		}
		for i := range maxLog + maxAnswers + less {
			answered = answered.change("x", Entry{At: epoch, Command: fmt.Sprint("c", i)}, func(*Document) {})
		}
		if len(d.Log) != maxLog+min(less, 0) || len(answered.Log) != maxLog+maxAnswers+min(less, 0) {
			t.Errorf("the bounds%+d: %d lines, and %d with answers", less, len(d.Log), len(answered.Log))
		}
		retired := New("us")
		for i := range maxRetired + less {
			id := fmt.Sprint("r", i)
			retired = retired.Make(id, parts(id, 0), false, Entry{At: epoch}).Retire(id, Entry{At: epoch})
		}
		if len(retired.Versions) != maxRetired+min(less, 0) {
			t.Errorf("the bound%+d: %d retired versions are kept", less, len(retired.Versions))
		}
		var namespaces []string
		for i := range maxNamespaces + less {
			namespaces = append(namespaces, fmt.Sprintf("n%03d", i))
		}
		if all := New("us").Note(namespaces).Shows("another"); all != (less > 0) {
			t.Errorf("the bound%+d: any namespace is noted: %t", less, all)
		}
	}
}

// TestBoundsOfNext: the times and the count that decide whether an action is due.
func TestBoundsOfNext(t *testing.T) {
	by := Entry{At: epoch}
	for less := -1; less <= 1; less++ {
		moment := time.Duration(less)
		reason := strings.Repeat("x", MaxReason+less)
		if err := (Command{ID: "1", At: epoch, Verb: "promote", Reason: reason}).Check(); (err == nil) != (less <= 0) {
			t.Errorf("a reason of the bound%+d: %v", less, err)
		}
		command := Command{ID: "1", At: epoch, Verb: "pause"}
		for when, now := range map[string]time.Time{
			"late":  epoch.Add(commandLife + moment),
			"early": epoch.Add(-commandLife - moment),
		} {
			a := Next(New("us"), Policy{Owner: "us"}, Facts{Now: now, Command: command})
			if obeyed := a.Verb == Write && a.Doc.Paused; obeyed != (less <= 0) {
				t.Errorf("a command at the bound%+d, %s: %+v", less, when, a)
			}
		}
		answered := New("us").change("x", Entry{At: epoch, Command: "c"}, func(*Document) {})
		for range maxLog {
			answered = answered.change("x", Entry{At: epoch.Add(2*commandLife + moment)}, func(*Document) {})
		}
		if _, known := answered.Answer("c"); known != (less <= 0) {
			t.Errorf("the answer to a command at the bound%+d is kept: %t", less, known)
		}
		d := New("us")
		for i := range MaxVersions + less {
			d = d.Make(fmt.Sprint("r", i), parts("r", 0), false, by).to(fmt.Sprint("r", i), Retiring, "", by)
		}
		if a := (decision{doc: d, facts: Facts{Now: epoch, Due: true}}).begin(); (a.Verb == Make) != (less < 0) {
			t.Errorf("%d versions: %+v", len(d.Versions), a)
		}
		pending := New("us").Make("r1", parts("r1", 0), true, by)
		a := Next(pending, Policy{Owner: "us", Outside: true, GiveUp: time.Hour}, Facts{Now: epoch.Add(time.Hour + moment)})
		if gaveUp := a.Verb == Write; gaveUp != (less >= 0) {
			t.Errorf("a version that fails for the bound%+d: %+v", less, a)
		}
		left := New("us").Make("r1", parts("r1", 0), false, by).Promote("r1", by)
		left = left.Make("r2", parts("r2", 0), false, by).Promote("r2", by).left("r1", epoch, by)
		kept := Next(left, Policy{Owner: "us", Keep: time.Hour}, Facts{Now: epoch.Add(time.Hour + clockStep + moment), Left: map[string]bool{"r1": true}})
		if revoked := kept.Verb == Write; revoked != (less >= 0) {
			t.Errorf("a version that is kept for the bound%+d: %+v", less, kept)
		}
		ahead := version1(epoch.Add(time.Minute + moment))
		if said := ahead.FutureText(epoch) != ""; said != (less > 0) {
			t.Errorf("a time in the future at the bound%+d is reported: %t", less, said)
		}
	}
}

// version1 is a set with one version of that time.
func version1(at time.Time) *Document {
	return New("us").Make("r1", parts("r1", 0), false, Entry{At: at})
}
