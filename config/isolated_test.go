package config_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/secretsync/syncer/config"
)

// faulty returns which targets have Faults, and which have none.
func faulty(cfg *config.Config) (bad, good []string) {
	for _, t := range cfg.Targets {
		if len(t.Faults) > 0 {
			bad = append(bad, string(t.Key))
		} else {
			good = append(good, string(t.Key))
		}
	}
	for _, def := range cfg.Kubernetes.Definitions {
		if def.Configured != nil && len(def.Configured.Faults) > 0 {
			bad = append(bad, "secret/"+def.Namespace+"/"+def.Name)
		} else {
			good = append(good, "secret/"+def.Namespace+"/"+def.Name)
		}
	}
	return bad, good
}

func assertFaulty(t *testing.T, cfg *config.Config, err error, bad, good string) {
	t.Helper()
	if cfg == nil || err == nil {
		t.Fatalf("got %v and the error %v, want both", cfg != nil, err)
	}
	if gotBad, gotGood := faulty(cfg); strings.Join(gotBad, " ") != bad || strings.Join(gotGood, " ") != good {
		t.Errorf("faulty are %q and well %q, want %q and %q", gotBad, gotGood, bad, good)
	}
}

// TestAnInvalidGroupStopsNoOther: every fault of a group is its own.
func TestAnInvalidGroupStopsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		annotations dict
		bad, good   string
	}{
		"format":            {dict{"secret-file-format.x": "toml"}, "file/x", "file/g"},
		"path":              {dict{"secret-file-path.x": "/etc/x"}, "file/x", "file/g"},
		"permissions":       {dict{"secret-file-permissions.x": "0644"}, "file/x", "file/g"},
		"list":              {dict{"conjur-secrets.x": "- a/"}, "file/x", "file/g"},
		"node":              {dict{"node-secrets.x": "true"}, "file/x", "file/g"},
		"alias":             {dict{"conjur-secrets.x": "- 7up: a", "secret-file-format.x": "dotenv"}, "file/x", "file/g"},
		"template":          {dict{"secret-file-format.x": "template", "secret-file-template.x": "{{ < }}"}, "file/x", "file/g"},
		"one path":          {dict{"secret-file-path.x": "g.yaml"}, "file/g file/x", ""},
		"below a path":      {dict{"secret-file-path.x": "y.yaml/x", "conjur-secrets.y": "- a"}, "file/x file/y", "file/g"},
		"undefined":         {dict{"conjur-secrets.x": "", "secret-file-format.x": "toml"}, "file/x", "file/g"},
		"template file":     {dict{"secret-file-format.x": "template"}, "", "file/g file/x"},
		"broken file":       {dict{"secret-file-format.broken": "template", "conjur-secrets.broken": "- a"}, "", "file/broken file/g file/x"},
		"broken file, path": {dict{"secret-file-format.broken": "template", "conjur-secrets.broken": "- a", "secret-file-path.broken": "/etc/x"}, "file/broken", "file/g file/x"},
	} {
		t.Run(name, func(t *testing.T) {
			src := sources(t, group.with(dict{"conjur-secrets.x": "- k: a/b"}).with(c.annotations), connection)
			src.Templates = fstest.MapFS{"broken.tpl": {Data: []byte("{{ < }}")}}
			cfg, _, err := config.Load(src.Read())
			assertFaulty(t, cfg, err, c.bad, c.good)
		})
	}
}

// TestAFaultOfTheProcessLeavesNothing, whatever else is faulty.
func TestAFaultOfTheProcessLeavesNothing(t *testing.T) {
	for name, annotations := range map[string]dict{
		"interval": {"secrets-refresh-interval": "soon"},
		"mode":     {"container-mode": "daemon"},
	} {
		cfg, _, err := config.Load(sources(t, group.with(annotations).with(dict{"secret-file-format.g": "toml"}), connection).Read())
		if cfg != nil || err == nil {
			t.Errorf("%s: got %v and the error %v", name, cfg, err)
		}
	}
}

func TestAnInvalidItemOfTheFileStopsNoOther(t *testing.T) {
	for name, c := range map[string]struct{ item, bad, good string }{
		"format":      {"{name: x, secrets: [a], format: toml}", "file/x", "file/g"},
		"unknown":     {"{name: x, secrets: [a], fromat: json}", "file/x", "file/g"},
		"no secrets":  {"{name: x}", "file/x", "file/g"},
		"type":        {"{name: x, secrets: [a], path: 7}", "file/x", "file/g"},
		"name, twice": {"{name: g, secrets: [a]}", "file/g", ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := fileSources(t, "containerMode: sidecar\ntargets:\n- {name: g, secrets: [a]}\n- "+c.item+"\n", dict{"secrets-destination": "file"}, connection)
			cfg, _, err := config.Load(src.Read())
			assertFaulty(t, cfg, err, c.bad, c.good)
		})
	}
	src := fileSources(t, "containerMode: sidecar\ntargets:\n- {name: g, secrets: [a]}\n- {nam: x, secrets: [a]}\n", dict{"secrets-destination": "file"}, connection)
	if cfg, _, err := config.Load(src.Read()); cfg != nil || err == nil {
		t.Error("a target without a name is left out silently")
	}
}

func TestAnInvalidSecretStopsNoOther(t *testing.T) {
	for name, item := range map[string]string{
		"map":      "{name: x, map: {k: v/}}",
		"unknown":  "{name: x, mapp: {k: v}}",
		"template": "{name: x, groups: {g: {secrets: [a], template: \"{{ < }}\"}}}",
		"nothing":  "{name: x, create: true}",
		"twice":    "{name: x}, {name: x}",
	} {
		t.Run(name, func(t *testing.T) {
			src := fileSources(t, "secretsDestination: k8s_secrets\nkubernetes: {secrets: [{name: g, map: {k: v}}, "+item+"]}\n", nil, connection.with(dict{"MY_POD_NAMESPACE": "ns"}))
			cfg, _, err := config.Load(src.Read())
			assertFaulty(t, cfg, err, "secret/ns/x", "secret/ns/g")
		})
	}
}

// TestReloadKeepsWhatIsInvalid as it was before, and takes up all else.
func TestReloadKeepsWhatIsInvalid(t *testing.T) {
	before := dict{"conjur-secrets.x": "- a", "secret-file-format.x": "json"}
	for name, c := range map[string]struct {
		before, after dict
		want          string // path of each target; "" if nothing may change
	}{
		"format":                {before, dict{"secret-file-format.x": "toml"}, "h.yaml x.json"},
		"a slip":                {before, dict{"secret-file-format.x": "", "secret-file-formt.x": "json"}, "h.yaml x.json"},
		"a slip hides a group":  {before, dict{"conjur-secrets.x": "", "secret-file-format.x": "", "conjur-secret.x": "- a"}, "h.yaml x.json"},
		"a slip of long ago":    {before.with(dict{"secret-file-formt.x": "json"}), dict{"secret-file-format.x": ""}, "h.yaml x.yaml"},
		"a slip of the process": {before, dict{"log-levels": "warn"}, ""},
		"the process":           {before, dict{"log-level": "loud"}, ""},
		"a new group":           {before, dict{"conjur-secrets.new": "- a/"}, "h.yaml x.json"},
		"it was faulty":         {before.with(dict{"secret-file-format.x": "toml"}), dict{"secret-file-path.x": "y"}, " h.yaml"},
		"in the way of another": {before, dict{"secret-file-format.x": "toml", "secret-file-path.h": "x.json"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, _, err := config.Load(sources(t, group.with(c.before), connection).Read())
			if old == nil {
				t.Fatal(err)
			}
			after := group.with(c.before).with(dict{"conjur-secrets.g": "", "conjur-secrets.h": "- a"}).with(c.after)
			cfg, _, err := config.Reload(sources(t, after, connection).Read(), old)
			if (cfg == nil) != (c.want == "") || (err == nil) != (name == "a slip of long ago") {
				t.Fatalf("got %v and the error %v", cfg, err)
			}
			if cfg == nil {
				return
			}
			var paths []string
			for _, target := range cfg.Targets {
				paths = append(paths, target.File.Path)
			}
			if slices.Sort(paths); strings.Join(paths, " ") != c.want {
				t.Errorf("got %q, want %s", paths, c.want)
			}
		})
	}
}

// TestAMissingTemplateFileHidesNoFault: the file may come later, but the problems after it
// are faults.
func TestAMissingTemplateFileHidesNoFault(t *testing.T) {
	cfg, _, err := config.Load(sources(t, dict{
		"secrets-destination": "file", "conjur-secrets.a": "- x", "secret-file-format.a": "template",
		"conjur-secrets.b": "- y/",
	}, connection).Read())
	if cfg == nil {
		t.Fatal(err)
	}
	for _, target := range cfg.Targets {
		if faulty := len(target.Faults) > 0; faulty != (target.Group == "b") {
			t.Errorf("the target of the group %s has the faults %v", target.Group, target.Faults)
		}
	}
}
