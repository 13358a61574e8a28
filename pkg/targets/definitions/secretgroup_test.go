package definitions

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// groupOf are the annotations of the group cfg.
func groupOf(secrets string, more ...string) map[string]string {
	annotations := map[string]string{groupSecrets + "cfg": secrets}
	for i := 0; i < len(more); i += 2 {
		annotations[more[i]+"cfg"] = more[i+1]
	}
	return annotations
}

func TestParseSecretGroups(t *testing.T) {
	const text = `{{ secret "u" }}`
	inline := targets.Template{Inline: text}
	one := []targets.Entry{{Alias: "u", Variable: "p/a", ContentType: targets.ContentText}}
	for _, c := range []struct {
		name        string
		annotations map[string]string
		want        targets.Target
	}{
		{"a template", groupOf("- u: p/a", groupTemplate, text), targets.Target{Entries: one, Format: targets.FormatTemplate, Template: inline}},
		{"both", groupOf("- u: p/a", groupTemplate, text, groupFormat, "template"), targets.Target{Entries: one, Format: targets.FormatTemplate, Template: inline}},
		{"a format", groupOf("- u: p/a", groupFormat, "java-properties"), targets.Target{Entries: one, Format: targets.FormatJavaProperties}},
		{"readers", groupOf("- u: p/a", groupFormat, "dotenv", groupReaders, "node,\n compose"), targets.Target{Entries: one, Format: targets.FormatDotenv, DotenvReaders: []string{"node", "compose"}}},
		{"a policy path", groupOf("- u: a", groupFormat, "yaml", groupPolicyPath, "/p/"), targets.Target{Entries: one, Format: targets.FormatYAML}},
		{"base64", groupOf("- u: p/a\n  content-type: base64", groupFormat, "json"),
			targets.Target{Entries: []targets.Entry{{Alias: "u", Variable: "p/a", ContentType: targets.ContentBase64}}, Format: targets.FormatJSON}},
		{"all", groupOf("*", groupTemplate, text), targets.Target{Entries: []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentText}}, Format: targets.FormatTemplate, Template: inline}},
		{"all of a policy", groupOf("*", groupFormat, "json", groupPolicyPath, "p"), targets.Target{Entries: []targets.Entry{{Alias: "*", Variable: "p/*", ContentType: targets.ContentText}}, Format: targets.FormatJSON}},
		{"a full id", groupOf("- u: acct:variable:p/a", groupFormat, "json"), targets.Target{Entries: one, Format: targets.FormatJSON}},
	} {
		c.want.Group = "cfg"
		got := parseSecret("ns", c.annotations, "", false, "acct")
		if len(got.faults) > 0 || len(got.warnings) > 0 || len(got.groups) != 1 || !reflect.DeepEqual(*got.groups[0], c.want) {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
}

func TestParseSecretWarns(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		groups      int
		want        string
	}{
		{groupOf("- u: p/a"), 0, "conjur.org/conjur-secrets.cfg: the group is skipped"},
		{groupOf("- u: p/a/"), 0, "the group is skipped"}, // and what is wrong with it does not count
		{groupOf("- u: p/a", groupTemplate, "x", groupFormat, "json"), 1, "conjur.org/secret-file-template.cfg: not used by the format json"},
		{groupOf("- u: p/a", groupTemplate, "x", groupPath, "a"), 1, "conjur.org/secret-file-path.cfg: ignored"},
		{groupOf("- u: p/a", groupTemplate, "x", groupPermissions, "a"), 1, "conjur.org/secret-file-permissions.cfg: ignored"},
		{groupOf("- u: p/a\n  content-type: gzip", groupTemplate, "x"), 1, `conjur.org/conjur-secrets.cfg: line 1: "gzip" is not a content-type`},
		{map[string]string{groupTemplate + "cfg": "x"}, 0, `conjur.org/secret-file-template.cfg: there is no group "cfg"`},
	} {
		got := parseSecret("ns", c.annotations, "", false, "")
		if len(got.faults) > 0 || len(got.groups) != c.groups || len(got.warnings) != 1 || !strings.Contains(got.warnings[0].String(), c.want) {
			t.Errorf("%v: %+v; want %d groups and the warning %q", c.annotations, got, c.groups, c.want)
		}
	}
}

// Every fault is told, in one order, and the good parts are there.
func TestParseSecretTellsAllErrors(t *testing.T) {
	annotations := map[string]string{"example.org/other": "x"}
	for group, secrets := range map[string]string{
		"": "- a", "B": "- a", "a b": "- a", "conjur-map": "- a", "empty": "", "good": "- a", "many": "- a/\n- b/",
	} {
		annotations[groupSecrets+group], annotations[groupTemplate+group] = secrets, "x"
	}
	annotations[groupSecrets+"dir"], annotations[groupFormat+"dir"] = "- a", "directory"
	annotations[groupSecrets+"env"], annotations[groupFormat+"env"], annotations[groupReaders+"env"] = "- a", "dotenv", "denv"
	annotations[groupSecrets+"toml"], annotations[groupFormat+"toml"] = "- a", "toml"
	annotations[groupSecrets+"tpl"], annotations[groupFormat+"tpl"] = "- a", "template"
	want := []string{
		`conjur-map: line 2: the variable of "C" must be text, not "true"; put quotes around it`,
		`conjur-map: line 3: the data key "D" has no variable`,
		`conjur.org/conjur-secrets.: the data key "" is empty; give the group another name`,
		`conjur.org/conjur-secrets.B: the data key "B" is also in conjur-map; give one of the two another name`,
		`conjur.org/conjur-secrets.a b: the data key "a b" has characters other than letters, digits, -, _ and .; give the group another name`,
		`conjur.org/conjur-secrets.conjur-map: the data key "conjur-map" is that of the map itself; give the group another name`,
		`conjur.org/secret-file-format.dir: the format directory makes many files, and a data key holds one; use another format, or conjur-map`,
		`conjur.org/conjur-secrets.empty: the list of secrets is empty`,
		`conjur.org/dotenv-readers.env: "denv" is not a reader of dotenv that Syncer knows; use some of godotenv, npm-dotenv, python-dotenv, shell, systemd, node, compose, phpdotenv, symfony, bun, dotenvx, dotenv-expand`,
		`conjur.org/conjur-secrets.many: line 1: the variable "a/" must not end in a slash`,
		`conjur.org/conjur-secrets.many: line 2: the variable "b/" must not end in a slash`,
		`conjur.org/secret-file-format.toml: unknown format "toml"; use one of yaml, json, dotenv, bash, properties, template, java-properties, env-file, kubernetes-env, jwks, jwks-public`,
		`conjur.org/secret-file-format.tpl: the format template needs a template; write it in conjur.org/secret-file-template.tpl, or name a ConfigMap by conjur.org/secret-file-template-configmap.tpl`,
	}
	got := parseSecret("ns", annotations, "B: p/b\nC: true\nD: ''", true, "")
	told := targets.Texts(got.faults)
	if !slices.Equal(told, want) {
		t.Errorf("the errors are\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if len(got.entries) != 1 || got.entries[0].Alias != "B" || len(got.groups) != 1 || got.groups[0].Group != "good" {
		t.Errorf("content %+v, want B and the group good", got)
	}
}

func TestParseSecretReadsTheMapOnlyWhenThereIsOne(t *testing.T) {
	if got := parseSecret("ns", nil, "A: true", false, ""); len(got.faults) > 0 || len(got.entries) != 0 {
		t.Errorf("%+v; want nothing", got)
	}
}

// A group's key is not taken by one of all variables.
func TestAWildcardLeavesTheKeyOfAGroup(t *testing.T) {
	given := FromSecret(SecretDefinition{
		Namespace: "ns", Name: "s", Annotations: groupOf("*", groupFormat, "json", groupPolicyPath, "p"), Map: "'*': '*'\nX: q/x", HasMap: true,
	})
	got := given.Expand([]string{"p/b", "cfg", "p/a", "p b", "p.b"})
	want := []targets.Entry{{Alias: "p.b", Variable: "p b", ContentType: targets.ContentText}, {Alias: "p.a", Variable: "p/a", ContentType: targets.ContentText}, {Alias: "X", Variable: "q/x", ContentType: targets.ContentText}}
	if !reflect.DeepEqual(got.Entries, want) {
		t.Errorf("entries %v, want %v", got.Entries, want)
	}
	if all := got.Secret.Groups[0].Entries; !reflect.DeepEqual(all, []targets.Entry{{Alias: "p/a", Variable: "p/a", ContentType: targets.ContentText}, {Alias: "p/b", Variable: "p/b", ContentType: targets.ContentText}}) {
		t.Errorf("the group has %v", all)
	}
	if warnings := got.Secret.LeftOut; len(warnings) != 3 || !strings.HasPrefix(warnings[2], `conjur-map: variable "cfg" is left out: the group`) {
		t.Errorf("warnings %q, want one each about p.b, p/b and cfg", warnings)
	}
	if len(given.Entries) != 2 || !given.Secret.Groups[0].Wildcard() {
		t.Error("the target itself was changed")
	}
}

// What the Secrets Provider makes of a conjur-map of each form; the keys in
// order, "" for an error.
func TestParseSecretMapForms(t *testing.T) {
	for text, want := range map[string]string{
		"A:\n  id: p/a": "A=p/a",
		"A:\n  id: p/enc\n  content-type: base64": "A=p/enc:base64",
		"A:\n  id: p/enc\n  content-type: ''":     "A=p/enc",
		"A:\n  id: ''":                            "",
		"A:\n  content-type: text":                "",
		"A:\n  id: p/a\n  other: x":               "A=p/a",
		"A: true":                                 "",
		"A:":                                      "",
		"1: p/a":                                  "1=p/a",
		"A: |-\n  p/a":                            "A=p/a",
		"A: p/a\nB: p/a":                          "A=p/a B=p/a",
		"p/a":                                     "",
		"'*': p/a":                                "p.a=p/a",
		"A: p/with space\nB: {id: p/plus+amp&}":   "A=p/with space B=p/plus+amp&",
		`{"A": "p/a", "B": {"id": "p/b"}}`:        "A=p/a B=p/b",
		"A: {content-type: base64, id: p/b}\nB: c": "A=p/b:base64 B=c",
	} {
		got := parseSecret("ns", nil, text, true, "")
		var forms []string
		for _, e := range got.entries {
			forms = append(forms, strings.TrimSuffix(e.Alias+"="+e.Variable+":"+string(e.ContentType), ":text"))
		}
		if strings.Join(forms, " ") != want || (len(got.faults) > 0) != (want == "") {
			t.Errorf("%q: %q, %q; want %q", text, forms, got.faults, want)
		}
	}
}
