package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const explained = `apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: shop
  annotations:
    conjur.org/conjur-secrets.cfg: "- u: p/user\n- all: q/x"
    conjur.org/secret-file-template-configmap.cfg: tpl/cfg
    conjur.org/conjur-secrets.env: "- u: p/user"
    conjur.org/secret-file-format.env: dotenv
    conjur.org/restart-workloads: deployment/web
stringData:
  conjur-map: |
    user: p/user
    key: {id: p/key, content-type: base64}
    "*": "*"
    bad: 5
  other: canary
`

func TestExplainOfASecret(t *testing.T) {
	for _, name := range []string{"db", "shop/db", "secret/shop/db", "Secret/db"} {
		out, errs, status := runTool(t, explained, "explain", name, "-f", "-")
		if status != 0 || errs != "" {
			t.Fatalf("%s: status %d: %s", name, status, errs)
		}
		want := []string{
			"target secret/shop/db", "data key user p/user (text)", "data key key p/key (base64)", "data key * * (text)",
			"data key cfg format template, ConfigMap shop/tpl, key cfg", "u: p/user (text)", "all: q/x (text)",
			"data key env format dotenv", "u: p/user (text)",
			"variables p/user", "p/key", "q/x", "*", "workloads deployment/web",
			"triggers start: once", "source: when the Secret is created", "destination: when one", "poll: when a", "list: when there", "template: when ConfigMap shop/tpl, key cfg, changes",
			`faults conjur-map: line 4: the variable of "bad" must be text`,
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out)
		}
		for i, line := range lines {
			if text := strings.Join(strings.Fields(line), " "); !strings.HasPrefix(text, want[i]) {
				t.Errorf("line %d is %q, want %q", i, text, want[i])
			}
		}
		if strings.Contains(out, "canary") {
			t.Error("it shows a value")
		}
	}
}

// Only what the process that fills a Secret does is claimed of it.
func TestExplainOfASecretNamesTheTriggersOfItsProcess(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		want     []string
	}{
		"a Job":               {"containerMode: application", []string{"start"}},
		"an init container":   {"containerMode: init", []string{"start"}},
		"without refresh":     {"containerMode: sidecar", []string{"start", "source", "destination", "template"}},
		"with it, and a list": {"containerMode: sidecar\n    refresh: {interval: 45s}", []string{"start", "source", "destination", "poll within 45s", "list within 45s", "template"}},
	} {
		workload := strings.Replace(deployed, "containerMode: standalone", c.settings, 1)
		out, errs, status := runTool(t, explained+"---\n"+workload, "explain", "db", "-f", "-", "--output", "json")
		if status != 0 {
			t.Fatalf("%s: status %d: %s", name, status, errs)
		}
		var got struct{ Triggers []struct{ Kind, When string } }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, trigger := range got.Triggers {
			kind := trigger.Kind
			if strings.HasSuffix(trigger.When, "within 45s") {
				kind += " within 45s"
			}
			kinds = append(kinds, kind)
		}
		if !reflect.DeepEqual(kinds, c.want) {
			t.Errorf("%s: %q, want %q", name, kinds, c.want)
		}
	}
}

func TestExplainOfASecretAsJSON(t *testing.T) {
	out, _, _ := runTool(t, explained, "explain", "db", "-f", "-", "--output", "json")
	var got struct {
		Key      string
		DataKeys []struct {
			Name, Format, Template string
			Entries                []entryJSON
		}
		Variables, Workloads, Faults []string
		Triggers                     []struct{ Kind, When string }
	}
	decodeAll(t, out, &got)
	if got.Key != "secret/shop/db" || len(got.DataKeys) != 5 || len(got.Triggers) != 6 || len(got.Faults) != 1 {
		t.Errorf("got %+v", got)
	}
	if want := []string{"p/user", "p/key", "q/x", "*"}; !reflect.DeepEqual(got.Variables, want) {
		t.Errorf("variables %q, want %q", got.Variables, want)
	}
	if cfg := got.DataKeys[3]; cfg.Format != "template" || cfg.Template != "ConfigMap shop/tpl, key cfg" || len(cfg.Entries) != 2 {
		t.Errorf("cfg is %+v", cfg)
	}
	bare, _, _ := runTool(t, "{kind: Secret, metadata: {name: s}, stringData: {conjur-map: 'a: b'}}", "explain", "s", "-f", "-", "--output", "json")
	var lists map[string]json.RawMessage
	if err := json.Unmarshal([]byte(bare), &lists); err != nil || string(lists["workloads"]) != "[]" || string(lists["faults"]) != "[]" {
		t.Errorf("%v: what is empty is %s", err, bare)
	}
}

func TestExplainOfASecretWhoseMapCannotBeRead(t *testing.T) {
	out, errs, status := runTool(t, "{kind: Secret, metadata: {name: s}, data: {conjur-map: '%'}}", "explain", "s", "-f", "-")
	if status != 0 || errs != "" || !strings.Contains(out, "faults    conjur-map: line 1: the value of conjur-map in data is not base64") {
		t.Errorf("status %d, %q and\n%s", status, errs, out)
	}
}

func TestExplainOfASecretThatIsNotThere(t *testing.T) {
	text := explained + "---\n{kind: Secret, metadata: {name: plain}}\n"
	for _, name := range []string{"nope", "other/db", "plain"} {
		out, errs, status := runTool(t, text, "explain", name, "-f", "-")
		if status != 1 || out != "" || !strings.Contains(errs, "there are shop/db") {
			t.Errorf("%s: status %d, %q and %q", name, status, out, errs)
		}
	}
}
