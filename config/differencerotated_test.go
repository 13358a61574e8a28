package config

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const rotatedFile = `
containerMode: standalone
secretsDestination: k8s_secrets
kubernetes: {namespace: ns, namespaces: [ns]}
identities:
- {name: rotates, secrets: [ns/one], conjur: {login: host/rotates, apiKeyFile: /key/rotates}}
- {name: anew, secrets: [ns/two], conjur: {login: host/anew, apiKeyFile: /key/anew}}
`

// rotatedChanges are those of how sets are rotated, each of what the one before
// has left.
func rotatedChanges(t *testing.T) map[string]change {
	t.Helper()
	text, err := os.ReadFile("testdata/rotated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/rotated-changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	if err := yaml.Unmarshal(list, &rows); err != nil {
		t.Fatal(err)
	}
	file, rotated := rotatedFile+string(text), map[string]change{}
	for _, row := range rows {
		c := change{file: file, old: row[1], new: row[2], settings: "rotation.sets"}
		if len(row) > 3 {
			c.settings = row[3]
		}
		rotated[row[0]] = c
		file = strings.Replace(file, c.old, c.new, 1)
	}
	return rotated
}
