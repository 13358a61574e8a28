package deploy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/deploy"
)

// TestNotesTellWhatWasInstalled: by its name, with what to do next.
func TestNotesTellWhatWasInstalled(t *testing.T) {
	for values, want := range map[string][]string{
		connection:                    {"Deployment a", "served: ns", "label secret", "system:serviceaccount:ns:a"},
		connection + "shape: job":     {"Job a-2", "served: ns"},
		connection + "shape: example": {"Deployment a", "deploy/a -c syncer"},
		"shape: none":                 {"Nothing is installed"},
		connection + "shape: none\ninject: {enabled: true}":                                                            {"New Pods with this label", `conjur.org/inject: "true"`},
		connection + "inject: {enabled: true, label: a}":                                                               {"Deployment a", `a: "true"`},
		conjurWith("kubernetes: {secrets: [{name: x, namespace: shop}]}") + "credentials: {apiKey: {secretName: key}}": {"served: shop", "lists", "Secret key"},
	} {
		text, err := deploy.Release{Name: "a", Namespace: "ns", Revision: 2, Values: values}.Notes()
		if err != nil {
			t.Error(err)
		}
		for _, words := range want {
			if !strings.Contains(string(text), words) {
				t.Errorf("notes %q, want %q in them; values %s", text, words, values)
			}
		}
	}
}

// TestInstallTellsEveryRight: the table of rights contains exactly the verbs that the chart
// grants.
func TestInstallTellsEveryRight(t *testing.T) {
	_, table, _ := strings.Cut(string(readFile(t, "../../docs/install.md")), "\n## Rights\n")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string][]string{} // verbs by resource
	for line := range strings.Lines(table) {
		if columns := strings.Split(line, "|"); len(columns) > 3 {
			for _, resource := range strings.Split(columns[1], ",") {
				told[strings.Trim(resource, " `")] = append(told[strings.Trim(resource, " `")], quoted(columns[2])...)
			}
		}
	}
	granted := map[string][]string{}
	for _, values := range []string{
		conjurWith("kubernetes: {secrets: [{name: a, create: true}]}") + `access: {configMaps: ["*"], workloads: ["*"], serviceAccounts: ["*"]}`,
		conjurWith("kubernetes: {namespaceSelector: team=a}"),
	} {
		for _, rule := range (deploy.Release{Values: values}).Rules(t, "syncer") {
			for _, resource := range rule.Resources {
				granted[resource] = append(granted[resource], rule.Verbs...)
			}
		}
	}
	for resource, verbs := range granted {
		slices.Sort(verbs)
		slices.Sort(told[resource])
		if !slices.Equal(slices.Compact(verbs), slices.Compact(told[resource])) {
			t.Errorf("%s: granted %v, told %v", resource, verbs, told[resource])
		}
	}
}

// quoted lists the words between backquotes.
func quoted(text string) (words []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

// TestValuesOfTheDocumentsAreValid: the chart turns them into a configuration that Syncer
// accepts.
func TestValuesOfTheDocumentsAreValid(t *testing.T) {
	found := 0
	for _, path := range []string{"../../docs/howto/many-namespaces.md", chartDir + "/README.md"} {
		for _, block := range strings.Split(string(readFile(t, path)), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if !strings.Contains("\n"+block, "\nconfig:") {
				continue // of something else
			}
			var values map[string]any
			if err := sigsyaml.Unmarshal([]byte(block), &values); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block)
				continue
			}
			config := values["config"].(map[string]any)
			found++
			if config["conjur"] == nil {
				config["conjur"] = map[string]any{"applianceUrl": "https://conjur.example.com", "account": "example", "authnUrl": "https://conjur.example.com/authn-jwt/example"}
			}
			text, err := sigsyaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			loadRelease(t, deploy.Release{Values: string(text)}.Objects(t), nil)
		}
	}
	if found < 3 {
		t.Errorf("%d values found", found)
	}
}

// TestEverybodyNamesTheSameImage: the built image has the name that manifests request.
func TestEverybodyNamesTheSameImage(t *testing.T) {
	made, err := exec.Command("make", "-s", "-C", "../..", "--eval", "name: ; @echo '$(IMAGE)'", "name").CombinedOutput()
	image := strings.TrimSpace(string(made))
	if err != nil || !strings.Contains(image, ":") {
		t.Fatalf("%s, %v", made, err)
	}
	for path, what := range map[string]string{
		"../../docs/install.md":                   "image: " + image,
		"../../deploy/kustomize/base/syncer.yaml": `image: "` + image + `"`,
		"../../cmd/syncer/version.go":             `release = "` + image[strings.LastIndex(image, ":")+1:] + `"`,
	} {
		if !strings.Contains(string(readFile(t, path)), what) {
			t.Errorf("%s does not have %s", path, what)
		}
	}
}
