package config

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Scope says which parts must be recreated after a change of a setting. A greater scope
// is wider and includes the smaller ones. Below ScopeProcess, only the lanes in
// Difference.Lanes are recreated.
type Scope int

// scopeNamed returns the scope that a tag names.
func scopeNamed(name string) Scope {
	return Scope(slices.Index([]string{"", "live", "lane", "sources", "process"}, name))
}

// The scopes.
const (
	ScopeNone    Scope = iota // nothing has changed
	ScopeLive                 // nothing is recreated; the running parts apply the change
	ScopeLane                 // the clients of the affected identities
	ScopeSources              // the watches on the cluster and on folders, and the polls
	ScopeProcess              // everything
)

// Difference is the difference between two configurations.
type Difference struct {
	// Scope is the widest scope of the changed settings.
	Scope Scope
	// Settings are the names of the changed settings in the configuration file. The name
	// of a list item comes first, as in "targets.db.format". An added or removed item is
	// only its name, as in "targets.db".
	Settings []string
	// Rotation means that a setting of the rotation changed. RotationIdentity means that
	// the connection for sets did.
	Rotation, RotationIdentity bool
	// Lanes are the names of the identities whose connection to Conjur changed, and of
	// those that were added or removed. The default identity is "".
	Lanes []string
}

// Scopes returns the scope of each setting of the configuration file, by its name. The
// name of a list comes before the names of its items' settings, as in "targets.format".
// Such a setting has the list's scope, unless it has a separate one.
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

// Compare returns the difference between two configurations. It compares effective
// values. A setting that is written with its default is unchanged. If a default follows
// another setting, it changes with that setting.
func Compare(before, after *Config) Difference {
	var d Difference
	d.compare("", fileSettings(), before, after)
	d.Rotation = differ(section("rotation"), before, after)
	d.RotationIdentity = !same(reflect.ValueOf(before.Rotation.Conjur), reflect.ValueOf(after.Rotation.Conjur))
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

// named returns all identities except the default one, which has the process's settings.
func named(ids []Identity) []Identity {
	return slices.DeleteFunc(slices.Clone(ids), func(id Identity) bool { return id.Name == "" })
}

// changedLanes returns the names of the identities that are in only one list, or whose
// connection to Conjur changed.
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

// compare adds the settings of a table that differ between two structs; before and after
// point to them.
func (d *Difference) compare(prefix string, table []setting, before, after any) {
	for _, s := range table {
		if s.field != "" && !same(s.in(reflect.ValueOf(before)), s.in(reflect.ValueOf(after))) {
			d.add(prefix+s.name, s.scope)
		}
	}
}

// differ reports whether a setting of a table differs between two structs.
func differ(table []setting, before, after any) bool {
	var d Difference
	d.compare("", table, before, after)
	return len(d.Settings) > 0
}

// same reports whether two fields have the same value. It ignores the API key within a
// Conjur connection.
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

// compareItems adds the differences between two lists of named items; a setting contains
// the list. An item that is in only one list is compared with none, an item without
// settings.
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
