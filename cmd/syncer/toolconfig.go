package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/config"
)

func newConfigCommand() *cobra.Command {
	var f toolFlags
	return newToolCommand(&f, "config", "Print the configuration that is in effect", `Prints all that is in effect after annotations, configuration file, environment
and defaults, secrets left out: as YAML, or as JSON with --output json.

A connection to Conjur need not be set; see validate. Warnings go to standard
error.

Exit status: 0, or 1 with nothing printed if the configuration is not valid.`, 1,
		func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(cmd)
			if err != nil {
				return err
			}
			effective := config.NewEffective(cfg)
			if f.output == outputJSON {
				return printJSON(cmd.OutOrStdout(), effective)
			}
			return printYAML(cmd.OutOrStdout(), effective)
		})
}

// printYAML writes as YAML what a value is in JSON, in the same order.
func printYAML(w io.Writer, v any) error {
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

// blockStyle lays out a tree as people write it, save what is empty. Texts such
// as "yes" keep their quotes, since YAML 1.1 takes them for Booleans.
func blockStyle(node *yaml.Node) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str" && len(node.Value) <= len("yes"):
		_ = node.Encode(node.Value) // which knows them
	case len(node.Content) > 0 || node.Kind == yaml.ScalarNode:
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}

// escapeJSON escapes the characters that JSON allows in a string and YAML does
// not.
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
