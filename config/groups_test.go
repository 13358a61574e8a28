package config_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
)

var templates = fstest.MapFS{
	"g.tpl":     {Data: []byte(`{{ secret "k" }}`)},
	"empty.tpl": {},
}

func TestGroups(t *testing.T) {
	entry := func(alias, variable string) []targets.Entry {
		return []targets.Entry{{Alias: alias, Variable: variable, ContentType: targets.ContentText}}
	}
	for name, c := range map[string]struct {
		annotations dict
		want        targets.Target
	}{
		"default name": {dict{"secret-file-format.g": "properties"},
			targets.Target{Format: targets.FormatProperties, File: targets.File{Path: "g.properties"}}},
		"path": {dict{"secret-file-path.g": "./creds.yaml"},
			targets.Target{File: targets.File{Path: "creds.yaml"}}},
		"folder": {dict{"secret-file-path.g": "./db/", "secret-file-format.g": "json"},
			targets.Target{Format: targets.FormatJSON, File: targets.File{Path: "db/g.json"}}},
		"directory": {dict{"secret-file-format.g": "directory"},
			targets.Target{Format: targets.FormatDirectory, File: targets.File{Path: "g"}}},
		"path of a directory": {dict{"secret-file-format.g": "directory", "secret-file-path.g": "db/tls/"},
			targets.Target{Format: targets.FormatDirectory, File: targets.File{Path: "db/tls"}}},
		"dotenv readers": {dict{"secret-file-format.g": "dotenv", "dotenv-readers.g": "node, compose"},
			targets.Target{Format: targets.FormatDotenv, DotenvReaders: []string{"node", "compose"}, File: targets.File{Path: "g.dotenv"}}},
		"permissions": {dict{"secret-file-permissions.g": "-rw-------"},
			targets.Target{File: targets.File{Path: "g.yaml", Mode: 0o600}}},
		"policy path": {dict{"conjur-secrets-policy-path.g": "/app/", "conjur-secrets.g": "- k: /b"},
			targets.Target{Entries: entry("k", "app/b"), File: targets.File{Path: "g.yaml"}}},
		"policy path of a slash": {dict{"conjur-secrets-policy-path.g": "/", "conjur-secrets.g": "- b"},
			targets.Target{Entries: entry("b", "b"), File: targets.File{Path: "g.yaml"}}},
		"id in full": {dict{"conjur-secrets.g": "- acct:variable:x/y"},
			targets.Target{Entries: entry("y", "x/y"), File: targets.File{Path: "g.yaml"}}},
		"inline template": {dict{"conjur-secrets.i": "- k: a/b", "secret-file-format.i": "template", "secret-file-template.i": "x", "conjur-secrets.g": ""},
			targets.Target{Group: "i", Format: targets.FormatTemplate, Template: targets.Template{Inline: "x"}, File: targets.File{Path: "i.out"}}},
		"template file": {dict{"secret-file-format.g": "template"},
			targets.Target{Format: targets.FormatTemplate, Template: targets.Template{File: "g.tpl"}, File: targets.File{Path: "g.out"}}},
		"inline beside an empty file": {dict{"conjur-secrets.empty": "- k: a/b", "secret-file-format.empty": "template", "secret-file-template.empty": "x", "conjur-secrets.g": ""},
			targets.Target{Group: "empty", Format: targets.FormatTemplate, Template: targets.Template{Inline: "x"}, File: targets.File{Path: "empty.out"}}},
		"name with dots": {dict{"conjur-secrets.a.b.c": "- k: a/b", "conjur-secrets.g": ""},
			targets.Target{Group: "a.b.c", File: targets.File{Path: "a.b.c.yaml"}}},
	} {
		t.Run(name, func(t *testing.T) {
			src := sources(t, group.with(c.annotations), connection)
			src.Templates = templates
			cfg, _ := load(t, src)
			if len(cfg.Targets) != 1 {
				t.Fatalf("%d targets", len(cfg.Targets))
			}
			assertTarget(t, *cfg.Targets[0], c.want, entry("k", "a/b"))
		})
	}
}

// assertTarget fills in what the expected target leaves out.
func assertTarget(t *testing.T, got, want targets.Target, entries []targets.Entry) {
	t.Helper()
	if want.Group == "" {
		want.Group = "g"
	}
	if want.Format == "" {
		want.Format = targets.FormatYAML
	}
	if want.File.Mode == 0 {
		want.File.Mode = 0o644
	}
	if want.Entries != nil {
		entries = want.Entries
	}
	if got.Key != targets.FileKey(want.Group) || got.Group != want.Group || got.Format != want.Format ||
		got.Template != want.Template || got.File != want.File || !slices.Equal(got.Entries, entries) {
		t.Errorf("got %v, want %v with %v", got, want, entries)
	}
}

func TestGroupsAreSorted(t *testing.T) {
	annotations := group.with(nil)
	for name := range strings.FieldsSeq("z y x w v u t s r q p o n m") {
		annotations["conjur-secrets."+name] = "- a"
	}
	cfg, _ := load(t, sources(t, annotations, connection))
	var got []string
	for _, target := range cfg.Targets {
		got = append(got, target.Group)
	}
	if strings.Join(got, "") != "gmnopqrstuvwxyz" {
		t.Errorf("got %q", got)
	}
}

func TestGroupsRefuse(t *testing.T) {
	both := dict{"conjur-secrets.a": "- a", "conjur-secrets.b": "- a", "conjur-secrets.g": ""}
	for name, c := range map[string]struct {
		annotations dict
		key, want   string
	}{
		"no group":            {dict{"conjur-secrets.g": ""}, "conjur.org/conjur-secrets.{group}", "no secret group"},
		"unknown format":      {dict{"secret-file-format.g": "toml"}, "conjur.org/secret-file-format.g", `"toml" is not a format; use one of yaml, json`},
		"absolute path":       {dict{"secret-file-path.g": "/etc/x"}, "conjur.org/secret-file-path.g", "absolute"},
		"path to a sibling":   {dict{"secret-file-path.g": "../secrets-other/x"}, "conjur.org/secret-file-path.g", "leaves the folder /conjur/secrets"},
		"path of the folder":  {dict{"secret-file-path.g": "."}, "conjur.org/secret-file-path.g", "name a file in it"},
		"long name":           {dict{"secret-file-path.g": strings.Repeat("n", 256)}, "conjur.org/secret-file-path.g", "255"},
		"name of a way out":   {dict{"conjur.org/conjur-secrets.../../g": "- a", "conjur-secrets.g": ""}, "conjur.org/secret-file-path.../../g", "leaves the folder"},
		"unknown reader":      {dict{"secret-file-format.g": "dotenv", "dotenv-readers.g": "node,denv"}, "conjur.org/dotenv-readers.g", `"denv" is not a reader of dotenv`},
		"readers of json":     {dict{"secret-file-format.g": "json", "dotenv-readers.g": "node"}, "conjur.org/dotenv-readers.g", "not used by the format json"},
		"octal permissions":   {dict{"secret-file-permissions.g": "0644"}, "conjur.org/secret-file-permissions.g", "rw-r--r--"},
		"trailing slash":      {dict{"conjur-secrets.g": "- k: a/b/"}, "conjur.org/conjur-secrets.g", "line 1"},
		"duplicate alias":     {dict{"conjur-secrets.g": "- k: a/b\n- k: c/d"}, "conjur.org/conjur-secrets.g", `the alias "k" is already used on line 1`},
		"other account":       {dict{"conjur-secrets.g": "- other:variable:a"}, "conjur.org/conjur-secrets.g", `account "other"`},
		"one file, twice":     {both.with(dict{"secret-file-path.a": "same", "secret-file-path.b": "./same"}), "conjur.org/secret-file-path.b", `the groups "a" and "b"`},
		"file and folder":     {both.with(dict{"secret-file-path.a": "d", "secret-file-path.b": "d/e"}), "conjur.org/secret-file-path.b", `"a" has its own`},
		"file in a directory": {both.with(dict{"secret-file-path.a": "d", "secret-file-format.a": "directory", "secret-file-path.b": "d/e"}), "conjur.org/secret-file-path.b", `"a" has its own`},
		"no template":         {dict{"secret-file-format.none": "template", "conjur-secrets.none": "- a"}, "conjur.org/secret-file-template.none", "/conjur/templates/none.tpl"},
		"two templates":       {dict{"secret-file-format.g": "template", "secret-file-template.g": "x"}, "conjur.org/secret-file-template.g", "there is also the template file /conjur/templates/g.tpl"},
		"empty template":      {dict{"secret-file-format.empty": "template", "conjur-secrets.empty": "- a"}, "/conjur/templates/empty.tpl", "is empty"},
		"template, ConfigMap": {dict{"secret-file-format.g": "template", "secret-file-template-configmap.g": "a/b"}, "conjur.org/secret-file-template-configmap.g", "there is also the template file"},
		"inline, ConfigMap":   {dict{"secret-file-format.i": "template", "conjur-secrets.i": "- a", "secret-file-template.i": "x", "secret-file-template-configmap.i": "a/b"}, "conjur.org/secret-file-template-configmap.i", "there is also a template in conjur.org/secret-file-template.i"},
		"no ConfigMap":        {dict{"secret-file-format.i": "template", "conjur-secrets.i": "- a", "secret-file-template-configmap.i": "A/b"}, "conjur.org/secret-file-template-configmap.i", "lower-case"},
		"broken template":     {dict{"secret-file-format.i": "template", "conjur-secrets.i": "- a", "secret-file-template.i": "{{ < }}"}, "conjur.org/secret-file-template.i", `unexpected "<"`},
		"all in properties":   {dict{"conjur-secrets.g": "*", "secret-file-format.g": "properties"}, "conjur.org/conjur-secrets.g", `alias "*" does not suit format properties`},
		"alias among all":     {dict{"conjur-secrets.i": "*", "secret-file-format.i": "template", "secret-file-template.i": `{{ secret "a/b" }}`}, "conjur.org/secret-file-template.i", `no alias "a/b"`},
		"alias of a format":   {dict{"conjur-secrets.g": "- 7up: a", "secret-file-format.g": "dotenv"}, "conjur.org/conjur-secrets.g", "7up"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := group.with(c.annotations)
			for k, v := range c.annotations {
				if v == "" {
					delete(annotations, k)
				}
			}
			src := sources(t, annotations, connection)
			src.Templates = templates
			assertOne(t, problems(t, src), c.key, c.want)
		})
	}
}

func TestNoGroupSecrets(t *testing.T) {
	annotations := group.with(nil)
	annotations["conjur-secrets.g"] = ""
	assertOne(t, problems(t, sources(t, annotations, connection)), "conjur.org/conjur-secrets.g", "the list of secrets is empty")
}

func TestEveryFaultyItemIsAProblem(t *testing.T) {
	got := problems(t, sources(t, group.with(dict{"conjur-secrets.g": "- a/\n- k: {}\n- ok"}), connection))
	if len(got) != 2 || got[0].Key != "conjur.org/conjur-secrets.g" || got[1].Key != got[0].Key {
		t.Errorf("got %q", got)
	}
}

func TestUnreadableTemplate(t *testing.T) {
	src := sources(t, group.with(dict{"secret-file-format.g": "template"}), connection)
	src.Templates = fstest.MapFS{"g.tpl": {Mode: fs.ModeDir}}
	assertOne(t, problems(t, src), "/conjur/templates/g.tpl", "cannot be read")
}

func TestGroupWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		annotations dict
		key, want   string
	}{
		"content-type":     {dict{"conjur-secrets.g": "- k: a\n  content-type: hex"}, "conjur.org/conjur-secrets.g", `"hex" is not a content-type`},
		"unused template":  {dict{"secret-file-template.g": "x"}, "conjur.org/secret-file-template.g", "not used by the format yaml"},
		"unused ConfigMap": {dict{"secret-file-template-configmap.g": "a/b"}, "conjur.org/secret-file-template-configmap.g", "not used by the format yaml"},
		"no such group":    {dict{"secret-file-path.h": "x"}, "conjur.org/secret-file-path.h", `there is no group "h"`},
		"group of no name": {dict{"conjur-secrets.": "- a"}, "conjur.org/conjur-secrets.", "has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings := load(t, sources(t, group.with(c.annotations), connection))
			assertOne(t, warnings, c.key, c.want)
		})
	}
}

func TestUnknownAnnotations(t *testing.T) {
	for name, want := range map[string]string{
		"secret-file-fromat.g":     "did you mean conjur.org/secret-file-format.g?",
		"conjur-secret.a.b":        "did you mean conjur.org/conjur-secrets.a.b?",
		"conjur-secrets":           "did you mean conjur.org/conjur-secrets.{group}?",
		"containermode":            "did you mean conjur.org/container-mode?",
		"secret-refresh-enabled":   "did you mean conjur.org/secrets-refresh-enabled?",
		"log-levels":               "did you mean conjur.org/log-level?",
		"something-else":           "not a setting; ignored",
		"secret-group.x":           "not a setting; ignored",
		"":                         "not a setting; ignored",
		"jaeger-collector-url":     "not available in this version yet",
		"secrets-rotation-refresh": "not a setting; ignored",
	} {
		_, warnings := load(t, sources(t, group.with(dict{"conjur.org/" + name: "SIGHUP"}), connection))
		assertOne(t, warnings, "conjur.org/"+name, want)
	}
	if _, warnings := load(t, sources(t, group.with(dict{"conjur.org/inject-containers": "app", "conjur.org/inject-folder": "/a"}), connection)); len(warnings) > 0 {
		t.Errorf("those of the admission policy are warned of: %q", warnings)
	}
	if _, warnings := load(t, sources(t, group.with(dict{"example.com/container-mode": "y"}), connection)); len(warnings) > 0 {
		t.Errorf("another domain is warned of: %q", warnings)
	}
	_, warnings := load(t, sources(t, group.with(dict{" conjur.org/container-mode": "sidecar"}), connection))
	assertOne(t, warnings, " conjur.org/container-mode", "remove the space")
}

func TestKubernetesIgnoresGroups(t *testing.T) {
	src := sources(t, group.with(dict{"secrets-destination": "k8s_secrets"}), connection.with(dict{"MY_POD_NAMESPACE": "ns"}))
	_, warnings, _ := config.Load(src.Read())
	assertOne(t, warnings, "conjur.org/conjur-secrets.g", "ignored")
}

func TestGroupsOfAllVariables(t *testing.T) {
	for list, want := range map[string][]targets.Entry{
		"*":                   {{Alias: "*", Variable: "root/*", ContentType: targets.ContentText}},
		"- app/*\n- k: other": {{Alias: "*", Variable: "root/app/*", ContentType: targets.ContentText}, {Alias: "k", Variable: "root/other", ContentType: targets.ContentText}},
	} {
		for _, format := range []string{"yaml", "json", "java-properties", "template"} {
			annotations := group.with(dict{
				"conjur-secrets.g": list, "conjur-secrets-policy-path.g": "root/", "secret-file-format.g": format,
				"secret-file-template.g": "{{ range .SecretsArray }}{{ .Alias }}{{ end }}",
			})
			if format != "template" {
				delete(annotations, "secret-file-template.g")
			}
			cfg, warnings := load(t, sources(t, annotations, connection))
			if len(cfg.Targets) != 1 || !slices.Equal(cfg.Targets[0].Entries, want) || len(warnings) > 0 {
				t.Errorf("%q as %s: %+v, warnings %v", list, format, cfg.Targets, warnings)
			}
		}
	}
}

func TestUnknownDestinationCausesNoFurtherProblem(t *testing.T) {
	assertOne(t, problems(t, sources(t, nil, connection.with(dict{"SECRETS_DESTINATION": "k8s_secret"}))), "SECRETS_DESTINATION", "is not a destination")
	assertOne(t, problems(t, sources(t, nil, connection.with(dict{"SECRETS_DESTINATION": "file"}))), "SECRETS_DESTINATION", "only be set by the annotation")
	assertOne(t, problems(t, sources(t, nil, connection)), "conjur.org/secrets-destination", "not set")
}
