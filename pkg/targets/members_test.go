package targets

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// wildcard is a file target of the group with an entry for all variables
// that match, and one for each further id under that alias.
func wildcard(group, match string, more ...string) *Target {
	t := &Target{Key: FileKey(group), Group: group, Entries: []Entry{{"*", match, ContentText}}}
	for _, id := range more {
		t.Entries = append(t.Entries, Entry{id, id, ContentText})
	}
	return t
}

func entriesOf(t *testing.T, s *Set, key Key) string {
	t.Helper()
	target, ok := s.Get(key)
	if !ok {
		t.Fatalf("there is no target %s", key)
	}
	text := ""
	for _, e := range target.Entries {
		text += fmt.Sprintf("%s=%s ", e.Alias, e.Variable)
	}
	return text
}

func wantKeys(t *testing.T, what string, got []Key, want ...Key) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestExpandATarget(t *testing.T) {
	target := wildcard("g", "*", "q/named")
	target.Entries = append(target.Entries, Entry{"p/b", "q/other", ContentBase64}, Entry{"short", "p/a", ContentText})
	got := target.Expand([]string{"p/b", "q/named", "p/a", "z"})
	want := []Entry{
		{"p/a", "p/a", ContentText}, {"z", "z", ContentText},
		{"q/named", "q/named", ContentText}, {"p/b", "q/other", ContentBase64}, {"short", "p/a", ContentText},
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

func TestWildcardIsNoVariable(t *testing.T) {
	var s Set
	s.Replace([]*Target{wildcard("g", "p/*", "q/named")})
	if got := s.Variables(); !slices.Equal(got, []string{"q/named"}) {
		t.Errorf("variables %q", got)
	}
}

func TestSetExpands(t *testing.T) {
	var s Set
	plain := &Target{Key: FileKey("plain"), Entries: []Entry{{"p/a", "p/a", ContentText}}}
	s.Replace([]*Target{plain, wildcard("all", "*"), wildcard("some", "p/*")})
	wantKeys(t, "expanded", s.Expand([]string{"q/c", "p/b", "p/a"}), "file/all", "file/some")
	if got := entriesOf(t, &s, "file/all"); got != "p/a=p/a p/b=p/b q/c=q/c " {
		t.Errorf("all variables are %s", got)
	}
	if got := entriesOf(t, &s, "file/some"); got != "p/a=p/a p/b=p/b " {
		t.Errorf("the variables below p are %s", got)
	}
	wantKeys(t, "p/a", s.ByVariable("p/a"), "file/all", "file/plain", "file/some")
	wantKeys(t, "q/c", s.ByVariable("q/c"), "file/all")
	wantKeys(t, "*", s.ByVariable("*"))
	if got := s.Variables(); !slices.Equal(got, []string{"p/a", "p/b", "q/c"}) {
		t.Errorf("variables %q", got)
	}
	wantKeys(t, "the same list", s.Expand([]string{"p/a", "p/b", "q/c"}))
	wantKeys(t, "one more", s.Expand([]string{"p/a", "p/b", "q/c", "q/d"}), "file/all")
	wantKeys(t, "a new target", s.Replace([]*Target{plain, wildcard("all", "*"), wildcard("new", "q/*")}), "file/new")
	if got := entriesOf(t, &s, "file/new"); got != "q/c=q/c q/d=q/d " {
		t.Errorf("a target that came later has %s", got)
	}
}

func TestAMemberStaysUntilItIsReleased(t *testing.T) {
	var s Set
	given := []*Target{wildcard("g", "*"), wildcard("h", "*")}
	s.Replace(given)
	s.Expand([]string{"a", "b", "c"})
	wantKeys(t, "a shorter list", s.Expand([]string{"a"}))
	wantKeys(t, "the same targets", s.Replace(given))
	s.Release("file/g", "a", "b") // a is still listed
	if got := entriesOf(t, &s, "file/g"); got != "a=a c=c " {
		t.Errorf("after the release g has %s", got)
	}
	if got := entriesOf(t, &s, "file/h"); got != "a=a b=b c=c " {
		t.Errorf("after the release h has %s", got)
	}
	wantKeys(t, "b", s.ByVariable("b"), "file/h")
	wantKeys(t, "b is back", s.Expand([]string{"a", "b"}), "file/g")
	s.Release("file/nobody", "c")
	s.Release("file/g", "c")
	wantKeys(t, "c", s.ByVariable("c"), "file/h")
}
