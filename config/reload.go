package config

import (
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Reload is Load for a process that works with the configuration before. A
// target with a problem keeps the settings that it has there. An unknown
// annotation that resembles a setting is a problem too, unless it was there
// before: a typing error must not change what is delivered.
func Reload(src Sources, before *Config) (cfg *Config, warnings []Problem, err error) {
	return load(src, before)
}

// slip is an unknown annotation that resembles a setting.
type slip struct {
	key, message string
	group        *string // of the setting; nil: it is one of the process
}

// addSlips reports the slips: as problems if they are new in a running process.
func (l *loader) addSlips() {
	for _, s := range l.slips {
		same := func(other slip) bool { return other.key == s.key }
		switch {
		case l.before == nil || slices.ContainsFunc(l.before.slips, same):
			l.warn(s.key, "%s", s.message)
		case s.group == nil:
			l.fail(s.key, "%s", s.message)
		default:
			l.concerning(func() { l.fail(s.key, "%s", s.message) }, targets.FileKey(*s.group))
		}
	}
}

// keep gives targets that have problems the settings that they had before.
func (l *loader) keep(cfg *Config) {
	name := func(t *targets.Target) targets.Key { return t.Key }
	faulty := func(t *targets.Target) bool { return len(t.Faults) > 0 }
	cfg.Targets = kept(l.before.Targets, cfg.Targets, name, faulty)
	for _, t := range l.before.Targets { // a slip may hide a whole group
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

// kept returns the items of after, but in the place of each faulty one that of
// before, or none if there was none. One that was faulty before is replaced.
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
