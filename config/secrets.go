package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// fileDefinitions makes the definitions of the Secrets in the configuration file. A definition
// with a problem has only its Faults.
func (l *loader) fileDefinitions(list value, cfg *Config, k Kubernetes) (defs []definitions.SecretDefinition) {
	if len(list.items) == 0 {
		l.fail(list.key, "the list is empty; add a name or remove the setting")
	}
	seen := map[targets.Key]bool{}
	for i, s := range list.items {
		name, namespace := s["name"], s["namespace"]
		if !name.set || name.bad || namespace.bad {
			continue
		}
		def := definitions.SecretDefinition{Namespace: k.Namespace, Name: name.text, Named: true}
		place := name.key
		if namespace.set {
			def.Namespace, place = namespace.text, namespace.key
		}
		def.Account = l.accountOf(def.Namespace, def.Name, cfg.Conjur.Account)
		key := targets.KubeSecretKey(def.Namespace, def.Name)
		l.addFaults(key, l.takeFaults(itemKey("kubernetes.secrets", i))...)
		switch {
		case cfg.Mode != ModeStandalone && namespace.set && def.Namespace != k.Namespace && k.Namespace != "":
			l.fail(place, "the Pod's namespace is %q; only the mode standalone fills Secrets of other namespaces", k.Namespace)
		case k.checkServes(def.Namespace) != nil:
			l.fail(place, "%v", k.checkServes(def.Namespace))
		case seen[key]:
			l.concerning(func() { l.fail(name.key, "the Secret %q is listed twice", def.Name) }, key)
		default:
			l.concerning(func() { def.Configured = l.targetOf(cfg.Mode, s, def) }, key)
			defs = append(defs, def)
		}
		seen[key] = true
	}
	for i := range defs {
		faults := l.takeFaults(targets.KubeSecretKey(defs[i].Namespace, defs[i].Name))
		if len(faults) > 0 {
			defs[i].Configured = &targets.Target{Secret: &targets.Secret{Namespace: defs[i].Namespace, Name: defs[i].Name}, Faults: faults}
		}
	}
	return defs
}

// targetOf returns the file's settings for a Secret, or nil if the file only names the
// Secret.
func (l *loader) targetOf(mode Mode, s item, def definitions.SecretDefinition) *targets.Target {
	more := &targets.Secret{
		Namespace: def.Namespace, Name: def.Name,
		Create: s["create"].isTrue(), Type: s["type"].text, Restart: l.workloads(mode, s["restart"]),
		PullFor: l.accounts(mode, s["pullSecretFor"]),
	}
	t := &targets.Target{Entries: l.loadMapping(s, def.Account), Secret: more}
	more.Groups = l.secretGroups(s, def)
	empty := len(s["map"].items) == 0 && len(s["groups"].items) == 0
	switch {
	case more.Create && empty:
		l.fail(s["create"].key, "create: true needs a map or groups; add one")
	case s["type"].set && !more.Create:
		l.warn(s["type"].key, "the type of an existing Secret cannot change; used with create: true only")
	case more.Create && len(more.PullFor) > 0 && definitions.CheckPullType(cmp.Or(more.Type, "Opaque")) != nil:
		l.fail(s["pullSecretFor"].key, "%v", definitions.CheckPullType(cmp.Or(more.Type, "Opaque")))
	case empty && !more.Create && len(more.Restart)+len(more.PullFor) == 0:
		return nil
	}
	return t
}

// loadMapping reads the map. Each data key may occur only once.
func (l *loader) loadMapping(s item, account string) (entries []targets.Entry) {
	for i, key := range s["map"].keys {
		id, contentType := s["map"].items[i]["id"], s["map"].items[i]["contentType"]
		if !id.set || id.bad || contentType.bad {
			continue
		}
		read, warnings, err := definitions.ParseMapEntry(key, id.text, targets.ContentType(contentType.text), account)
		if err != nil {
			l.failAll(id.key, err)
		}
		for _, w := range warnings {
			l.warn(id.key, "%s", w)
		}
		for _, e := range read {
			if slices.ContainsFunc(entries, func(other targets.Entry) bool { return other.Alias == e.Alias }) {
				l.fail(id.key, "two entries of the map have the data key %q; rename one", e.Alias)
				continue
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// secretGroups makes the groups of a Secret, in ascending order.
func (l *loader) secretGroups(s item, def definitions.SecretDefinition) (groups []*targets.Target) {
	for i, name := range s["groups"].keys {
		g := s["groups"].items[i]
		key := g["secrets"].key
		if !g["secrets"].set || g["secrets"].bad {
			continue
		}
		if err := definitions.CheckDataKey(name); err != nil || name == targets.ConjurMapKey {
			l.fail(key, "the group %q cannot be a data key; use letters, digits, -, _ and .", name)
			continue
		}
		if slices.Contains(s["map"].keys, name) {
			l.fail(key, "the map also has the data key %q; rename one", name)
		}
		groups = append(groups, l.secretGroup(name, g, def))
	}
	slices.SortFunc(groups, func(a, b *targets.Target) int { return strings.Compare(a.Group, b.Group) })
	return groups
}

func (l *loader) secretGroup(name string, g item, def definitions.SecretDefinition) *targets.Target {
	t := &targets.Target{Group: name, Format: targets.Formats()[0]}
	l.entries(t, g, def.Account)
	switch {
	case g["format"].bad:
		return t
	case g["format"].set:
		t.Format = targets.Format(g["format"].text)
	case g["template"].set || g["templateConfigMap"].set:
		t.Format = targets.FormatTemplate
	}
	l.dotenvReaders(t, g["dotenvReaders"])
	given := l.givenTemplate(t, g, def.Namespace)
	if t.Format == targets.FormatTemplate && !given.set {
		l.fail(g["secrets"].key, "the format template needs a template; write one, or the name and key of a ConfigMap in templateConfigMap")
	}
	l.checkGroup(t, given, g["secrets"].key)
	return t
}

// workloads checks the workloads to restart.
func (l *loader) workloads(mode Mode, restart value) []string {
	if !restart.set || restart.bad {
		return nil
	}
	if mode != ModeStandalone {
		l.warn(restart.key, "workloads are restarted in the mode standalone only; ignored")
		return nil
	}
	list, err := definitions.ParseWorkloads(strings.Join(restart.names(), "\n"))
	if err != nil {
		l.failAll(restart.key, err)
	}
	if err == nil && len(list) == 0 {
		l.fail(restart.key, "the list is empty; add a workload or remove the setting")
	}
	return list
}

// accounts checks the service accounts that pull images with the Secret.
func (l *loader) accounts(mode Mode, pulls value) []string {
	if !pulls.set || pulls.bad {
		return nil
	}
	if mode != ModeStandalone {
		l.warn(pulls.key, "pull Secrets are added to service accounts in the mode standalone only; ignored")
		return nil
	}
	list, err := definitions.ParseAccounts(strings.Join(pulls.names(), "\n"))
	if err != nil {
		l.failAll(pulls.key, err)
	}
	if err == nil && len(list) == 0 {
		l.fail(pulls.key, "the list is empty; add a service account or remove the setting")
	}
	return list
}
