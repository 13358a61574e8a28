package records

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/secretsync/syncer/pkg/targets"
)

// kube is a Secret with an entry for each variable, and a group for each place
// of a template.
func kube(name string, ids []string, places ...targets.ConfigMapKey) *targets.Target {
	t := &targets.Target{Key: targets.KubeSecretKey("ns", name), Secret: &targets.Secret{Namespace: "ns", Name: name}}
	for i, id := range ids {
		t.Entries = append(t.Entries, targets.Entry{Alias: fmt.Sprint("k", i), Variable: id, ContentType: targets.ContentText})
	}
	for i, place := range places {
		t.Secret.Groups = append(t.Secret.Groups, &targets.Target{
			Group: fmt.Sprint("g", i), Entries: []targets.Entry{{Alias: "a", Variable: "of/" + place.Name, ContentType: targets.ContentText}}, Format: targets.FormatTemplate, Template: targets.Template{ConfigMap: place},
		})
	}
	return t
}

func TestGroupsAreFound(t *testing.T) {
	var s Lane
	a, b, other := targets.ConfigMapKey{Namespace: "ns", Name: "tpl", Key: "a"}, targets.ConfigMapKey{Namespace: "ns", Name: "tpl", Key: "b"}, targets.ConfigMapKey{Namespace: "other", Name: "tpl", Key: "a"}
	file := &targets.Target{Key: targets.FileKey("f"), Group: "f", Format: targets.FormatTemplate, Template: targets.Template{ConfigMap: a}}
	for _, target := range []*targets.Target{kube("one", []string{"x"}, a), kube("two", nil, b, a), kube("three", nil, other), file} {
		if len(s.Put(target)) == 0 {
			t.Errorf("%s is not new", target.Key)
		}
	}
	wantKeys(t, "a", s.ByConfigMap(a), "file/f", "secret/ns/one", "secret/ns/two")
	wantKeys(t, "b", s.ByConfigMap(b), "secret/ns/two")
	wantKeys(t, "all keys", s.ByConfigMap(targets.ConfigMapKey{Namespace: "ns", Name: "tpl", Key: ""}), "file/f", "secret/ns/one", "secret/ns/two")
	wantKeys(t, "another namespace", s.ByConfigMap(other, targets.ConfigMapKey{Namespace: "ns", Name: "nope", Key: "a"}), "secret/ns/three")
	if got := s.ConfigMaps(); !slices.Equal(got, []targets.ConfigMapKey{a, b, other}) {
		t.Errorf("places %v", got)
	}
	wantKeys(t, "by the variable of a group", s.ByVariable("of/tpl"), "secret/ns/one", "secret/ns/three", "secret/ns/two")
	if got := s.Variables(); !slices.Equal(got, []string{"of/tpl", "x"}) {
		t.Errorf("variables %q", got)
	}
	s.Delete("secret/ns/two")
	s.Delete("file/f")
	wantKeys(t, "after deletion", s.ByConfigMap(a, b), "secret/ns/one")
	if got := s.ConfigMaps(); !slices.Equal(got, []targets.ConfigMapKey{a, other}) {
		t.Errorf("places %v after deletion", got)
	}
}

func TestPutAndDeleteTellWhatChanged(t *testing.T) {
	var s Lane
	for i, c := range []struct {
		target *targets.Target
		want   bool
	}{
		{kube("a", []string{"x"}), true},
		{kube("a", []string{"x"}), false},
		{kube("a", []string{"y"}), true},
		{kube("a", []string{"y"}, targets.ConfigMapKey{Namespace: "ns", Name: "tpl", Key: "a"}), true},
		{kube("b", []string{"y"}), true},
	} {
		if got := len(s.Put(c.target)) > 0; got != c.want {
			t.Errorf("put %d: %v", i, got)
		}
	}
	missing := kube("b", []string{"y"})
	missing.Secret.Missing = true
	if len(s.Put(missing)) == 0 {
		t.Error("it is no change that the Secret is missing")
	}
	if len(s.Delete("secret/ns/a")) == 0 || len(s.Delete("secret/ns/a")) > 0 {
		t.Error("Delete does not tell whether there was something")
	}
	wantKeys(t, "keys", s.Keys(), "secret/ns/b")
}

// Any sequence of changes leaves what Replace makes in one go.
func TestPutAndDeleteAgreeWithReplace(t *testing.T) {
	ids, places := []string{"*", "a/*", "a/b", "a/c", "d"}, []targets.ConfigMapKey{{}, {Namespace: "ns", Name: "t", Key: "a"}, {Namespace: "ns", Name: "t", Key: "b"}}
	one := rapid.Custom(func(t *rapid.T) *targets.Target {
		target := kube(rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "name"), nil)
		for i, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, 3, rapid.ID).Draw(t, "ids") {
			e := targets.Entry{Alias: fmt.Sprint("k", i), Variable: id, ContentType: targets.ContentText}
			if id == "*" || id == "a/*" {
				e.Alias = "*"
			}
			target.Entries = append(target.Entries, e)
		}
		place := rapid.SampledFrom(places).Draw(t, "place")
		target.Secret.Groups = []*targets.Target{{Group: "g", Format: targets.FormatJSON, Entries: target.Entries, Template: targets.Template{ConfigMap: place}}}
		return target
	})
	rapid.Check(t, func(t *rapid.T) {
		var s Lane
		given, listed := map[targets.Key]*targets.Target{}, []string(nil)
		t.Repeat(map[string]func(*rapid.T){
			"put":    func(t *rapid.T) { target := one.Draw(t, "target"); given[target.Key] = target; s.Put(target) },
			"delete": func(t *rapid.T) { key := one.Draw(t, "target").Key; delete(given, key); s.Delete(key) },
			"list": func(t *rapid.T) { // only ever more: what was listed stays in the targets
				listed = append(listed, rapid.SampledFrom(ids[2:]).Draw(t, "id"))
				s.Expand(listed, nil)
			},
			"": func(t *rapid.T) { compare(t, &s, given, listed) },
		})
	})
}

func specs(l *Lane) (all []*targets.Target) {
	for _, r := range l.Records() {
		all = append(all, r.Spec)
	}
	return all
}

func compare(t *rapid.T, s *Lane, given map[targets.Key]*targets.Target, listed []string) {
	var fresh Lane
	var ts []*targets.Target
	for _, target := range given {
		ts = append(ts, target)
	}
	fresh.Replace(ts)
	if _, expanded := s.Wild(); expanded {
		fresh.Expand(listed, nil)
	}
	if got, want := specs(s), specs(&fresh); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if got, want := s.Variables(), fresh.Variables(); !slices.Equal(got, want) {
		t.Fatalf("variables %q, want %q", got, want)
	}
	for _, id := range s.Variables() {
		if got, want := s.ByVariable(id), fresh.ByVariable(id); !slices.Equal(got, want) || len(got) == 0 {
			t.Fatalf("by %s: %q, want %q", id, got, want)
		}
	}
	if got, want := s.ConfigMaps(), fresh.ConfigMaps(); !slices.Equal(got, want) {
		t.Fatalf("places %v, want %v", got, want)
	}
	for _, place := range s.ConfigMaps() {
		if got, want := s.ByConfigMap(place), fresh.ByConfigMap(place); !slices.Equal(got, want) || len(got) == 0 {
			t.Fatalf("by %v: %q, want %q", place, got, want)
		}
	}
}

// What a change costs does not grow with the number of targets.
func TestTheCostOfAChangeIsThatOfItsTarget(t *testing.T) {
	cost := func(n int) float64 {
		var s Lane
		for i := range n {
			s.Put(kube(fmt.Sprint("s", i), []string{fmt.Sprint("own", i), "shared"}))
		}
		changes := []*targets.Target{kube("s1", []string{"new", "shared"}), kube("s1", []string{"own1", "shared"})}
		return testing.AllocsPerRun(100, func() {
			for _, change := range changes {
				s.Put(change)
			}
			s.Delete("secret/ns/s1")
		})
	}
	if few, many := cost(10), cost(5000); many > few+2 {
		t.Errorf("%v allocations with 5000 targets, and %v with 10", many, few)
	}
}

// Each new Secret asks for the templates in use, also if a tenant names thousands.
func TestTemplatesInUseAreSortedOnce(t *testing.T) {
	var s Lane
	for i := range 5000 {
		s.Put(kube(fmt.Sprint("s", i), nil, targets.ConfigMapKey{Namespace: "ns", Name: fmt.Sprint("m", i), Key: "t"}))
	}
	if allocations := testing.AllocsPerRun(10, func() {
		s.Put(kube("another", []string{"x"}))
		s.ConfigMaps()
		s.Delete("secret/ns/another")
	}); allocations > 20 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkPutAmong5000(b *testing.B) {
	var s Lane
	for i := range 5000 {
		s.Put(kube(fmt.Sprint("s", i), []string{fmt.Sprint("own", i), "shared"}))
	}
	changes := []*targets.Target{kube("s1", []string{"new", "shared"}), kube("s1", []string{"own1", "shared"})}
	for i := 0; b.Loop(); i++ {
		s.Put(changes[i%2])
	}
}

func BenchmarkSecretsThatShareAVariable(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := make([]*targets.Target, n)
			for i := range n {
				all[i] = kube(fmt.Sprint("s", i), []string{"shared"})
			}
			for b.Loop() {
				var s Lane
				for _, t := range all {
					s.Put(t)
				}
				for _, t := range all {
					s.Delete(t.Key)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/Secret")
		})
	}
}

func BenchmarkVariablesOf5000(b *testing.B) {
	var s Lane
	for i := range 5000 {
		s.Put(kube(fmt.Sprint("s", i), []string{fmt.Sprint("own", i), "shared"}))
	}
	for b.Loop() {
		s.Variables()
	}
}

// TestASecretThatShowsASetIsFound by its entry, by its content, and until it was read also
// if its definition is known only in part.
func TestASecretThatShowsASetIsFound(t *testing.T) {
	s := &Set{}
	lane, key := s.Lane(""), targets.KubeSecretKey("ns", "keys")
	named := &targets.Target{Key: key, Secret: &targets.Secret{Namespace: "ns", Name: "keys"}, Entries: []targets.Entry{{Alias: "*", Variable: "jwt", ContentType: targets.ContentKeys}}}
	settle := func(change func(*Status)) {
		r, _ := lane.Begin(key)
		change(&r.Status)
		lane.Settle(r)
	}
	check := func(when string, want bool) {
		t.Helper()
		if got := len(s.Showing("jwt")) > 0; got != want || len(s.Showing("other")) > 0 && when != "refused, and not read" {
			t.Errorf("%s: found %v, want %v", when, got, want)
		}
	}
	lane.Put(named)
	check("named", true)
	lane.Put(named.Refused("too large"))
	check("refused, and not read", true)
	settle(func(s *Status) { s.Version = "1" })
	check("refused, and read without the set", false)
	settle(func(s *Status) { s.Sets = map[string]targets.DeliveredSet{"jwt": {Step: 2}} })
	check("refused, and shows it", true)
	settle(func(s *Status) { s.Sets = nil })
	check("refused, and shows it no longer", false)
	settle(func(s *Status) { s.Sets = map[string]targets.DeliveredSet{"jwt": {Step: 2}} })
	s.Delete(key)
	check("deleted", false)
}

// TestIndexAgreesWithSets: one key, several keys, and the way back are like a set of keys.
func TestIndexAgreesWithSets(t *testing.T) {
	x, model := index[int]{}, map[int]map[targets.Key]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		name, key, there := random.IntN(3), targets.Key(string(rune('a'+random.IntN(4)))), random.IntN(2) == 0
		was := len(model[name]) > 0
		if model[name] == nil {
			model[name] = map[targets.Key]bool{}
		}
		if there {
			model[name][key] = true
		} else {
			delete(model[name], key)
		}
		if changed, want := x.set(name, key, there), was != (len(model[name]) > 0); changed != want {
			t.Fatalf("set(%d, %s, %v) = %v with %v before", name, key, there, changed, was)
		}
		if got, want := x.union(name), slices.Sorted(maps.Keys(model[name])); !slices.Equal(got, want) || x[name].has(key) != there {
			t.Fatalf("after set(%d, %s, %v): %q, want %q", name, key, there, got, want)
		}
		if _, named := x[name]; named != (len(model[name]) > 0) {
			t.Fatalf("a name without targets is in the index")
		}
	}
}
