package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type entryJSON struct{ Alias, Variable, ContentType string }

// effectiveJSON is the part of config's output that others rely on.
type effectiveJSON struct {
	ContainerMode, SecretsDestination string
	Refresh                           struct {
		Enabled  bool
		Interval string
	}
	Retry struct {
		Limit    int
		Interval string
	}
	RemoveDeletedSecrets, ExitOnRevoked bool
	Removal                             map[string]any
	RestoreDeletedFiles                 string
	Health                              map[string]any
	Log                                 struct{ Level, Format string }
	Conjur                              map[string]string
	Kubernetes                          map[string]any
	Folders                             struct{ Secrets, Templates, Status string }
	Targets                             []struct {
		Key, Group, Path, Mode, Format, Template string
		Entries                                  []entryJSON
	}
}

// TestProcessConfig holds config against the facts of the Secrets Provider's
// secret groups and settings.
func TestProcessConfig(t *testing.T) {
	t.Parallel()
	plain := []entryJSON{{"k", "a/b", "text"}}
	for name, c := range map[string]struct {
		annotations      map[string]string
		path, mode, form string
		entries          []entryJSON
	}{
		"the default":         {nil, "g.yaml", "0644", "yaml", plain},
		"properties":          {map[string]string{"secret-file-format.g": "properties"}, "g.properties", "0644", "properties", plain},
		"a template":          {map[string]string{"secret-file-format.g": "template", "secret-file-template.g": "x"}, "g.out", "0644", "template", plain},
		"a dot and a slash":   {map[string]string{"secret-file-path.g": "./creds.yaml"}, "creds.yaml", "0644", "yaml", plain},
		"a folder":            {map[string]string{"secret-file-path.g": "./"}, "g.yaml", "0644", "yaml", plain},
		"permissions":         {map[string]string{"secret-file-permissions.g": "-rw-r-----"}, "g.yaml", "0640", "yaml", plain},
		"a policy path":       {map[string]string{"conjur-secrets-policy-path.g": "/root", "conjur-secrets.g": "- b"}, "g.yaml", "0644", "yaml", []entryJSON{{"b", "root/b", "text"}}},
		"a slash for a path":  {map[string]string{"conjur-secrets-policy-path.g": "/", "conjur-secrets.g": "- b"}, "g.yaml", "0644", "yaml", []entryJSON{{"b", "b", "text"}}},
		"a leading slash":     {map[string]string{"conjur-secrets.g": "- /a/b"}, "g.yaml", "0644", "yaml", []entryJSON{{"b", "/a/b", "text"}}},
		"a number":            {map[string]string{"conjur-secrets.g": "- 123\n"}, "g.yaml", "0644", "yaml", []entryJSON{{"123", "123", "text"}}},
		"a Boolean":           {map[string]string{"conjur-secrets.g": "- true\n"}, "g.yaml", "0644", "yaml", []entryJSON{{"true", "true", "text"}}},
		"spaces in an alias":  {map[string]string{"conjur-secrets.g": "- \"my key\": a/b\n"}, "g.yaml", "0644", "yaml", []entryJSON{{"my key", "a/b", "text"}}},
		"a flow list":         {map[string]string{"conjur-secrets.g": "[a/b, {k: c/d}]"}, "g.yaml", "0644", "yaml", []entryJSON{{"b", "a/b", "text"}, {"k", "c/d", "text"}}},
		"base64":              {map[string]string{"conjur-secrets.g": "- k: a/b\n  content-type: base64\n"}, "g.yaml", "0644", "yaml", []entryJSON{{"k", "a/b", "base64"}}},
		"all":                 {map[string]string{"conjur-secrets.g": "*"}, "g.yaml", "0644", "yaml", []entryJSON{{"*", "*", "text"}}},
		"order is kept":       {map[string]string{"conjur-secrets.g": "- z\n- a"}, "g.yaml", "0644", "yaml", []entryJSON{{"z", "z", "text"}, {"a", "a", "text"}}},
		"a folder of entries": {map[string]string{"secret-file-format.g": "directory"}, "g", "0644", "directory", plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{"conjur-secrets.g": "- k: a/b"}
			for key, value := range c.annotations {
				annotations[key] = value
			}
			out, errs, status := toolProcess(t, nil, append([]string{"config", "--output", "json"}, annotatedWith(t, annotations)...)...)
			var got effectiveJSON
			decodeAll(t, out, &got)
			if status != 0 || errs != "" || len(got.Targets) != 1 {
				t.Fatalf("status %d, %q, %s", status, errs, out)
			}
			target := got.Targets[0]
			if target.Path != "/conjur/secrets/"+c.path || target.Mode != c.mode || target.Format != c.form || !slices.Equal(target.Entries, c.entries) {
				t.Errorf("got %+v", target)
			}
		})
	}
}

func TestProcessConfigTakesTheEnvironment(t *testing.T) {
	t.Parallel()
	args := annotatedWith(t, map[string]string{"conjur-secrets.cm": "- k: a/b", "secret-file-format.cm": "template", "retry-interval-sec": "3"})
	env := []string{"RETRY_COUNT_LIMIT=7", "RETRY_INTERVAL_SEC=9", "LOG_LEVEL=warn", "CONJUR_ACCOUNT=acct", "CONJUR_AUTHN_API_KEY=canary-key", "CONJUR_SSL_CERTIFICATE=x"}
	out, errs, status := toolProcess(t, env[:5], append([]string{"config", "--output", "json"}, args...)...)
	var got effectiveJSON
	decodeAll(t, out, &got)
	if status != 0 || got.Retry.Limit != 7 || got.Retry.Interval != "3s" || got.Log.Level != "warn" || got.Conjur["account"] != "acct" {
		t.Errorf("status %d, got %+v", status, got)
	}
	if !strings.HasSuffix(got.Targets[0].Template, "/templates/cm.tpl") {
		t.Errorf("template %q", got.Targets[0].Template)
	}
	text, more, status := toolProcess(t, env[:5], append([]string{"config"}, args...)...)
	var node map[string]any
	if err := yaml.Unmarshal([]byte(text), &node); err != nil || status != 0 || !strings.Contains(text, "mode: \"0644\"\n") {
		t.Errorf("status %d, %v in\n%s", status, err, text)
	}
	if strings.Index(text, "containerMode") > strings.Index(text, "targets:") {
		t.Errorf("the order of the fields is lost:\n%s", text)
	}
	if strings.Contains(out+errs+text+more, "canary") {
		t.Error("the API key is shown")
	}
	if out, errs, status := toolProcess(t, env, append([]string{"config", "--output", "json"}, args...)...); out != "" || status != 1 || !strings.Contains(errs, "CONJUR_SSL_CERTIFICATE") {
		t.Errorf("with a bad certificate: status %d, %q and %q", status, out, errs)
	}
}

// TestProcessConfigOfAFileAlone has no annotations where a Pod would have them.
func TestProcessConfigOfAFileAlone(t *testing.T) {
	t.Parallel()
	dir := files(t, "syncer.yaml", "secretsDestination: file\ntargets: [{name: g, secrets: [{k: a/b}]}]\n")
	out, errs, status := toolProcess(t, []string{"SYNCER_CONFIG=" + dir + "/syncer.yaml"}, "config", "--output", "json")
	var got effectiveJSON
	decodeAll(t, out, &got)
	if status != 0 || errs != "" || len(got.Targets) != 1 || got.Targets[0].Key != "file/g" {
		t.Errorf("status %d, %q, %s", status, errs, out)
	}
}

// TestProcessRender holds render against what the Secrets Provider writes for
// plain values, in each of its formats.
func TestProcessRender(t *testing.T) {
	t.Parallel()
	const values = `{"v1": "v1", "v2": "v2", "user": "admin", "pass": "p\"a$s<&>", "b64": "c2VjcmV0IHZhbHVl", "bytes": {"base64": "3q2+7wA="}, "empty": ""}`
	for name, c := range map[string]struct{ entries, format, template, want string }{
		"yaml":                 {"- key2: v2\n- key1: v1", "yaml", "", "\"key2\": \"v2\"\n\"key1\": \"v1\""},
		"json":                 {"- key2: v2\n- key1: v1", "json", "", `{"key2":"v2","key1":"v1"}`},
		"dotenv":               {"- key2: v2\n- key1: v1", "dotenv", "", "key2=\"v2\"\nkey1=\"v1\""},
		"properties":           {"- key.2: v2\n- key1: v1", "properties", "", "key.2=\"v2\"\nkey1=\"v1\""},
		"bash":                 {"- key2: v2\n- key1: v1", "bash", "", "export key2=\"v2\"\nexport key1=\"v1\""},
		"one":                  {"- key1: v1", "dotenv", "", `key1="v1"`},
		"empty":                {"- key1: empty", "yaml", "", `"key1": ""`},
		"java-properties":      {"- key1: v1", "java-properties", "", "key1=v1"},
		"env-file":             {"- key1: pass", "env-file", "", `key1=p"a$s<&>`},
		"base64":               {"- key1: b64\n  content-type: base64", "yaml", "", `"key1": "secret value"`},
		"bytes in a template":  {"- k: bytes", "template", `{{ secret "k" }}`, "\xde\xad\xbe\xef\x00"},
		"b64dec":               {"- b64", "template", `{{ secret "b64" | b64dec }}`, "secret value"},
		"js":                   {"- pass", "template", `{{ secret "pass" | js }}`, `p\"a$s\u003C\u0026\u003E`},
		"printf":               {"- pass", "template", `{{ printf "%q" (secret "pass") }}`, `"p\"a$s<&>"`},
		"if":                   {"- user", "template", `{{ if eq (secret "user") "admin" }}yes{{ else }}no{{ end }}`, "yes"},
		"only text":            {"- user", "template", "static\n", "static\n"},
		"all in a template":    {"- user\n- v1", "template", "{{range .SecretsArray}}{{ .Alias }}={{ .Value | b64enc }}\n{{end}}", "user=YWRtaW4=\nv1=djE=\n"},
		"a field of the map":   {"- user", "template", "{{ .SecretsMap.user.Value }}", "admin"},
		"a file of a template": {"- k: user", "file", "", "file:admin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, annotations := "g", map[string]string{"conjur-secrets.g": c.entries, "secret-file-format.g": c.format, "secret-file-template.g": c.template}
			if c.format == "file" {
				group, annotations = "cm", map[string]string{"conjur-secrets.cm": c.entries, "secret-file-format.cm": "template"}
			}
			dir := files(t, "values.json", values)
			out, errs, status := toolProcess(t, nil, append([]string{"render", "--values", dir + "/values.json", "--group", group}, annotatedWith(t, annotations)...)...)
			if out != c.want || errs != "" || status != 0 {
				t.Errorf("status %d, %q, got %q", status, errs, out)
			}
		})
	}
}

// TestProcessRenderShowsNoValue wants errors without a byte of the values, and
// nothing on standard output.
func TestProcessRenderShowsNoValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ values, format, template, says string }{
		"no JSON":             {"{\"v\":\n canary}", "yaml", "", "line 2"},
		"no object":           {`["canary"]`, "yaml", "", "object"},
		"no text":             {`{"v": 12345678}`, "yaml", "", "the value of v is neither"},
		"null":                {`{"v": null}`, "yaml", "", "the value of v is neither"},
		"more than base64":    {`{"v": {"base64": "Y2FuYXJ5", "more": "canary"}}`, "yaml", "", "the value of v is neither"},
		"another key":         {`{"v": {"hex": "canary"}}`, "yaml", "", "the value of v is neither"},
		"no base64":           {`{"v": {"base64": "canary!"}}`, "yaml", "", "the value of v is not base64"},
		"twice":               {`{"v": "canary", "v": "canary"}`, "yaml", "", "the value of v is written twice"},
		"half a character":    {`{"v": "canary\ud800"}`, "yaml", "", "surrogate"},
		"not UTF-8":           {"{\"v\": \"canary\xff\"}", "yaml", "", "not UTF-8; write"},
		"not for the format":  {`{"v": {"base64": "Y2FuYXJ5/w=="}}`, "yaml", "", `alias "k"`},
		"not for the filter":  {`{"v": "canary"}`, "template", `{{ secret "k" | b64dec }}`, "template: g:1"},
		"a function too long": {`{"v": "canary"}`, "template", `{{ index (secret "k") 99 }}`, "template: g:1"},
		"missing":             {`{"w": "canary"}`, "yaml", "", "no value for v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := files(t, "values.json", c.values)
			args := annotatedWith(t, map[string]string{"conjur-secrets.g": "- k: v", "secret-file-format.g": c.format, "secret-file-template.g": c.template})
			out, errs, status := toolProcess(t, nil, append([]string{"render", "--values", dir + "/values.json", "--group", "g"}, args...)...)
			if out != "" || status != 1 || !strings.Contains(errs, c.says) {
				t.Errorf("status %d, %q and %q", status, out, errs)
			}
			for _, part := range []string{"canary", "Y2FuYXJ5", "12345678"} {
				if strings.Contains(errs, part) {
					t.Errorf("the value is shown: %q", errs)
				}
			}
		})
	}
}

// TestProcessRenderAndDiffOfAFolder writes a folder of entries, and finds it
// as it was written.
func TestProcessRenderAndDiffOfAFolder(t *testing.T) {
	t.Parallel()
	args := annotatedWith(t, map[string]string{"conjur-secrets.g": "- user\n- pass", "secret-file-format.g": "directory", "secret-file-permissions.g": "rw-------"})
	dir := files(t, "values.json", `{"user": "canary-1", "pass": "canary-2"}`, "new.json", `{"user": "canary-1", "pass": "canary-3"}`)
	shared := append(args, "--values", dir+"/values.json")

	if out, errs, status := toolProcess(t, nil, append([]string{"render", "--group", "g"}, shared...)...); out != "" || status != 1 || !strings.Contains(errs, "--out") {
		t.Errorf("to standard output: status %d, %q and %q", status, out, errs)
	}
	var printed struct {
		Targets []struct {
			Key, Path, Mode, Format string
			Parts                   []struct{ Name, Base64 string }
		}
	}
	out, _, _ := toolProcess(t, nil, append([]string{"render", "--group", "g", "--output", "json"}, shared...)...)
	decodeAll(t, out, &printed)
	if got := printed.Targets; len(got) != 1 || got[0].Mode != "0600" || got[0].Path != "/conjur/secrets/g" || len(got[0].Parts) != 2 ||
		got[0].Parts[1].Name != "user" || got[0].Parts[1].Base64 != "Y2FuYXJ5LTE=" {
		t.Errorf("as JSON: %+v", got)
	}

	out, errs, status := toolProcess(t, nil, append([]string{"render", "--out", dir + "/out", "--output", "json"}, shared...)...)
	printed.Targets = nil
	decodeAll(t, out, &printed)
	if status != 0 || len(printed.Targets) != 1 || printed.Targets[0].Path != dir+"/out/g" || printed.Targets[0].Parts != nil {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	if got, err := os.ReadFile(dir + "/out/g/pass"); err != nil || string(got) != "canary-2" {
		t.Errorf("pass holds %q, %v", got, err)
	}

	diff := []string{"diff", "--secrets-dir", dir + "/out", "--output", "json"}
	if out, errs, status := toolProcess(t, nil, append(diff, shared...)...); status != 0 || !strings.Contains(out, `"unchanged"`) {
		t.Errorf("diff: status %d, %s%s", status, out, errs)
	}
	var differences struct {
		Targets []struct {
			Key, State string
			Aliases    []string
		}
	}
	out, errs, status = toolProcess(t, nil, append(append(diff, args...), "--values", dir+"/new.json")...)
	decodeAll(t, out, &differences)
	if status != 1 || errs != "" || len(differences.Targets) != 1 || !slices.Equal(differences.Targets[0].Aliases, []string{"pass"}) || strings.Contains(out, "canary") {
		t.Errorf("diff: status %d, %s%s", status, out, errs)
	}
}
