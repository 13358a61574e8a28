package manifest_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

const image = "secretsync/syncer:1.0"

// withImage replaces the images of all containers called p.
func withImage(t *testing.T, text string) (string, error) {
	t.Helper()
	m := parse(t, text)
	var cs []*manifest.Container
	for _, w := range m.Workloads {
		for _, c := range w.Containers {
			if c.Name == "p" {
				cs = append(cs, c)
			}
		}
	}
	if len(cs) == 0 {
		t.Fatalf("no container in %q", text)
	}
	out, err := m.WithImage(image, cs...)
	return string(manifest.Join(out)), err
}

// TestOnlyTheImageChanges writes the place of the image as @, in texts that a
// YAML printer would lay out anew.
func TestOnlyTheImageChanges(t *testing.T) {
	for name, text := range map[string]string{
		"plain":         "# head\nkind:   Pod\n\nspec:\n    containers:\n    -   name: p\n        image:   @   # why\n\n# tail\n",
		"no newline":    "kind: Pod\nspec: {containers: [{name: p, image: @}]}",
		"double quotes": "kind: Pod\nspec: {containers: [{name: p, image: \"@\", x: '@'}]}\n",
		"single quotes": "kind: Pod\nspec:\n  containers:\n  - image: '@'\n    name: p\n",
		"JSON":          `{"kind":"Pod","metadata":{"annotations":{"a":"ü\n"}},"spec":{"containers":[{"image":"@","name":"p"}]}}`,
		"after umlauts": "kind: Pod\nspec: {containers: [{ü: äöü, name: p, image: @}]}\n",
		"CRLF":          "kind: Pod\r\nspec:\r\n  containers:\r\n  - name: p\r\n    image: @\r\n",
		"a tag":         "kind: Pod\nspec: {containers: [{name: p, image: !!str @}]}\n",
		"two documents": "kind: Pod\nspec: {containers: [{name: p, image: @}]}\n---\n# second\nkind: Pod\nspec: {containers: [{name: p, image: @}]}\n...\n",
		"two in a Pod":  "kind: Pod\nspec: {containers: [{name: p, image: @}, {name: q, image: q}], initContainers: [{name: p, image: @}]}\n",
		"a List":        "kind: List\nitems:\n- kind: Pod\n  spec: {containers: [{name: p, image: @}]}\n",
		"repeated keys": "kind: Pod\nspec: {containers: [{name: p, env: [{name: image, value: x}], image: @}]}\n",
	} {
		got, err := withImage(t, strings.ReplaceAll(text, "@", "cyberark/secrets-provider-for-k8s:1.9"))
		want := strings.ReplaceAll(text, "@", image)
		if name == "double quotes" { // x is not the image
			want = strings.Replace(want, "'"+image+"'", "'cyberark/secrets-provider-for-k8s:1.9'", 1)
		}
		if err != nil || got != want {
			t.Errorf("%s: %v, got\n%s", name, err, got)
		}
	}
}

func TestAnAliasIsReplaced(t *testing.T) {
	got, err := withImage(t, "x: &img old\nkind: Pod\nspec: {containers: [{name: p, image: *img }]}\n")
	if want := "x: &img old\nkind: Pod\nspec: {containers: [{name: p, image: " + image + " }]}\n"; err != nil || got != want {
		t.Errorf("%v, got\n%s", err, got)
	}
}

// TestWhatCannotBeReplaced wants an error where a replacement would change
// something else, or where the text is not found.
func TestWhatCannotBeReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"an anchor":             "kind: Pod\nspec: {containers: [{name: p, image: &img old}, {name: q, image: *img}]}\n",
		"a merged map":          "x: &base {image: old}\nkind: Pod\nspec: {containers: [{<<: *base, name: p}, {<<: *base, name: q}]}\n",
		"a block":               "kind: Pod\nspec:\n  containers:\n  - name: p\n    image: >-\n      old\n",
		"escapes":               `{"kind": "Pod", "spec": {"containers": [{"name": "p", "image": "o\u006cd"}]}}`,
		"no image":              "kind: Pod\nspec: {containers: [{name: p}]}\n",
		"an unusual line break": "kind: Pod # \u2028\nspec: {containers: [{name: p, image: old}]}\n",
	} {
		if got, err := withImage(t, text); err == nil {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

func TestImageNames(t *testing.T) {
	m := parse(t, "kind: Pod\nspec: {containers: [{name: p, image: old}]}\n")
	for _, name := range []string{"", "a b", "a: b", "a\nb", "#a", "[a", "123", "true"} {
		if out, err := m.WithImage(name, m.Workloads[0].Containers...); err == nil {
			t.Errorf("%q: got\n%s", name, out)
		}
	}
}
