package render_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// templated is a group with the entry u and an inline template.
func templated(name, text string) *targets.Target {
	return &targets.Target{
		Group: name, Format: targets.FormatTemplate, Template: targets.Template{Inline: text},
		Entries: []targets.Entry{{Alias: "u", Variable: "p/u"}},
	}
}

// dataOf renders a Secret of these entries and groups; each variable has its
// id for a value, unless values says otherwise.
func dataOf(values map[string]string, entries []targets.Entry, groups ...*targets.Target) render.Data {
	t := &targets.Target{Entries: entries, Secret: &targets.Secret{Groups: groups}}
	return render.Secret(t, func(id string) secret.Value {
		if text, ok := values[id]; ok {
			id = text
		}
		return secret.New([]byte(id))
	}, func(t *targets.Target) (string, error) { return t.Template.Inline, nil })
}

func wantData(t *testing.T, d render.Data, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for key, part := range d.Parts {
		got[key] = string(part.Bytes())
	}
	if !maps.Equal(got, want) {
		t.Errorf("data %.300q, want %.300q", got, want)
	}
}

// wantErrs expects an error for each key, and no other, that says something.
func wantErrs(t *testing.T, d render.Data, want map[string]string) {
	t.Helper()
	if got, keys := slices.Sorted(maps.Keys(d.Errs)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, keys) {
		t.Errorf("errors about %q, want %q", got, keys)
	}
	for key, says := range want {
		if err := d.Errs[key]; err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one with %q", key, err, says)
		}
	}
}

func TestSecretMakesAllParts(t *testing.T) {
	bytes := "\x00\xff\n"
	d := dataOf(map[string]string{"raw": bytes, "enc": "AP8K", "bad": "=x="}, []targets.Entry{
		{Alias: "raw", Variable: "raw"}, {Alias: "decoded", Variable: "enc", ContentType: targets.ContentBase64},
		{Alias: "as-it-is", Variable: "bad", ContentType: targets.ContentBase64}, {Alias: ".syncer-x", Variable: "p/x"},
	}, templated("tpl", `{{ secret "u" }}`), &targets.Target{
		Group: "env", Format: targets.FormatDotenv, Entries: []targets.Entry{{Alias: "A", Variable: "p/a"}, {Alias: "B", Variable: "bad", ContentType: targets.ContentBase64}},
	})
	wantErrs(t, d, nil)
	wantData(t, d, map[string]string{"raw": bytes, "decoded": bytes, "as-it-is": "=x=", ".syncer-x": "p/x", "tpl": "p/u", "env": "A=\"p/a\"\nB=\"=x=\""})
	if len(d.Warnings) != 2 || !strings.Contains(d.Warnings[0], `"as-it-is"`) || !strings.HasPrefix(d.Warnings[1], `data key "env": alias "B"`) {
		t.Errorf("warnings %q", d.Warnings)
	}
}

// One group's faults do not touch the others.
func TestSecretTellsEachGroupsFault(t *testing.T) {
	lost := errors.New("there is no ConfigMap")
	d := render.Secret(&targets.Target{Entries: []targets.Entry{{Alias: "k", Variable: "p/u"}}, Secret: &targets.Secret{Groups: []*targets.Target{
		templated("alias", `{{ secret "nope" }}`), templated("good", `{{ secret "u" }}`), templated("lost", ""), templated("syntax", "{{"),
		{Group: "bytes", Format: targets.FormatJSON, Entries: []targets.Entry{{Alias: "u", Variable: "p/u"}}},
		{Group: "folder", Format: targets.FormatDirectory}, {Group: "toml", Format: "toml"},
	}}}, func(string) secret.Value { return secret.New([]byte("canary\xff")) }, func(t *targets.Target) (string, error) {
		if t.Group == "lost" {
			return "", lost
		}
		return t.Template.Inline, nil
	})
	wantData(t, d, map[string]string{"k": "canary\xff", "good": "canary\xff"})
	wantErrs(t, d, map[string]string{
		"alias": `template: alias:1`, "lost": "there is no ConfigMap", "syntax": "template: syntax:1", "bytes": `cannot hold the value of alias "u"`,
		"folder": "the format directory makes many files", "toml": `unknown format "toml"`,
	})
	if !errors.Is(d.Errs["lost"], lost) {
		t.Error("the look-up's own error is lost")
	}
	for key, err := range d.Errs {
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error shows the value", key)
		}
	}
}

// A Secret has room for so much; what has none of it left is told.
func TestSecretIsNoLargerThanKubernetesTakes(t *testing.T) {
	half := strings.Repeat("x", render.MaxSecret/2)
	values := map[string]string{"p/u": half, "p/small": "s"}
	d := dataOf(values, []targets.Entry{{Alias: "k", Variable: "p/small"}},
		templated("a", `{{ secret "u" }}`), templated("b", `{{ secret "u" }}`), templated("c", "small"))
	wantData(t, d, map[string]string{"k": "s", "a": half, "c": "small"})
	wantErrs(t, d, map[string]string{"b": "more than the 1048576"})
	d = dataOf(values, nil, templated("a", `{{ secret "u" }}`), templated("b", `{{ secret "u" }}`))
	wantData(t, d, map[string]string{"a": half, "b": half})
}

// Templates that run away take their time from a budget, and leave some.
func TestManyRunawayTemplatesAreStoppedTogether(t *testing.T) {
	var groups []*targets.Target
	for i := range 100 {
		groups = append(groups, templated(fmt.Sprintf("g%02d", i), `{{ range until 1000 }}{{ $x := repeat 1000000 "x" }}{{ end }}`))
	}
	fine := &targets.Target{Group: "fine", Format: targets.FormatJSON}
	d := dataOf(nil, nil, append(groups, fine)...)
	wantData(t, d, map[string]string{"fine": "{}"})
	ran := 0
	for _, group := range groups {
		if err := d.Errs[group.Group]; strings.Contains(err.Error(), "does not end") {
			ran++
		} else if !strings.Contains(err.Error(), "not run, because the other templates") {
			t.Errorf("%s: %v", group.Group, err)
		}
	}
	if ran != 4 {
		t.Errorf("%d templates were run, want as many as the budget has room for", ran)
	}
	one := dataOf(nil, nil, groups[0], templated("good", `{{ secret "u" }}`))
	wantData(t, one, map[string]string{"good": "p/u"})
}
