package records

import (
	"fmt"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// wildcard is a file target of the group with an entry for all variables
// that match, and one for each further id under that alias.
func wildcard(group, match string, more ...string) *targets.Target {
	t := &targets.Target{Key: targets.FileKey(group), Group: group, Entries: []targets.Entry{{Alias: "*", Variable: match, ContentType: targets.ContentText}}}
	for _, id := range more {
		t.Entries = append(t.Entries, targets.Entry{Alias: id, Variable: id, ContentType: targets.ContentText})
	}
	return t
}

func entriesOf(t *testing.T, s *Lane, key targets.Key) string {
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

// wantKeys checks keys, or those of changes that are to be synced.
func wantKeys[K targets.Key | Change](t *testing.T, what string, list []K, want ...targets.Key) {
	t.Helper()
	var got []targets.Key
	for _, item := range list {
		switch item := any(item).(type) {
		case targets.Key:
			got = append(got, item)
		case Change:
			if !item.Gone {
				got = append(got, item.Key)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestWildcardIsNoVariable(t *testing.T) {
	var s Lane
	s.Replace([]*targets.Target{wildcard("g", "p/*", "q/named")})
	if got := s.Variables(); !slices.Equal(got, []string{"q/named"}) {
		t.Errorf("variables %q", got)
	}
}

func TestSetExpands(t *testing.T) {
	var s Lane
	plain := &targets.Target{Key: targets.FileKey("plain"), Entries: []targets.Entry{{Alias: "p/a", Variable: "p/a", ContentType: targets.ContentText}}}
	s.Replace([]*targets.Target{plain, wildcard("all", "*"), wildcard("some", "p/*")})
	wantKeys(t, "expanded", s.Expand([]string{"q/c", "p/b", "p/a"}, nil), "file/all", "file/some")
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
	wantKeys(t, "the same list", s.Expand([]string{"p/a", "p/b", "q/c"}, nil))
	wantKeys(t, "one more", s.Expand([]string{"p/a", "p/b", "q/c", "q/d"}, nil), "file/all")
	wantKeys(t, "a new target", s.Replace([]*targets.Target{plain, wildcard("all", "*"), wildcard("new", "q/*")}), "file/new")
	if got := entriesOf(t, &s, "file/new"); got != "q/c=q/c q/d=q/d " {
		t.Errorf("a target that came later has %s", got)
	}
}

func TestAMemberStaysUntilItIsReleased(t *testing.T) {
	var s Lane
	given := []*targets.Target{wildcard("g", "*"), wildcard("h", "*")}
	s.Replace(given)
	s.Expand([]string{"a", "b", "c"}, nil)
	wantKeys(t, "a shorter list", s.Expand([]string{"a"}, nil))
	wantKeys(t, "the same targets", s.Replace(given))
	s.Release("file/g", "a", "b") // a is still listed
	if got := entriesOf(t, &s, "file/g"); got != "a=a c=c " {
		t.Errorf("after the release g has %s", got)
	}
	if got := entriesOf(t, &s, "file/h"); got != "a=a b=b c=c " {
		t.Errorf("after the release h has %s", got)
	}
	wantKeys(t, "b", s.ByVariable("b"), "file/h")
	wantKeys(t, "b is back", s.Expand([]string{"a", "b"}, nil), "file/g")
	s.Release("file/nobody", "c")
	s.Release("file/g", "c")
	wantKeys(t, "c", s.ByVariable("c"), "file/h")
}

// allOf is a Secret whose map and whose group g have all variables that match.
func allOf(name, match string) *targets.Target {
	t := &targets.Target{Key: targets.KubeSecretKey("ns", name), Entries: []targets.Entry{{Alias: "*", Variable: match, ContentType: targets.ContentText}}, Secret: &targets.Secret{Namespace: "ns", Name: name}}
	t.Secret.Groups = []*targets.Target{{Group: "g", Format: targets.FormatJSON, Entries: []targets.Entry{{Alias: "*", Variable: match, ContentType: targets.ContentText}}}}
	return t
}

func TestASecretIsExpandedInMapAndGroups(t *testing.T) {
	var s Lane
	s.Put(allOf("late", "p/*"))
	if got, _ := s.Get("secret/ns/late"); !got.Wildcard() || got.Expanded != nil {
		t.Error("expanded without a list")
	}
	wantKeys(t, "expanded", s.Expand([]string{"p/b", "p/a", "q", "p.a", "p/g", "p/."}, nil), "secret/ns/late")
	s.Put(allOf("early", "*"))
	for key, want := range map[targets.Key]string{
		"secret/ns/late":  "p..=p/. p.a=p/a p.b=p/b p.g=p/g ",
		"secret/ns/early": "p.a=p.a p..=p/. p.b=p/b p.g=p/g q=q ",
	} {
		if got := entriesOf(t, &s, key); got != want {
			t.Errorf("%s has %q, want %q", key, got, want)
		}
	}
	early, _ := s.Get("secret/ns/early")
	if group := early.Secret.Groups[0]; len(group.Entries) != 6 || len(group.Expanded) != 6 || early.Wildcard() {
		t.Errorf("the group has %v", group.Entries)
	}
	if left := early.Secret.LeftOut; len(left) != 1 || left[0] != `conjur-map: variable "p/a" is left out: "p.a" already names variable "p.a"; give it a separate entry` {
		t.Errorf("left out: %q", left)
	}
}

func TestReleaseOfASecret(t *testing.T) {
	var s Lane
	s.Put(allOf("a", "*"))
	s.Expand([]string{"x", "y"}, nil)
	s.Expand([]string{"y"}, nil)
	wantKeys(t, "not listed is no proof", s.ByVariable("x"), "secret/ns/a")
	s.Release("secret/ns/a", "x", "y")
	wantKeys(t, "x", s.ByVariable("x"))
	wantKeys(t, "y is still listed", s.ByVariable("y"), "secret/ns/a")
	a, _ := s.Get("secret/ns/a")
	if len(a.Entries) != 1 || len(a.Secret.Groups[0].Entries) != 1 {
		t.Errorf("entries %v and %v", a.Entries, a.Secret.Groups[0].Entries)
	}
	s.Release("secret/ns/gone", "y") // is forgotten already
}

// A wildcard does not take a data key whose own definition is faulty.
func TestAWildcardLeavesAloneWhatIsHeld(t *testing.T) {
	def := definitions.SecretDefinition{Namespace: "ns", Name: "s", HasMap: true, Map: "'*': '*'\np.a: 5\ntwice: q/1\ntwice: q/2"}
	target := definitions.FromSecret(def)
	got := target.Expand([]string{"p/a", "p/b"})
	want := []targets.Entry{{Alias: "p.b", Variable: "p/b", ContentType: targets.ContentText}, {Alias: "twice", Variable: "q/1", ContentType: targets.ContentText}}
	if !slices.Equal(got.Entries, want) || len(got.Secret.LeftOut) != 1 {
		t.Errorf("entries %v, left out %q; want %v", got.Entries, got.Secret.LeftOut, want)
	}
}

// A list that nobody keeps up to date is not used for a later target.
func TestListIsForgottenWithTheLastWildcard(t *testing.T) {
	var s Lane
	wantWild := func(what string, wild, expanded bool) {
		t.Helper()
		if w, e := s.Wild(); w != wild || e != expanded {
			t.Errorf("%s: wild is %v and expanded %v, want %v and %v", what, w, e, wild, expanded)
		}
	}
	s.Expand([]string{"early"}, nil)
	wantWild("without a target", false, false)
	s.Put(wildcard("g", "*"))
	wantWild("with one", true, false)
	s.Expand([]string{"a"}, nil)
	wantWild("with a list", true, true)
	s.Put(wildcard("h", "*"))
	s.Delete(targets.FileKey("g"))
	wantWild("with another", true, true)
	s.Put(&targets.Target{Key: targets.FileKey("h"), Group: "h", Entries: []targets.Entry{{Alias: "b", Variable: "b", ContentType: targets.ContentText}}})
	wantWild("with none left", false, false)
	s.Put(wildcard("g", "*"))
	if got := entriesOf(t, &s, targets.FileKey("g")); got != "*=* " {
		t.Errorf("a later one has %s", got)
	}
}
