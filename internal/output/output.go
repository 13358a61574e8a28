// Package output writes data in the format that a user chose.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Format is the format of a command's output. The zero Format is Text.
type Format string

// The formats.
const (
	Text Format = "text" // for people; a command writes it itself
	YAML Format = "yaml"
	JSON Format = "json"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Text, YAML, JSON} }

// ForPrograms reports whether the output is YAML or JSON.
func (f Format) ForPrograms() bool { return f == YAML || f == JSON }

// Write writes a value as indented JSON, or else as YAML, which is also a text for people.
// Both have the names and the order of the value's JSON.
func (f Format) Write(w io.Writer, v any) error {
	if f != JSON {
		return writeYAML(w, v)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// writeYAML writes the JSON form of a value as YAML, in the same order.
func writeYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(escapeJSON(text), &doc); err != nil {
		return fmt.Errorf("as YAML: %w", err)
	}
	blockStyle(&doc)
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return err
	}
	return encoder.Close()
}

// blockStyle lays out a tree in block style. Texts such as "yes" keep their quotes, because
// they are Booleans in YAML 1.1.
func blockStyle(node *yaml.Node) {
	node.Style = 0
	if node.Tag == "!!str" && len(node.Value) <= len("yes") {
		_ = node.Encode(node.Value) // Encode knows them
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}

// escapeJSON escapes the characters that a string may contain in JSON but not in YAML. It may
// escape others too.
func escapeJSON(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}
