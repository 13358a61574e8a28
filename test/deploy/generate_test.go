package deploy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/generated"
)

//go:generate go test -run IsCurrent -update .

// setByTheChart are the settings of the configuration file that follow from
// the release, or that are for other shapes, by their path.
var setByTheChart = [][]string{
	{"containerMode"}, {"secretsDestination"}, {"server", "address"}, {"tracing"},
	{"kubernetes", "namespace"}, {"kubernetes", "kubeconfig"},
	{"leaderElection", "leaseName"}, {"leaderElection", "namespace"},
	{"targets"}, {"nodeSecretsBase"}, {"secretsSizeLimit"}, {"restartApp"}, {"restoreDeletedFiles"}, {"exitOnRevoked"},
}

// TestValuesSchemaIsCurrent: in the schema of the values, "config" has the schema of the
// configuration file.
func TestValuesSchemaIsCurrent(t *testing.T) {
	const path = chartDir + "/values.schema.json"
	schema, config := readObject(t, path), readObject(t, "../../docs/config.schema.json")
	delete(config, "$schema")
	config["type"] = "object"
	for _, setting := range setByTheChart {
		remove(t, config, setting)
	}
	if definitions, ok := config["$defs"]; ok { // references count from the top
		delete(config, "$defs")
		schema["$defs"] = definitions
	}
	schema["properties"].(map[string]any)["config"] = config
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	generated.AssertCurrent(t, path, text.Bytes(), "go generate ./test/deploy")
}

func readObject(t *testing.T, path string) (object map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return object
}

// remove takes a setting out of a schema.
func remove(t *testing.T, schema map[string]any, setting []string) {
	t.Helper()
	properties := schema["properties"].(map[string]any)
	next, ok := properties[setting[0]].(map[string]any)
	switch {
	case !ok:
		t.Errorf("the configuration has no setting %v", setting)
	case len(setting) > 1:
		remove(t, next, setting[1:])
	default:
		delete(properties, setting[0])
	}
}

// TestBaseIsCurrent: the base for Kustomize is what the chart renders.
func TestBaseIsCurrent(t *testing.T) {
	values, err := os.ReadFile(kustomizeDir + "/base/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := deploy.Release{Values: string(values)}.Render()
	if err != nil {
		t.Fatal(err)
	}
	const head = "# Rendered from the chart by go generate ./test/deploy; edit values.yaml or the chart instead.\n"
	generated.AssertCurrent(t, kustomizeDir+"/base/syncer.yaml", append([]byte(head), text...), "go generate ./test/deploy")
}
