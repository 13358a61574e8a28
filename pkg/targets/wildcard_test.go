package targets

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestDataKey(t *testing.T) {
	for variable, want := range map[string]string{
		"a.b": "a.b", "a+b&c*d": "a.b.c.d", "*": ".", "a:b": "a.b", "a@b": "a.b", "UPPER/x1": "UPPER.x1", "a\tb": "a.b",
		"p/with space": "p.with.space", "p/plus+amp&": "p.plus.amp.", "a_b-c": "a_b-c", "ä/b": "..b",
	} {
		if got := DataKey(variable); got != want {
			t.Errorf("DataKey(%q) = %q, want %q", variable, got, want)
		}
	}
}

func TestExpandAll(t *testing.T) {
	text := func(alias, id string) Entry { return Entry{Alias: alias, Variable: id, ContentType: ContentText} }
	all := text("*", "*")
	for _, c := range []struct {
		name      string
		entries   []Entry
		ids       []string
		forSecret bool
		want      []Entry
		warnings  []string
	}{
		{"in a file", []Entry{all}, []string{"p/b", "p/a", "p/b"}, false, []Entry{text("p/a", "p/a"), text("p/b", "p/b")}, nil},
		{"in a Secret", []Entry{all}, []string{"p/b", "p/a"}, true, []Entry{text("p.a", "p/a"), text("p.b", "p/b")}, nil},
		{"the content type is kept", []Entry{{Alias: "*", Variable: "*", ContentType: ContentBase64}}, []string{"a"}, true, []Entry{{Alias: "a", Variable: "a", ContentType: ContentBase64}}, nil},
		{"below a prefix", []Entry{text("*", "p/*")}, []string{"p/a", "q/a", "p", "px/a"}, false, []Entry{text("p/a", "p/a")}, nil},
		{"a variable called *", []Entry{all}, []string{"*", "p/*"}, false, []Entry{text("p/*", "p/*")}, []string{`variable "*" is left out`}},
		{"none to expand", []Entry{text("x", "a")}, []string{"a", "b"}, true, []Entry{text("x", "a")}, nil},
		{"no variables", []Entry{all}, nil, true, nil, nil},
		{
			"a collision: the first id wins", []Entry{all}, []string{"p/a", "p.a", "p+a"}, true,
			[]Entry{text("p.a", "p+a")},
			[]string{`variable "p.a" is left out: "p.a" already names variable "p+a"`, `variable "p/a" is left out`},
		},
		{
			"an entry of its own wins, also a later one", []Entry{all, text("p.a", "other")}, []string{"p/a", "p/b"}, true,
			[]Entry{text("p.b", "p/b"), text("p.a", "other")},
			[]string{`"p.a" already names variable "other"`},
		},
		{
			"its own entry", []Entry{all, text("p.a", "p/a")}, []string{"p/a", "p/b"}, true,
			[]Entry{text("p.b", "p/b"), text("p.a", "p/a")}, nil,
		},
		{
			"no key", []Entry{all}, []string{"*", "conjur-map", "/./x", strings.Repeat("k", 254)}, true, nil,
			[]string{`variable "*" is left out: its data key "." is .`, `begins with ..`, `is that of the map itself`, `longer than 253 bytes`},
		},
	} {
		got, warnings := expandAll(c.entries, slices.Compact(slices.Sorted(slices.Values(c.ids))), nil, c.forSecret)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if len(warnings) != len(c.warnings) {
			t.Fatalf("%s: warnings %q, want %q", c.name, warnings, c.warnings)
		}
		for i, want := range c.warnings {
			if !strings.Contains(warnings[i], want) || !strings.Contains(warnings[i], "give it a separate entry") {
				t.Errorf("%s: warning %q, want %q", c.name, warnings[i], want)
			}
		}
	}
}

func TestExpandATarget(t *testing.T) {
	target := &Target{Key: FileKey("g"), Group: "g", Entries: []Entry{
		{Alias: "*", Variable: "*", ContentType: ContentText}, {Alias: "q/named", Variable: "q/named", ContentType: ContentText},
		{Alias: "p/b", Variable: "q/other", ContentType: ContentBase64}, {Alias: "short", Variable: "p/a", ContentType: ContentText},
	}}
	got := target.Expand([]string{"p/b", "q/named", "p/a", "z"})
	want := []Entry{
		{Alias: "p/a", Variable: "p/a", ContentType: ContentText}, {Alias: "z", Variable: "z", ContentType: ContentText},
		{Alias: "q/named", Variable: "q/named", ContentType: ContentText}, {Alias: "p/b", Variable: "q/other", ContentType: ContentBase64}, {Alias: "short", Variable: "p/a", ContentType: ContentText},
	}
	if !slices.Equal(got.Entries, want) {
		t.Errorf("entries %v, want %v", got.Entries, want)
	}
	if !maps.Equal(got.Expanded, map[string]bool{"z": true}) {
		t.Errorf("expanded %v, want only what no entry names", got.Expanded)
	}
	if got.Wildcard() || !target.Wildcard() || target.Expanded != nil {
		t.Error("Expand changed the target itself, or left its wildcard")
	}
}

func TestAll(t *testing.T) {
	for _, c := range []struct {
		entry Entry
		want  bool
	}{
		{Entry{Alias: "*", Variable: "*"}, true},
		{Entry{Alias: "*", Variable: "app/*"}, true},
		{Entry{Alias: "*", Variable: "app/db"}, false},
		{Entry{Alias: "k", Variable: "*"}, false},
		{Entry{Alias: "k", Variable: "app/*"}, false},
	} {
		if got := c.entry.All(); got != c.want {
			t.Errorf("%v: got %v", c.entry, got)
		}
	}
}

// TestVariables: each is once there, and none of an entry that stands for all.
func TestVariables(t *testing.T) {
	target := &Target{Entries: []Entry{{Alias: "k", Variable: "a"}, {Alias: "*", Variable: "app/*"}, {Alias: "l", Variable: "b"}, {Alias: "m", Variable: "a"}}}
	if got := target.Variables(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the variables are %q", got)
	}
}

// TestManyWildcardsOfOneSecretTakeLittleMemory: the Secret is refused before each of its
// groups has all variables.
func TestManyWildcardsOfOneSecretTakeLittleMemory(t *testing.T) {
	var ids []string
	for i := range MaxEntries / 2 {
		ids = append(ids, fmt.Sprint("app/", i))
	}
	expand := func(groups int) (made *Target, bytes uint64) {
		target := &Target{Secret: &Secret{}}
		for i := range groups {
			target.Secret.Groups = append(target.Secret.Groups, &Target{Group: fmt.Sprint("g", i), Entries: []Entry{{Alias: "*", Variable: "*"}}})
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		made = target.Expand(ids)
		runtime.ReadMemStats(&after)
		return made, after.TotalAlloc - before.TotalAlloc
	}
	most, bytes := expand(2)
	if n := most.CountEntries(); n != MaxEntries || len(most.Secret.Faults) > 0 {
		t.Fatalf("two groups have %d entries, and the faults %v", n, most.Secret.Faults)
	}
	tooMany, more := expand(1000)
	if len(tooMany.Secret.Faults) == 0 || more > 3*bytes {
		t.Errorf("1,000 groups take %d bytes, two take %d; the faults are %v", more, bytes, tooMany.Secret.Faults)
	}
}
