package versions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

const canary = "Y2FuYXJ5LW9mLWEta2V5" // base64 of a value that no error may show

func TestParseRefuses(t *testing.T) {
	version := func(id, state string) string {
		return fmt.Sprintf(`{"id":%q,"state":%q,"promoted":"2026-11-22T00:00:00Z","parts":{"key":%q}}`, id, state, canary)
	}
	set := func(versions ...string) string {
		return `{"syncerSet":1,"step":3,"versions":[` + strings.Join(versions, ",") + `]}`
	}
	var many []string
	for i := range 17 {
		many = append(many, version(fmt.Sprintf("r%d", i), "retiring"))
	}
	for name, c := range map[string]struct{ value, says string }{
		"a plain value":        {canary, "not JSON from byte 1 on"},
		"torn JSON":            {`{"syncerSet":1,"versions":[{"parts":{"key":"` + canary, "not JSON from byte"},
		"JSON of another form": {`["` + canary + `"]`, "not a JSON object of its form"},
		"another document":     {`{"key":"` + canary + `"}`, `it has no "syncerSet"`},
		"a later format":       {`{"syncerSet":2,"versions":"` + canary + `"}`, "another type"},
		"a number as text":     {`{"syncerSet":1,"step":"` + canary + `"}`, "the set's step is of another type"},
		"an identity":          {`{"syncerSet":1,"identity":"` + canary + `]","versions":[]}`, "its identity is not up to 63"},
		"two primaries":        {set(version("r1", "primary"), version("r2", "primary")), "2 versions are primary"},
		"no primary":           {set(version("r1", "retiring")), "no version is primary, though one was"},
		"two on their way":     {set(version("r1", "primary"), version("r2", "pending"), version("r3", "accepted")), "only one can be"},
		"an id with a slash":   {set(version("../r1", "primary")), "the id of version 1 must be a file name"},
		"an id with a dot":     {set(version("r.1", "primary")), "the id of version 1 must be a file name"},
		"no id":                {set(version("", "primary")), "the id of version 1 must be a file name"},
		"an id like a flag":    {set(version("-r1", "primary")), "the id of version 1 must be a file name"},
		"an id with an umlaut": {set(version("rü", "primary")), "the id of version 1 must be a file name"},
		"a long id":            {set(version(strings.Repeat("r", 64), "primary")), "the id of version 1 must be a file name"},
		"an id twice":          {set(version("r1", "primary"), version("r1", "retiring")), "version r1 is there twice"},
		"a state":              {set(version("r1", "primary"), version("r2", canary)), "version r2: its state is none of"},
		"no bytes":             {set(`{"id":"r1","state":"primary"}`), "version r1: it has no parts"},
		"an empty part":        {set(`{"id":"r1","state":"primary","parts":{"key":""}}`), `version r1: part "key" is empty`},
		"a part's name":        {set(`{"id":"r1","state":"primary","parts":{"a/b":"` + canary + `"}}`), "version r1: the name of a part"},
		"17 versions":          {set(append(many, version("r17", "primary"))...), "18 versions that are not retired"},
		"65 KiB":               {set(version("r1", "primary"), strings.Repeat(" ", 65<<10)+version("r2", "retiring")), "at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.value))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("the error is %v; it should say %q", err, c.says)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "canary") {
				t.Errorf("the value is in the error: %v", err)
			}
		})
	}
	_, err := Parse([]byte(`{"syncerSet":2,"step":1,"versions":[]}`))
	if !errors.Is(err, errFormat) {
		t.Errorf("a later format is %v", err)
	}
}

func TestParseNamesAllThatIsWrong(t *testing.T) {
	_, err := Parse([]byte(`{"syncerSet":1,"versions":[{"id":"a b","state":"primary"},{"id":"r2","state":"later"},{"id":"r2","state":"retired"}]}`))
	for _, says := range []string{"version 1 must be a file name", "version r2: its state", "r2 is there twice"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
}

func TestEncodeRefusesWhatIsTooBig(t *testing.T) {
	d := New("us").Make("r1", map[string]secret.Value{"key": secret.New(make([]byte, 50<<10))}, false, Entry{At: epoch})
	if _, err := d.Encode(); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("50 KiB, 67 KiB in base64, are %v", err)
	}
}

func TestElevenPairsOfRSAFit(t *testing.T) {
	d := New("prod/platform/syncer")
	now := epoch
	for range 11 {
		id := d.NewID(now)
		d = d.Make(id, map[string]secret.Value{"private": secret.New(make([]byte, 3272)), "public": secret.New(make([]byte, 800))}, false, Entry{At: now})
		d = d.Promote(id, Entry{At: now})
	}
	value, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(value); err != nil {
		t.Error(err)
	}
}

// A set that a command filled is read, and the next write makes room.
func TestALongLogMakesRoom(t *testing.T) {
	d := New("us").Make("r1", parts("r1", 0), false, Entry{At: epoch}).Promote("r1", Entry{At: epoch})
	for range maxLog {
		d = d.change("filled", Entry{At: epoch, Command: strings.Repeat("x", 5000)}, func(*Document) {})
	}
	d, err := Parse(d.encode())
	if err != nil {
		t.Fatalf("a set with a log of 100 kB: %v", err)
	}
	value, err := d.change("paused", Entry{At: epoch, Command: "c1"}, func(*Document) {}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err = Parse(value)
	if err != nil || d.Log[len(d.Log)-1].Command != "c1" || len(value) > maxBytes {
		t.Errorf("%d bytes, %v; the last line is %+v", len(value), err, d.Log[len(d.Log)-1])
	}
}

// Refused commands, one after the other, do not fill a set.
func TestRefusedCommandsDoNotFillASet(t *testing.T) {
	d := New("us").Make("r1", parts("r1", 0), false, Entry{At: epoch}).Promote("r1", Entry{At: epoch})
	for i := range 2000 {
		c := Command{ID: fmt.Sprintf("%063d", i), At: epoch, Verb: "promote", Version: strings.Repeat("v", 63), Reason: strings.Repeat("<", MaxReason)}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		a := Next(d, Policy{Owner: "us"}, Facts{Now: epoch, Command: c})
		if answer, ok := a.Doc.Answer(c.ID); a.Verb != Write || !ok || !answer.Refused || answer.Reason != "" {
			t.Fatalf("the answer is %+v", answer)
		}
		d = a.Doc
	}
	if value, err := d.Encode(); err != nil || len(value) > 32<<10 {
		t.Errorf("the set has %d bytes: %v", len(value), err)
	}
}

// A command that is longer than the log may take is none.
func TestTheSizeOfACommandIsChecked(t *testing.T) {
	long := strings.Repeat("x", 64)
	good := Command{ID: "1", At: epoch, Verb: "retire", Version: "r1", Reason: "it leaked"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Command){
		"id":      func(c *Command) { c.ID = long },
		"version": func(c *Command) { c.Version = long },
		"reason":  func(c *Command) { c.Reason = strings.Repeat("x", MaxReason+1) },
		"a":       func(c *Command) { c.Verb = "sudo" },
		"time":    func(c *Command) { c.At = time.Time{} },
	} {
		c := good
		edit(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), long) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of two documents of one step the first one holds, whatever each did, unless the
// second one sends a newer fence outside.
func TestTheFirstOfTwoDocumentsHolds(t *testing.T) {
	by := Entry{At: epoch}
	base := New("us").Make("20261122t000000", parts("", 0), false, by).Promote("20261122t000000", by).Make("20261122t000001", parts("", 0), false, by)
	promoted, retired := base.Promote("20261122t000001", by), base.Retire("20261122t000001", by)
	if promoted.Supersedes(retired) || retired.Supersedes(promoted) {
		t.Error("a document holds rather than one of the same step that was written before it")
	}
	if again := promoted.Merge(by, promoted, retired); !again.ContainsLastStepOf(promoted) || again.ContainsLastStepOf(retired) {
		t.Errorf("what both wrote has the log %v", again.Log)
	}
	first, second := base.Retire("20261122t000001", by), base.to("20261122t000001", Retiring, "", by).Make("20261122t000002", parts("", 0), true, by)
	if second.Step = first.Step; !second.Supersedes(first) || first.Supersedes(second) {
		t.Error("the document with a newer fence does not hold")
	}
}

func TestIDsGrow(t *testing.T) {
	now := time.Date(2026, 11, 22, 1, 39, 7, 0, time.FixedZone("", 3600))
	d := New("us")
	if id := d.NewID(now); id != "20261122t003907" {
		t.Errorf("the id is %s", id)
	}
	d = d.Make("20301231t235959", parts("", 0), false, Entry{At: now}).Promote("20301231t235959", Entry{At: now})
	if id := d.NewID(now); id != "20310101t000000" {
		t.Errorf("with a later id the next one is %s", id)
	}
	d = New("us").Make("zebra", parts("", 0), false, Entry{At: now})
	if id := d.NewID(now); id != "20261122t003907" {
		t.Errorf("beside a person's id the next one is %s", id)
	}
}

func TestRetiredVersionsAreForgotten(t *testing.T) {
	d := New("us")
	for range 14 {
		former, was := d.Primary()
		id := d.NewID(epoch)
		d = d.Make(id, parts(id, 0), false, Entry{At: epoch}).Promote(id, Entry{At: epoch})
		if was {
			d = d.Retire(former.ID, Entry{At: epoch})
		}
	}
	if len(d.Versions) != 1+maxRetired || len(d.Log) != maxLog {
		t.Errorf("%d versions and %d lines are kept", len(d.Versions), len(d.Log))
	}
	for _, v := range d.Versions[1:] {
		if v.Parts != nil {
			t.Errorf("%s has its bytes still", v.ID)
		}
	}
}

// A command that is sent again is known as long as it counts, whatever happened
// since; with its reason.
func TestCommandsAreKnownWhileTheyCount(t *testing.T) {
	d := New("us").change("forced", Entry{At: epoch, Command: "c1", Reason: "it leaked"}, func(*Document) {})
	for i := range 100 {
		d = d.change("something", Entry{At: epoch.Add(time.Duration(i) * time.Second)}, func(*Document) {})
	}
	if first := d.Log[0]; first.Command != "c1" || first.Reason != "it leaked" || len(d.Log) != 1+maxLog {
		t.Errorf("of %d lines the first is %+v", len(d.Log), first)
	}
	if d = d.change("later", Entry{At: epoch.Add(3 * commandLife)}, func(*Document) {}); len(d.Log) != maxLog {
		t.Errorf("%d lines when it is void", len(d.Log))
	}
}

func TestIsSet(t *testing.T) {
	for value, want := range map[string]bool{
		`{"syncerSet":1,"step":1,"versions":[]}`: true,
		"{\n  \"step\": 1, \"syncerSet\": 9 }":   true,
		`{"a":"\"syncerSet\""}`:                  false,
		`"syncerSet"`:                            false,
		"":                                       false,
	} {
		if IsSet([]byte(value)) != want {
			t.Errorf("%q: %v", value, !want)
		}
	}
}
