package config

import (
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Reload is Load for a process that runs with the configuration before. A target with a
// problem keeps its settings from before. An unknown annotation that resembles a setting
// is also a problem, unless it existed before: a typing error must not change the
// delivered secrets.
func Reload(src Sources, before *Config) (cfg *Config, warnings []Problem, err error) {
	return load(src, before)
}

// misspelling is an unknown annotation that resembles a setting.
type misspelling struct {
	key, message string
	group        *string // the group of the setting; nil for a process setting
}

// addSlips reports the misspellings. New ones in a running process are problems.
func (l *loader) addSlips() {
	for _, s := range l.misspellings {
		same := func(other misspelling) bool { return other.key == s.key }
		switch {
		case l.before == nil || slices.ContainsFunc(l.before.misspellings, same):
			l.warn(s.key, "%s", s.message)
		case s.group == nil:
			l.fail(s.key, "%s", s.message)
		default:
			l.concerning(func() { l.fail(s.key, "%s", s.message) }, targets.FileKey(*s.group))
		}
	}
}

// keep gives targets with problems their previous settings.
func (l *loader) keep(cfg *Config) {
	name := func(t *targets.Target) targets.Key { return t.Key }
	faulty := func(t *targets.Target) bool { return len(t.Faults) > 0 }
	cfg.Targets = kept(l.before.Targets, cfg.Targets, name, faulty)
	for _, t := range l.before.Targets { // a misspelling may hide a whole group
		if len(l.takeFaults(t.Key)) > 0 {
			cfg.Targets = append(cfg.Targets, t)
		}
	}
	slices.SortFunc(cfg.Targets, func(a, b *targets.Target) int { return strings.Compare(a.Group, b.Group) })
	well := slices.DeleteFunc(slices.Clone(cfg.Targets), func(t *targets.Target) bool { return faulty(t) || t.File.Path == "" })
	l.fatal = l.fatal || len(targets.PathConflicts(well)) > 0

	cfg.Kubernetes.Definitions = kept(l.before.Kubernetes.Definitions, cfg.Kubernetes.Definitions,
		func(def definitions.SecretDefinition) targets.Key {
			return targets.KubeSecretKey(def.Namespace, def.Name)
		},
		func(def definitions.SecretDefinition) bool { return def.Configured != nil && faulty(def.Configured) })
}

// kept returns the items of after, but replaces each faulty one with its item in before.
// It omits the item if before has none. It does not restore an item that was already
// faulty in before.
func kept[T any](before, after []T, name func(T) targets.Key, faulty func(T) bool) (all []T) {
	for _, item := range after {
		was := slices.IndexFunc(before, func(other T) bool { return name(other) == name(item) })
		switch {
		case !faulty(item) || was >= 0 && faulty(before[was]):
			all = append(all, item)
		case was >= 0:
			all = append(all, before[was])
		}
	}
	return all
}
