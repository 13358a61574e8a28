package output_test

import (
	"bytes"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
	oldyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/internal/output"
)

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
