package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// secretExplanation contains all settings of one Kubernetes Secret.
type secretExplanation struct {
	Key       targets.Key        `json:"key"`
	DataKeys  []explainedDataKey `json:"dataKeys"`
	Variables []string           `json:"variables"` // each once; "*" or "prefix/*" for all
	Workloads []string           `json:"workloads"` // restarted after a change
	Triggers  []config.Trigger   `json:"triggers"`
	Faults    []string           `json:"faults"` // omitted above, and why
	Login     *login             `json:"login,omitempty"`
}

// explainedDataKey is the content of one data key. It is the value of its single entry,
// or the result of a format or a template for its entries.
type explainedDataKey struct {
	Name     string          `json:"name"` // "*": a key for each existing variable
	Format   targets.Format  `json:"format,omitempty"`
	Template string          `json:"template,omitempty"` // its location
	Entries  []targets.Entry `json:"entries"`
}

// explainOfManifest explains a Secret of the manifest, or otherwise a target of the
// workload in it.
func (t *Tool) explainOfManifest(name string) error {
	m, err := t.readManifest()
	if err != nil {
		return err
	}
	found, problems := t.providers(m)
	alone := len(found)+min(len(problems), 1) == 1 // one workload can have several problems
	var filling secretsprovider.Provider           // the one that fills the Secrets
	if alone && len(found) == 1 {
		filling = found[0]
		filling.Config, _ = filling.Load(t.Sources, t.TemplatesNamed, false)
	}
	secrets, _ := readSecrets(m, nil)
	var names []string
	for _, s := range secrets {
		if s.target == nil {
			continue
		}
		if namesSecret(name, s.Namespace, s.Name) || name == s.String() {
			return t.printSecret(t.newSecretExplanation(filling.Config, &filling, s.target))
		}
		names = append(names, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))
	}
	if alone {
		p, err := t.onlyProvider(m)
		if err != nil {
			return err
		}
		if _, ok := config.Explain(p.Config, name); ok || len(names) == 0 {
			return t.explainOf(p.Config, &p, name)
		}
		for _, t := range p.Config.Targets {
			names = append(names, t.Group)
		}
	}
	return fmt.Errorf("there is no Secret %q with a conjur-map or a group in the manifest; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
}

// definedSecret finds a Secret in the configuration, with its settings there.
func definedSecret(cfg *config.Config, name string) (*targets.Target, bool) {
	for _, def := range cfg.Kubernetes.Definitions {
		if namesSecret(name, def.Namespace, def.Name) {
			def.Missing = true // the Secret itself is unknown
			t := definitions.FromSecret(def)
			return t, true
		}
	}
	return nil, false
}

// namesSecret reports whether name identifies a Secret, in any form of the name.
func namesSecret(name, namespace, secret string) bool {
	name = strings.TrimPrefix(name, "secret/")
	return name == secret || name == namespace+"/"+secret
}

// newSecretExplanation explains a Secret that the process of p fills. Without p, the
// process with this configuration fills it; nil means an unknown one.
func (t *Tool) newSecretExplanation(cfg *config.Config, p *secretsprovider.Provider, target *targets.Target) secretExplanation {
	e := secretExplanation{
		Key: target.Key, DataKeys: []explainedDataKey{}, Variables: append([]string{}, target.Variables()...),
		Workloads: append([]string{}, target.Secret.Restart...), Faults: append([]string{}, targets.Texts(target.Secret.Faults)...),
	}
	for _, entry := range target.Entries {
		e.DataKeys = append(e.DataKeys, explainedDataKey{Name: entry.Alias, Entries: []targets.Entry{entry}})
	}
	for _, group := range target.Secret.Groups {
		e.DataKeys = append(e.DataKeys, explainedDataKey{group.Group, group.Format, templatePlace(group), append([]targets.Entry{}, group.Entries...)})
	}
	for _, part := range target.Parts() {
		for _, entry := range part.Entries {
			if entry.All() && !slices.Contains(e.Variables, entry.Variable) {
				e.Variables = append(e.Variables, entry.Variable)
			}
		}
	}
	e.Triggers = secretTriggers(cfg, target)
	if cfg != nil {
		as := cfg.Conjur
		if identity, ok := cfg.IdentityOf(target.Secret.Namespace, target.Secret.Name); ok {
			as = identity.Conjur
		}
		e.Login = t.loginOf(cfg, as, p)
	}
	if target.Secret.Namespace == "" {
		e.Key = targets.Key("secret/" + target.Secret.Name)
	}
	return e
}

// templatePlace returns the location of a group's template, or "" without a template.
func templatePlace(group *targets.Target) string {
	place := group.Template.ConfigMap
	switch {
	case group.Format != targets.FormatTemplate:
		return ""
	case place != (targets.ConfigMapKey{}):
		return "ConfigMap " + strings.TrimPrefix(place.Namespace+"/"+place.Name, "/") + ", key " + place.Key
	case group.Template.File != "":
		return group.Template.File
	}
	return "inline"
}

// secretTriggers lists the events that make a process check a Secret that it fills. cfg
// is the configuration of this process. If it is nil, it is unknown, and the process is
// assumed to refresh.
func secretTriggers(cfg *config.Config, t *targets.Target) []config.Trigger {
	triggers := []config.Trigger{{Kind: "start", When: "once at the start"}}
	interval := "the refresh interval"
	switch {
	case cfg != nil && cfg.Mode.OneShot():
		return triggers
	case cfg != nil:
		interval = cfg.Refresh.Interval.String()
	}
	triggers = append(triggers,
		config.Trigger{Kind: "source", When: "when the Secret is created, or its map or an annotation changes"},
		config.Trigger{Kind: "destination", When: "when one of the data keys is missing or altered"})
	if cfg == nil || cfg.Refresh.Enabled {
		triggers = append(triggers, config.Trigger{Kind: "poll", When: "when a variable's value changes in Conjur, within " + interval})
		if t.Wildcard() {
			triggers = append(triggers, config.Trigger{Kind: "list", When: "when there is another variable in Conjur, within " + interval})
		}
	}
	for _, group := range t.Secret.Groups {
		if group.Template.ConfigMap != (targets.ConfigMapKey{}) {
			triggers = append(triggers, config.Trigger{Kind: "template", When: "when " + templatePlace(group) + ", changes"})
		}
	}
	return triggers
}

func (t *Tool) printSecret(e secretExplanation) error {
	if t.Output.ForPrograms() {
		return t.print(e)
	}
	table := t.table()
	table.row("target", string(e.Key))
	for _, key := range e.DataKeys {
		table.rows("data key "+key.Name, key.lines())
	}
	table.rows("variables", e.Variables)
	table.rows("workloads", e.Workloads)
	table.rows("triggers", triggerLines(e.Triggers))
	e.Login.addTo(table)
	table.rows("faults", e.Faults)
	return table.Flush()
}

// lines describe a data key.
func (k explainedDataKey) lines() (lines []string) {
	if k.Format == "" {
		return []string{fmt.Sprintf("%s (%s)", k.Entries[0].Variable, k.Entries[0].ContentType)}
	}
	head := "format " + string(k.Format)
	if k.Template != "" {
		head += ", " + k.Template
	}
	return append([]string{head}, entryLines(k.Entries)...)
}
