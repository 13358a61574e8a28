package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
)

// renderedTarget is what render tells with --output json about one target.
type renderedTarget struct {
	Key    targets.Key    `json:"key"`
	Path   string         `json:"path"`
	Mode   string         `json:"mode"` // octal
	Format targets.Format `json:"format"`
	// Parts are the content; none when it was written below a folder.
	Parts []renderedPart `json:"parts,omitempty"`
}

// renderedPart is one file.
type renderedPart struct {
	Name   string `json:"name"` // empty, or the alias in the format directory
	Base64 string `json:"base64"`
}

// printRendered prints targets below dir as JSON, with their content or
// without.
func printRendered(w io.Writer, dir string, ts []*targets.Target, results []render.Result, content bool) error {
	list := make([]renderedTarget, len(ts))
	for i, t := range ts {
		list[i] = renderedTarget{Key: t.Key, Path: path.Join(dir, t.File.Path), Mode: fmt.Sprintf("%04o", t.File.Mode.Perm()), Format: t.Format}
		if !content {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(results[i].Parts)) {
			part := results[i].Parts[name]
			list[i].Parts = append(list[i].Parts, renderedPart{name, base64.StdEncoding.EncodeToString(part.Bytes())})
		}
	}
	return printJSON(w, map[string]any{"targets": list})
}

// asList makes of YAML documents, each an object of Kubernetes, one List as
// JSON.
func asList(w io.Writer, documents []string) error {
	items := make([]json.RawMessage, len(documents))
	for i, document := range documents {
		item, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return fmt.Errorf("as JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		items[i] = item
	}
	return printJSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
