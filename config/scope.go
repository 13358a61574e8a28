package config

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Scope is what is made anew when a setting has changed. Of two scopes the
// greater is the wider; it includes the smaller ones, save that only those
// lanes are made anew that Difference.Lanes names, unless all is.
type Scope int

// scopeNamed returns the scope that a tag names.
func scopeNamed(name string) Scope {
	return Scope(slices.Index([]string{"", "live", "lane", "sources", "process"}, name))
}

// The scopes.
const (
	ScopeNone    Scope = iota // nothing has changed
	ScopeLive                 // nothing is made anew; what runs takes up the change
	ScopeLane                 // the clients of the identities that are concerned
	ScopeSources              // the watches on the cluster and on folders, and the polls
	ScopeProcess              // all
)

// Difference is what has changed between two configurations.
type Difference struct {
	// Scope is the widest scope of the settings that have changed.
	Scope Scope
	// Settings are their names in the configuration file. Those of an item of
	// a list have its name before theirs, as in "targets.db.format"; an item
	// that was added or removed is its name alone, as in "targets.db".
	Settings []string
	// Lanes are the names of the identities that reach Conjur in another way,
	// and of those that were added or removed. The default one's is "".
	Lanes []string
}

// Scopes returns the scope of each setting of the configuration file, by its
// name. A setting of an item of a list has the list's name before its own, as in
// "targets.format", and the list's scope, if it has none of its own.
func Scopes() map[string]Scope {
	scopes := map[string]Scope{}
	addScopes(scopes, "", ScopeNone, fileSettings())
	return scopes
}

func addScopes(scopes map[string]Scope, prefix string, of Scope, table []setting) {
	for _, s := range table {
		scope := cmp.Or(s.scope, of)
		scopes[prefix+s.name] = scope
		addScopes(scopes, prefix+s.name+".", scope, s.items)
	}
}

// Compare returns what has changed from one configuration to another. It
// compares what is in effect: a setting that is written with its default is
// the same as before, and one whose default follows another changes with it.
func Compare(before, after *Config) Difference {
	var d Difference
	d.compare("", fileSettings(), before, after)
	if before.Folders != after.Folders {
		d.add("folders", ScopeProcess)
	}
	compareItems(&d, "targets", before.Targets, after.Targets, &targets.Target{},
		func(t *targets.Target) string { return t.Group },
		func(t *targets.Target) []string { return t.Faults })
	compareItems(&d, "kubernetes.secrets", pointers(before.Kubernetes.Definitions), pointers(after.Kubernetes.Definitions), &definitions.SecretDefinition{},
		func(def *definitions.SecretDefinition) string { return def.Namespace + "/" + def.Name },
		func(def *definitions.SecretDefinition) []string {
			if def.Configured == nil {
				return nil
			}
			return def.Configured.Faults
		})
	compareItems(&d, "identities", pointers(named(before.Identities)), pointers(named(after.Identities)), &Identity{},
		func(id *Identity) string { return id.Name },
		func(*Identity) []string { return nil })
	d.Lanes = changedLanes(before.Identities, after.Identities)
	return d
}

// named returns all identities but the default one, which has the process's
// own settings.
func named(ids []Identity) []Identity {
	return slices.DeleteFunc(slices.Clone(ids), func(id Identity) bool { return id.Name == "" })
}

// changedLanes returns the names of the identities that are in one list only,
// or that reach Conjur in another way.
func changedLanes(before, after []Identity) (names []string) {
	for _, id := range slices.Concat(before, after) {
		same := func(other Identity) bool {
			var d Difference
			d.compare("", conjurSettings(), &id.Conjur, &other.Conjur)
			return other.Name == id.Name && d.Scope == ScopeNone
		}
		if !(slices.ContainsFunc(before, same) && slices.ContainsFunc(after, same)) && !slices.Contains(names, id.Name) {
			names = append(names, id.Name)
		}
	}
	return names
}

// compare adds the settings of a table that differ between what two pointers point
// to.
func (d *Difference) compare(prefix string, table []setting, before, after any) {
	for _, s := range table {
		if s.field != "" && !same(s.in(reflect.ValueOf(before)), s.in(reflect.ValueOf(after))) {
			d.add(prefix+s.name, s.scope)
		}
	}
}

// same reports whether two fields have the same value. Keys that a connection has
// in it do not count.
func same(a, b reflect.Value) bool {
	switch a := a.Interface().(type) {
	case secret.Value:
		return a.Equal(b.Interface().(secret.Value))
	case Conjur:
		b := b.Interface().(Conjur)
		a.APIKey, b.APIKey = secret.Value{}, secret.Value{}
		return reflect.DeepEqual(a, b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func (d *Difference) add(name string, scope Scope) {
	d.Scope = max(d.Scope, scope)
	d.Settings = append(d.Settings, name)
}

// pointers returns pointers to the items of a list.
func pointers[T any](list []T) (all []*T) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// compareItems adds what differs between two lists of items with names, which a
// setting lists. An item that is in one of them only is compared with none.
func compareItems[T any](d *Difference, list string, before, after []*T, none *T, name func(*T) string, faults func(*T) []string) {
	s, _ := find(fileSettings(), list)
	for i, item := range slices.Concat(before, after) {
		same := func(other *T) bool { return name(other) == name(item) }
		was, is := slices.IndexFunc(before, same), slices.IndexFunc(after, same)
		place := list + "." + name(item)
		switch {
		case was >= 0 && is >= 0 && i < len(before):
			d.compare(place+".", s.items, item, after[is])
			if !slices.Equal(faults(item), faults(after[is])) {
				d.add(place, ScopeLive)
			}
		case was < 0 || is < 0:
			var alone Difference
			alone.compare("", s.items, item, none)
			d.add(place, alone.Scope)
		}
	}
}
