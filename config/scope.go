package config

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/secretsync/syncer/pkg/definitions"
	"github.com/secretsync/syncer/pkg/generate"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// Scope is what is made anew when a setting has changed. Of two scopes the
// greater is the wider; it includes the smaller ones, save that only those
// lanes are made anew that Difference.Lanes names, unless all is.
type Scope int

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
		if scopes[prefix+s.name] = scope; s.items != nil {
			addScopes(scopes, prefix+s.name+".", scope, s.items())
		}
	}
}

// subject is what a setting is set for: the process, or an item of a list.
type subject struct {
	*Config
	conjur   *Conjur
	target   *targets.Target // of a group
	secret   *definitions.SecretDefinition
	identity *Identity
	rotated  *RotatedSet
	password *generate.Password
}

// configured returns what the configuration says of a Secret.
func (s subject) configured() *targets.Target {
	if s.secret.Configured == nil {
		return &targets.Target{Secret: &targets.Secret{}}
	}
	return s.secret.Configured
}

// faults are the problems of a target's settings.
func (s subject) faults() []string {
	switch {
	case s.target != nil:
		return s.target.Faults
	case s.secret != nil:
		return s.configured().Faults
	}
	return nil
}

// Compare returns what has changed from one configuration to another. It
// compares what is in effect: a setting that is written with its default is
// the same as before, and one whose default follows another changes with it.
func Compare(before, after *Config) Difference {
	var d Difference
	d.compare("", append(settings(), rotationSettings()...), subject{Config: before, conjur: &before.Conjur}, subject{Config: after, conjur: &after.Conjur})
	if before.Folders != after.Folders {
		d.add("folders", ScopeProcess)
	}
	compareItems(&d, "targets.", targetSettings(), before.Targets, after.Targets, &targets.Target{},
		func(t *targets.Target) string { return t.Group },
		func(t *targets.Target) subject { return subject{target: t} })
	compareItems(&d, "kubernetes.secrets.", secretSettings(), before.Kubernetes.Definitions, after.Kubernetes.Definitions, definitions.SecretDefinition{},
		func(def definitions.SecretDefinition) string { return def.Namespace + "/" + def.Name },
		func(def definitions.SecretDefinition) subject { return subject{secret: &def} })
	compareItems(&d, "identities.", identitySettings(), named(before.Identities), named(after.Identities), Identity{},
		func(id Identity) string { return id.Name },
		func(id Identity) subject { return subject{identity: &id, conjur: &id.Conjur} })
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
			d.compare("", conjurSettings(), subject{conjur: &id.Conjur}, subject{conjur: &other.Conjur})
			return other.Name == id.Name && d.Scope == ScopeNone
		}
		if !(slices.ContainsFunc(before, same) && slices.ContainsFunc(after, same)) && !slices.Contains(names, id.Name) {
			names = append(names, id.Name)
		}
	}
	return names
}

// compare adds the settings of a table that differ.
func (d *Difference) compare(prefix string, table []setting, before, after subject) {
	for _, s := range table {
		if s.of != nil && !same(s.of(before), s.of(after)) {
			d.add(prefix+s.name, s.scope)
		}
	}
}

// same reports whether two values, or what two pointers point to, are the same.
func same(a, b any) bool {
	if key, ok := a.(*secret.Value); ok {
		return key.Equal(*b.(*secret.Value))
	}
	return reflect.DeepEqual(a, b)
}

func (d *Difference) add(name string, scope Scope) {
	d.Scope = max(d.Scope, scope)
	d.Settings = append(d.Settings, name)
}

// compareItems adds what differs between two lists of items with names. An item
// that is in one of them only is compared with none.
func compareItems[T any](d *Difference, prefix string, table []setting, before, after []T, none T, name func(T) string, as func(T) subject) {
	for i, item := range slices.Concat(before, after) {
		same := func(other T) bool { return name(other) == name(item) }
		was, is := slices.IndexFunc(before, same), slices.IndexFunc(after, same)
		switch {
		case was >= 0 && is >= 0 && i < len(before):
			d.compare(prefix+name(item)+".", table, as(item), as(after[is]))
			if !slices.Equal(as(item).faults(), as(after[is]).faults()) {
				d.add(prefix+name(item), ScopeLive)
			}
		case was < 0 || is < 0:
			var alone Difference
			alone.compare("", table, as(item), as(none))
			d.add(prefix+name(item), alone.Scope)
		}
	}
}
