package config

import (
	"fmt"

	"github.com/secretsync/syncer/pkg/targets"
)

// Explanation contains all settings of one target, for people and programs.
type Explanation struct {
	effectiveTarget
	Variables []string  `json:"variables"` // each once; "*" or "prefix/*" for all
	Triggers  []Trigger `json:"triggers"`
}

// Trigger is an event that makes Syncer check a target again.
type Trigger struct {
	Kind string `json:"kind"` // "start", "list", "poll", "template" or "destination"
	When string `json:"when"` // in words
}

// Explain returns the explanation of the target with a key or a group of that name, and
// false if there is none.
func Explain(cfg *Config, name string) (Explanation, bool) {
	for _, t := range cfg.Targets {
		if t.Group == name || string(t.Key) == name {
			return explain(cfg, t), true
		}
	}
	return Explanation{}, false
}

func explain(cfg *Config, t *targets.Target) Explanation {
	e := Explanation{
		effectiveTarget: newEffectiveTarget(cfg.Folders, t),
		Variables:       append([]string{}, t.Variables()...),
		Triggers:        []Trigger{{"start", "once at the start"}},
	}
	for _, entry := range t.Entries {
		if entry.All() {
			e.Variables = append(e.Variables, entry.Variable)
		}
		if entry.Override != "" {
			e.Variables = append(e.Variables, entry.Override)
		}
	}
	if cfg.Mode.OneShot() || !cfg.Refresh.Enabled {
		return e
	}
	if t.Open() {
		e.Triggers = append(e.Triggers, Trigger{"list", fmt.Sprintf("when there is another variable in Conjur, within %v", cfg.Refresh.Interval)})
	}
	e.Triggers = append(e.Triggers,
		Trigger{"poll", fmt.Sprintf("when a variable's value changes in Conjur, within %v", cfg.Refresh.Interval)},
		Trigger{"destination", fmt.Sprintf("when the file is %s, within %v", lost(cfg), cfg.Refresh.Interval)})
	switch {
	case t.Template.File != "":
		e.Triggers = append(e.Triggers, Trigger{"template", "when the file " + e.Template + " changes"})
	case e.TemplateConfigMap != "":
		e.Triggers = append(e.Triggers, Trigger{"template", "when the ConfigMap " + t.Template.ConfigMap.Name + " changes"})
	}
	return e
}

// lost describes when Syncer writes a file again.
func lost(cfg *Config) string {
	if cfg.RestoreDeletedFiles {
		return "missing or altered"
	}
	return "altered"
}
