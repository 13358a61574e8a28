package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// target makes a target, and its items, of pairs of alias and value.
func target(format targets.Format, pairs ...string) (*targets.Target, []Item) {
	t := &targets.Target{Group: "g", Format: format}
	var items []Item
	for i := 0; i < len(pairs); i += 2 {
		t.Entries = append(t.Entries, targets.Entry{Alias: pairs[i], Variable: "v", ContentType: targets.ContentText})
		items = append(items, Item{Alias: pairs[i], Value: secret.New([]byte(pairs[i+1]))})
	}
	return t, items
}

// file renders pairs of alias and value into a single file.
func file(t *testing.T, format targets.Format, template string, pairs ...string) string {
	t.Helper()
	target, items := target(format, pairs...)
	result, err := Render(target, template, items)
	if err != nil {
		t.Fatalf("Render as %s: %v", format, err)
	}
	if len(result.Parts) != 1 {
		t.Fatalf("Render as %s gives %d parts, want 1", format, len(result.Parts))
	}
	return string(result.Parts[""].Bytes())
}

// The shape of each format, as the Secrets Provider has it.
func TestShape(t *testing.T) {
	for _, c := range []struct {
		format     targets.Format
		none, some string
	}{
		{targets.FormatYAML, "", "\"key3\": \"v3\"\n\"key1\": \"v1\""},
		{targets.FormatJSON, "{}", `{"key3":"v3","key1":"v1"}`},
		{targets.FormatDotenv, "", "key3=\"v3\"\nkey1=\"v1\""},
		{targets.FormatBash, "", "export key3=\"v3\"\nexport key1=\"v1\""},
		{targets.FormatProperties, "", "key3=\"v3\"\nkey1=\"v1\""},
		{targets.FormatJavaProperties, "", "key3=v3\nkey1=v1"},
		{targets.FormatEnvFile, "", "key3=v3\nkey1=v1"},
		{targets.FormatKubernetesEnv, "", "key1='v1'\nkey3='v3'"},
		{targets.FormatTemplate, "[]", "[key3=v3;key1=v1;]"},
	} {
		template := "[{{ range .SecretsArray }}{{ .Alias }}={{ .Value }};{{ end }}]"
		if got := file(t, c.format, template); got != c.none {
			t.Errorf("%s of no entries = %q, want %q", c.format, got, c.none)
		}
		if got := file(t, c.format, template, "key3", "v3", "key1", "v1"); got != c.some {
			t.Errorf("%s = %q, want %q", c.format, got, c.some)
		}
	}
}

func TestDirectory(t *testing.T) {
	target, items := target(targets.FormatDirectory, "a", "1", "tls.key", "\x00\xff\n")
	result, err := Render(target, "", items)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if !result.Parts[item.Alias].Equal(item.Value) {
			t.Errorf("part %q differs from the value", item.Alias)
		}
	}
	if len(result.Parts) != 2 {
		t.Errorf("%d parts, want 2", len(result.Parts))
	}
}

func TestRenderReportsAllAtOnce(t *testing.T) {
	target, items := target(targets.FormatBash, "a", "one\x00canary", "b", "fine", "c", "two\x00canary")
	result, err := Render(target, "", items)
	if err == nil || result.Parts != nil {
		t.Fatalf("Render = %v, %v; want no parts and an error", result, err)
	}
	for _, want := range []string{"format bash", `alias "a"`, `alias "c"`, "use format json"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error has a value: %v", err)
	}
}

func TestRenderRefuses(t *testing.T) {
	two, twoItems := target(targets.FormatYAML, "a", "1", "b", "2")
	twice, twiceItems := target(targets.FormatYAML, "a", "1", "a", "2")
	unknown, _ := target("txt")
	other, _ := target(targets.FormatYAML, "a", "1", "c", "2")
	for _, c := range []struct {
		name   string
		target *targets.Target
		items  []Item
		want   string
	}{
		{"too few items", two, twoItems[:1], "1 values for 2 entries"},
		{"other aliases", other, twoItems, `alias "b" where one for "c"`},
		{"an alias twice", twice, twiceItems, `alias "a" occurs more than once`},
		{"an unknown format", unknown, nil, `unknown format "txt"; use one of yaml, json`},
	} {
		_, err := Render(c.target, "", c.items)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestRenderKeepsItems(t *testing.T) {
	for _, format := range allFormats() {
		target, items := target(format, "a", "c2VjcmV0", "b", "b$x\\z")
		target.Entries[0].ContentType = targets.ContentBase64
		result, err := Render(target, `{{ secret "a" }}`, items)
		if err != nil {
			t.Fatal(format, err)
		}
		for _, part := range result.Parts {
			part.Wipe()
		}
		if !bytes.Equal(items[0].Value.Bytes(), []byte("c2VjcmV0")) || !bytes.Equal(items[1].Value.Bytes(), []byte("b$x\\z")) {
			t.Errorf("%s: rendering or wiping the result changed the items", format)
		}
	}
}

func allFormats() []targets.Format {
	return []targets.Format{
		targets.FormatYAML, targets.FormatJSON, targets.FormatDotenv, targets.FormatBash, targets.FormatProperties,
		targets.FormatTemplate, targets.FormatJavaProperties, targets.FormatEnvFile, targets.FormatKubernetesEnv, targets.FormatDirectory,
	}
}

func TestCheck(t *testing.T) {
	for _, format := range allFormats() {
		target, _ := target(format, "a", "", "b", "")
		if err := Check(target, `{{ secret "a" }}`); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
	faulty, _ := target(targets.FormatBash, "a-b", "", "fine", "", "c.d", "")
	err := Check(faulty, "")
	for _, want := range []string{`alias "a-b"`, `alias "c.d"`, "format bash"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want an error with %q", err, want)
		}
	}
}
