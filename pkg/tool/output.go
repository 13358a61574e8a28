package tool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// print writes a value in the format that the user chose.
func (t *Tool) print(v any) error { return t.Output.Write(t.Out, v) }

// renderedTarget is what Render prints about one target, for programs.
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

// printRendered prints targets below dir, with or without their content.
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
	return t.print(map[string]any{"targets": list})
}

// printList prints YAML documents, each a Kubernetes object, as one List.
func (t *Tool) printList(documents []string) error {
	items := make([]json.RawMessage, len(documents))
	for i, document := range documents {
		item, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return fmt.Errorf("the output cannot be written as JSON: %w", definitions.YAMLError([]byte(document), err))
		}
		items[i] = item
	}
	return t.print(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
