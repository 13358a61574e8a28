package tool

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// hostileTexts are values that look like entries, quotes and line ends.
var hostileTexts = []string{
	"", "v", " v ", "\n", "'", `"`, `\`, `\'`, `a'\`, "a'b\nc'd", "x\ny=\"1\"", "x=1", `"y":"2"`, "{}", ",", "$(y)", "y='\n'", "é\u2028", "\nz=3\n",
}

// rendered returns a target of the entries x, y and z and its content, or false
// where the format cannot hold one of the values.
func rendered(format targets.Format, values []string) (*targets.Target, render.Result, bool) {
	t := &targets.Target{Group: "g", Format: format}
	var items []render.Item
	for i, alias := range []string{"x", "y", "z"} {
		t.Entries = append(t.Entries, targets.Entry{Alias: alias, Variable: alias})
		items = append(items, render.Item{Alias: alias, Value: secret.New([]byte(values[i]))})
	}
	result, err := render.Render(t, "", items)
	return t, result, err == nil
}

// TestDifferingNamesExactlyTheAliasesThatDiffer renders two sets of values in
// each format and wants the difference of the sets.
func TestDifferingNamesExactlyTheAliasesThatDiffer(t *testing.T) {
	formats := slices.DeleteFunc(targets.Formats(), func(f targets.Format) bool { return f == targets.FormatTemplate })
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom(formats).Draw(t, "format")
		text := rapid.OneOf(rapid.SampledFrom(hostileTexts), rapid.StringOf(rapid.SampledFrom([]rune("xy='\"\\\n${} e"))))
		before, after := make([]string, 3), make([]string, 3)
		want := []string{}
		for i, alias := range []string{"x", "y", "z"} {
			before[i] = text.Draw(t, "before")
			after[i] = before[i]
			if rapid.Bool().Draw(t, "changes") {
				after[i] = text.Draw(t, "after")
			}
			if before[i] != after[i] {
				want = append(want, alias)
			}
		}
		_, old, ok := rendered(format, before)
		target, result, fits := rendered(format, after)
		if !ok || !fits {
			return
		}
		if got := differing(target, result.Parts, sinks.State{Parts: old.Parts}); !slices.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q; from %q to %q", format, got, want, before, after)
		}
	})
}

func TestDifferingOfWhatCannotBeTakenApart(t *testing.T) {
	for _, format := range []targets.Format{targets.FormatJSON, targets.FormatYAML, targets.FormatBash, targets.FormatEnvFile, targets.FormatKubernetesEnv} {
		target, result, _ := rendered(format, []string{"1", "2", "3"})
		for _, content := range []string{"", "-----BEGIN", "[1, 2]", "{", "export x='"} {
			have := sinks.State{Parts: map[string]secret.Value{"": secret.New([]byte(content))}}
			if got := differing(target, result.Parts, have); len(got) != 3 {
				t.Errorf("%s: %q has %q", format, content, got)
			}
		}
	}
}

func TestDifferingWithEscapedNames(t *testing.T) {
	target := &targets.Target{Format: targets.FormatJavaProperties}
	var items []render.Item
	for _, alias := range []string{"a=b", "a=c", `d\`} {
		target.Entries = append(target.Entries, targets.Entry{Alias: alias})
		items = append(items, render.Item{Alias: alias, Value: secret.New([]byte("=1"))})
	}
	was, err := render.Render(target, "", items)
	if err != nil {
		t.Fatal(err)
	}
	for i, alias := range []string{"a=b", "a=c", `d\`} {
		changed := slices.Clone(items)
		changed[i].Value = secret.New([]byte("=2"))
		is, _ := render.Render(target, "", changed)
		if got := differing(target, is.Parts, sinks.State{Parts: was.Parts}); !slices.Equal(got, []string{alias}) {
			t.Errorf("got %q, want %q", got, alias)
		}
	}
}

// TestDifferingOfValuesWithoutQuotes has values that end in a backslash, which
// dotenv writes without quotes and with an empty line after them.
func TestDifferingOfValuesWithoutQuotes(t *testing.T) {
	_, was, ok := rendered(targets.FormatDotenv, []string{`a\`, "1", `b\`})
	target, is, fits := rendered(targets.FormatDotenv, []string{`a\`, "3", `b\`})
	if !ok || !fits {
		t.Fatal("dotenv cannot hold the values")
	}
	if got := differing(target, is.Parts, sinks.State{Parts: was.Parts}); !slices.Equal(got, []string{"y"}) {
		t.Errorf("got %q", got)
	}
}
