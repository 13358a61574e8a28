package main

import (
	"strings"
	"testing"
)

// TestRenderOfAllVariablesLeavesOutWhatDoesNotFit wants what run delivers: one
// odd variable holds up no other, unless an entry asks for it.
func TestRenderOfAllVariablesLeavesOutWhatDoesNotFit(t *testing.T) {
	const named, quoted = `- "*"\n- app/bin: app/bin`, `"app/\"": "canary", `
	for name, c := range map[string]struct {
		secrets, values string
		want            string // of standard output
		says            []string
	}{
		"all fit": {"*", `{"app/a": "1"}`, `{"app/a":"1"}`, nil},
		"two that do not": {"*", `{` + quoted + `"app/a": "1", "app/bin": {"base64": "/2NhbmFyeQ=="}}`, `{"app/a":"1"}`, []string{
			`warning: file/g: variable "app/\"" is left out: its id cannot be a key of format json`,
			`warning: file/g: variable "app/bin" is left out: format json cannot hold the value`}},
		"an entry asks for it": {named, `{"app/a": "1", "app/bin": {"base64": "/2NhbmFyeQ=="}}`, "", []string{`alias "app/bin"`}},
		"none fits":            {"*", `{` + strings.TrimSuffix(quoted, ", ") + `}`, "", []string{`file/g: variable "app/\"": its id cannot be a key of format json`}},
	} {
		dir := files(t, "values.json", c.values, "annotations",
			"conjur.org/secrets-destination=\"file\"\nconjur.org/secret-file-format.g=\"json\"\nconjur.org/conjur-secrets.g=\""+strings.ReplaceAll(c.secrets, `"`, `\"`)+"\"\n")
		out, errs, status := runTool(t, "", "render", "--annotations", dir+"/annotations", "--values", dir+"/values.json", "--group", "g")
		if out != c.want || (status == 0) != (c.want != "") || strings.Contains(errs, "canary") || len(c.says) == 0 && errs != "" {
			t.Errorf("%s: status %d, %q and %q, want %q", name, status, out, errs, c.want)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q does not tell %q", name, errs, want)
			}
		}
	}
}

func TestRenderOfAllVariablesInASecretLeavesOutWhatDoesNotFit(t *testing.T) {
	values := files(t, "values.json", `{"app/a": "1", "app/bin": {"base64": "/w=="}}`) + "/values.json"
	const secret = `{kind: Secret, metadata: {name: s, annotations: {conjur.org/conjur-secrets.g: "*", conjur.org/secret-file-format.g: yaml}}}`
	out, errs, status := runTool(t, secret, "render", "-f", "-", "--values", values, "--output", "json")
	if status != 0 || !strings.Contains(out, `"g": "ImFwcC9hIjogIjEi"`) || !strings.HasPrefix(errs, `warning: Secret/s: g: variable "app/bin" is left out: `) {
		t.Errorf("status %d, %q and\n%s", status, errs, out)
	}
}
