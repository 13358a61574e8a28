package render

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func allVariables(format targets.Format) *targets.Target {
	return &targets.Target{Group: "g", Format: format, Entries: []targets.Entry{
		{Alias: "*", Variable: "p/*"}, {Alias: "named", Variable: "q/named"},
	}}
}

// The ids of variables are paths, which only some formats can have for keys.
func TestFormatsForAllVariables(t *testing.T) {
	fine := map[targets.Format]bool{
		targets.FormatYAML: true, targets.FormatJSON: true, targets.FormatTemplate: true, targets.FormatJavaProperties: true,
	}
	for _, format := range allFormats() {
		err := Check(allVariables(format), `{{ secret "named" }}`)
		if fine[format] {
			if err != nil {
				t.Errorf("%s: %v", format, err)
			}
			continue
		}
		for _, want := range []string{`alias "*"`, string(format), "use format yaml"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", format, err, want)
			}
		}
	}
}

func TestTemplatesOverAllVariables(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`{{ range .SecretsArray }}{{ .Alias }}={{ .Value | b64enc }}{{ "\n" }}{{ end }}`, ""},
		{`{{ range .SecretsArray }}{{ secret .Alias }}{{ end }}`, ""},
		{`{{ range $alias, $s := .SecretsMap }}{{ $alias }}={{ $s.Value }}{{ end }}`, ""},
		{`{{ secret "named" }}`, ""},
		{`{{ (index .SecretsMap "p/a").Value }}`, ""}, // there may be one
		{`{{ .SecretsMap.top.Value }}`, ""},
		{`{{ index .SecretsArray 5 }}`, ""},
		{`{{ fromJson (index .SecretsArray 0).Value }}`, ""},
		{`{{ secret "p/a" }}`, `template: g:1:3: the group has no alias "p/a", in {{ secret "p/a" }}; with "*" an alias may be missing`},
		{`{{ range .SecretsArray }}{{ secret "p/a" }}{{ end }}`, `no alias "p/a"`},
		{`{{ range 3000000000 }}{{ end }}`, `does not end`},
		{`{{ template "x" }}`, `"x" is not defined`},
		{`{{ b64enc }}`, `wrong number of arguments`},
		{`{{ secret`, `template: g:1`},
	} {
		err := Check(allVariables(targets.FormatTemplate), c.template)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.template, err, c.want)
		}
	}
}

// A loop over all variables is gone through, also when no entry has a name.
func TestLoopsOverAllVariablesAreChecked(t *testing.T) {
	target := allVariables(targets.FormatTemplate)
	target.Entries = target.Entries[:1]
	if err := Check(target, `{{ range .SecretsArray }}{{ secret "p/a" }}{{ end }}`); err == nil || !strings.Contains(err.Error(), `no alias "p/a"`) {
		t.Errorf("Check = %v", err)
	}
}

func TestCheckAlias(t *testing.T) {
	if err := CheckAlias(targets.FormatYAML, `a/"b"`); err != nil {
		t.Error(err)
	}
	if err := CheckAlias(targets.FormatJSON, `a/"b"`); err == nil || !strings.Contains(err.Error(), "a quote") {
		t.Errorf("JSON with a quote in its key: %v", err)
	}
	if err := CheckAlias("xml", "a"); err == nil {
		t.Error("there is no format xml")
	}
}
