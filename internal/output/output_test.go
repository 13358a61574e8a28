package output_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
	oldyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/internal/output"
)

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestForms(t *testing.T) {
	value := struct {
		B []any  `json:"b"`
		A string `json:"a"`
	}{[]any{map[string]any{"c": []any{}}, "y"}, "<é>"}
	for format, want := range map[output.Format]string{
		output.JSON: "{\n  \"b\": [\n    {\n      \"c\": []\n    },\n    \"y\"\n  ],\n  \"a\": \"<é>\"\n}\n",
		output.YAML: "b:\n  - c: []\n  - \"y\"\na: <é>\n", output.Text: "b:\n  - c: []\n  - \"y\"\na: <é>\n",
	} {
		var out bytes.Buffer
		if err := format.Write(&out, value); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q", format, err, out.String())
		}
		if format.Write(&out, func() {}) == nil || format.Write(broken{}, value) == nil {
			t.Errorf("%s: what cannot be written is no error", format)
		}
		if format.ForPrograms() != (format != output.Text) {
			t.Errorf("%s is for programs: %t", format, format.ForPrograms())
		}
	}
}

// TestYAML wants of each text that readers of YAML 1.2 and of YAML 1.1,
// such as kubectl, get it back.
func TestYAML(t *testing.T) {
	want := map[string]any{"empty": []any{}, "texts": []any{
		"", "plain", "y", "No", "on", "yes", "null", "~", "7", "0644", "1e3", "0x1", "true", "a: b", "- a", "*", "&x", "!t", `"q"`, "'s'", "a #b",
		" a ", "a\nb\n", "a\tb", "\x7f", "\u0085", "\u2028", "\ufeff", "\uffff", "ä", "🔑", "<<", "{a}", "[b]", "%x", "@y", "`z", "|", ">", "?", "---", "...", "2020-01-01",
	}}
	var out bytes.Buffer
	if err := output.YAML.Write(&out, want); err != nil {
		t.Fatal(err)
	}
	for version, unmarshal := range map[string]func([]byte, any) error{
		"1.2": yaml.Unmarshal,
		"1.1": func(text []byte, v any) error { return oldyaml.Unmarshal(text, v) },
	} {
		var got map[string]any
		if err := unmarshal(out.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("YAML %s: %v, got %q\nof %s", version, err, got, out.String())
		}
	}
}
