package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/targets"
)

// printJSON prints a value as indented JSON, which people can read too.
func (t *Tool) printJSON(v any) error {
	encoder := json.NewEncoder(t.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printYAML prints the JSON form of a value as YAML, in the same order.
func (t *Tool) printYAML(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(escapeJSON(text), &doc); err != nil {
		return fmt.Errorf("as YAML: %w", err)
	}
	blockStyle(&doc)
	encoder := yamlv3.NewEncoder(t.Out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return err
	}
	return encoder.Close()
}

// blockStyle lays out a tree in block style, except empty nodes. Texts such as "yes" keep
// their quotes, because they are Booleans in YAML 1.1.
func blockStyle(node *yamlv3.Node) {
	switch {
	case node.Kind == yamlv3.ScalarNode && node.Tag == "!!str" && len(node.Value) <= len("yes"):
		_ = node.Encode(node.Value) // Encode knows them
	case len(node.Content) > 0 || node.Kind == yamlv3.ScalarNode:
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}

// escapeJSON escapes the characters that a string may contain in JSON but not in YAML.
func escapeJSON(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// renderedTarget is Render's JSON output for one target.
type renderedTarget struct {
	Key    targets.Key    `json:"key"`
	Path   string         `json:"path"`
	Mode   string         `json:"mode"` // octal
	Format targets.Format `json:"format"`
	// Parts are the content. It is empty if Render wrote the content below a folder.
	Parts []renderedPart `json:"parts,omitempty"`
}

// renderedPart is one file.
type renderedPart struct {
	Name   string `json:"name"` // empty, or the alias in the format directory
	Base64 string `json:"base64"`
}

// printRendered prints targets below dir as JSON, with or without their content.
func (t *Tool) printRendered(dir string, all []made, content bool) error {
	list := make([]renderedTarget, len(all))
	for i, m := range all {
		file := m.target.File
		list[i] = renderedTarget{Key: m.target.Key, Path: path.Join(dir, file.Path), Mode: fmt.Sprintf("%04o", file.Mode.Perm()), Format: m.target.Format}
		if !content {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(m.changes.Parts)) {
			list[i].Parts = append(list[i].Parts, renderedPart{name, base64.StdEncoding.EncodeToString(m.changes.Parts[name].Bytes())})
		}
	}
	return t.printJSON(map[string]any{"targets": list})
}

// printList prints YAML documents, each a Kubernetes object, as one List in JSON.
func (t *Tool) printList(documents []string) error {
	items := make([]json.RawMessage, len(documents))
	for i, document := range documents {
		item, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return fmt.Errorf("as JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		items[i] = item
	}
	return t.printJSON(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
