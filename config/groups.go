package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// targets makes the file targets of all groups, sorted by group. A target with a problem
// has only its Faults and its path.
func (l *loader) targets(cfg *Config) []*targets.Target {
	var ts, placed []*targets.Target
	for _, group := range slices.Sorted(maps.Keys(l.groups)) {
		g, key := l.groups[group], targets.FileKey(group)
		if !g["secrets"].set {
			l.strayGroup(group)
			if len(l.faults[key]) > 0 {
				ts = append(ts, &targets.Target{Key: key, Group: group})
			}
			continue
		}
		if group == "" {
			l.warn(g["secrets"].key, "the group has no name; put one after the last dot")
		}
		var t *targets.Target
		l.concerning(func() { t = l.target(group, g, cfg) }, key)
		ts = append(ts, t)
		if t.File.Path != "" {
			placed = append(placed, t)
		}
	}
	if len(ts) == 0 && cfg.Destination == DestinationFile && !l.process["secretsDestination"].env {
		l.fail(domain+"conjur-secrets.{group}", "no secret group is defined; there is nothing to deliver")
	}
	if l.ofNode {
		l.checkNodeToken(cfg)
	}
	for _, c := range targets.PathConflicts(placed) {
		l.concerning(func() { l.fail(l.groupKey(c.Group, "path"), "%v", c.Err) }, targets.FileKey(c.Group), targets.FileKey(c.Other))
	}
	for i, t := range ts {
		if faults := l.takeFaults(t.Key); len(faults) > 0 {
			ts[i] = &targets.Target{Key: t.Key, Group: t.Group, File: t.File, Faults: faults}
		}
	}
	return ts
}

// target makes one target. It reports invalid parts and leaves them zero, so that it can
// check the rest too.
func (l *loader) target(group string, g item, cfg *Config) *targets.Target {
	t := &targets.Target{Key: targets.FileKey(group), Group: group}
	l.entries(t, g, cfg.Conjur.Account)
	l.nodeSecrets(t, g, cfg)

	t.Format = targets.Formats()[0]
	if f := g["format"]; f.set {
		t.Format = targets.Format(f.text)
	}
	t.File.Mode = definitions.DefaultFileMode
	if p := g["permissions"]; p.set {
		t.File.Mode, _ = definitions.ParsePermissions(p.text) // reported when it was read
	}
	if g["format"].bad {
		return t
	}
	l.path(t, g)
	l.dotenvReaders(t, g["dotenvReaders"])
	l.checkGroup(t, l.template(t, g, cfg.Kubernetes.Namespace), g["secrets"].key)
	return t
}

// path sets the path of the target. A slash at the end selects the default file in that
// folder. With the format directory it changes nothing.
func (l *loader) path(t *targets.Target, g item) {
	p := g["path"]
	if p.bad {
		return
	}
	if t.Format == targets.FormatDirectory {
		p.text = strings.TrimRight(p.text, "/")
	}
	var err error
	t.File.Path, err = definitions.FilePath(l.src.SecretsDir, p.text, targets.DefaultFileName(t.Group, t.Format))
	if err != nil {
		l.fail(l.groupKey(t.Group, "path"), "%v", err)
	}
}

// entries sets the entries. A group with an invalid entry has none.
func (l *loader) entries(t *targets.Target, g item, account string) {
	secrets := g["secrets"]
	if secrets.bad || g["policyPath"].bad {
		return
	}
	var entries []targets.Entry
	var warnings []string
	var err error
	if secrets.node != nil {
		entries, warnings, err = definitions.ParseEntryList(secrets.node, account)
	} else {
		entries, warnings, err = definitions.ParseEntries(secrets.text, account)
	}
	for _, w := range warnings {
		l.warn(secrets.key, "%s", w)
	}
	if err != nil {
		l.failAll(secrets.key, err)
		return
	}
	t.Entries = definitions.WithPolicyPath(entries, g["policyPath"].text)
}

// dotenvReaders sets the readers. A text separates them by commas.
func (l *loader) dotenvReaders(t *targets.Target, readers value) {
	if !readers.set || readers.bad {
		return
	}
	t.DotenvReaders = readers.names()
	if readers.node == nil {
		t.DotenvReaders = definitions.ParseDotenvReaders(readers.text)
	}
	if err := t.CheckDotenvReaders(); err != nil {
		l.fail(readers.key, "%v", err)
	}
}

// strayGroup warns of settings for an undefined group.
func (l *loader) strayGroup(group string) {
	for _, s := range groupSettings() {
		if val := l.groups[group][s.name]; val.set {
			l.warn(val.key, "there is no group %q; define it by %sconjur-secrets.%s", group, domain, group)
		}
	}
}

// ignoreGroups warns of groups that do not apply to the destination.
func (l *loader) ignoreGroups() {
	for _, group := range slices.Sorted(maps.Keys(l.groups)) {
		l.warn(l.groupKey(group, "secrets"), "secret groups are used with the destination file only; ignored")
	}
}

// groupKey is where a group's setting was set, or the best place to set it.
func (l *loader) groupKey(group, name string) string {
	if val := l.groups[group][name]; val.set {
		return val.key
	}
	secrets := l.groups[group]["secrets"].key
	if item, ok := strings.CutSuffix(secrets, "."+"secrets"); ok && !strings.HasPrefix(secrets, domain) {
		return item + "." + name // of the configuration file
	}
	s, _ := find(groupSettings(), name)
	return domain + s.annotation + group
}

// addTargets adds the file's targets. Each must have a unique name.
func (v *values) addTargets(ts []item, r *report) {
	for i, t := range ts {
		name := t["name"]
		if !name.set || name.bad {
			continue
		}
		key := targets.FileKey(name.text)
		r.addFaults(key, r.takeFaults(itemKey("targets", i))...)
		if _, twice := v.groups[name.text]; twice {
			r.concerning(func() {
				r.fail(name.key, "another target, or a group in the annotations, has the name %q; rename one", name.text)
			}, key)
			continue
		}
		if !t["secrets"].set { // reported already
			t["secrets"] = value{key: name.key, set: true, bad: true}
		}
		v.groups[name.text] = t
	}
}
