package render

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// fuzzFormat fuzzes a format's escapes: two values survive beside each other
// in a file, unless the format may refuse one.
func fuzzFormat(f *testing.F, format targets.Format, refuse func(string) bool, read reader) {
	for _, value := range []string{"", "plain", "it's \"q\"\\", "$(id)`id`$HOME${X}\\$Y", "a\r\nb\n", "\x00\x01\x7f\x1b", "\xff\xc3'", "\u2028\u0085\ufeff\U000e0001🔑", " #=:! ", "a\nb\\", "'x'\"", "{{ x }}"} {
		f.Add(value, "z")
		f.Add("'", value)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		want := map[string]string{"k0": first, "k1": second}
		var pairs []string
		for _, alias := range []string{"k0", "k1"} {
			target, items := target(format, alias, want[alias])
			if _, err := Render(target, "", items); err != nil {
				checkRefusal(t, format, alias, want[alias], refuse, err)
				delete(want, alias)
				continue
			}
			pairs = append(pairs, alias, want[alias])
		}
		if len(want) == 0 {
			return
		}
		got := read(t, []byte(file(t, format, "", pairs...)))
		for alias, value := range want {
			if got[alias] != value {
				t.Errorf("%s reads %q as %q", format, value, got[alias])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s reads %q, want %q", format, got, want)
		}
	})
}

func FuzzYAML(f *testing.F)   { fuzzFormat(f, targets.FormatYAML, notUTF8, readYAML) }
func FuzzJSON(f *testing.F)   { fuzzFormat(f, targets.FormatJSON, notUTF8, readJSON) }
func FuzzDotenv(f *testing.F) { fuzzFormat(f, targets.FormatDotenv, refusedByDotenv, readDotenv) }
func FuzzBash(f *testing.F)   { fuzzFormat(f, targets.FormatBash, withNUL, readShell("sh", "C")) }
func FuzzProperties(f *testing.F) {
	fuzzFormat(f, targets.FormatProperties, notUTF8, readQuotedProperties)
}
func FuzzJavaProperties(f *testing.F) {
	fuzzFormat(f, targets.FormatJavaProperties, notUTF8, readProperties)
}
func FuzzEnvFile(f *testing.F) { fuzzFormat(f, targets.FormatEnvFile, refusedByEnvFile, readEnvFile) }

// FuzzTemplate runs any template: it ends, gives the same each time, and no
// error shows a value.
func FuzzTemplate(f *testing.F) {
	for _, text := range hostileTemplates {
		f.Add(text)
	}
	for _, c := range runaways {
		if len(c.template) < 1000 && c.want != endless { // an endless one takes a second
			f.Add(c.template)
		}
	}
	for _, text := range []string{
		`{{ range .SecretsArray }}{{ .Alias }}={{ .Value | quote }}{{ end }}`,
		`{{ define "a" }}{{ . }}{{ end }}{{ with .SecretsMap.c }}{{ template "a" .Value }}{{ end }}`,
		`{{ $d := dict "a" (list 1 2) }}{{ toPrettyJson (merge $d (fromJson "{}")) }}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "CANARY") || strings.Contains(text, numberCanary[:6]) {
			return
		}
		target, items := target(targets.FormatTemplate, "c", canary, "n", numberCanary)
		result, err := Render(target, text, items)
		if err != nil && (strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), numberCanary[:6])) {
			t.Errorf("the error shows a value: %v", err)
		}
		if err != nil {
			return
		}
		if strings.Contains(string(result.Parts[""].Bytes()), "<no value>") && !strings.Contains(text, "no value") {
			t.Errorf("a value that is not there is printed: %q", result.Parts[""].Bytes())
		}
		again, err := Render(target, text, items)
		if err != nil || !again.Parts[""].Equal(result.Parts[""]) {
			t.Errorf("another run gives %q, %v and not %q", again.Parts[""].Bytes(), err, result.Parts[""].Bytes())
		}
	})
}
