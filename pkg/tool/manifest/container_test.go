package manifest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

func TestEnvironment(t *testing.T) {
	c := provider(t, deployment)
	want := map[string]manifest.Variable{
		"X_CONJUR_ACCOUNT":     {Value: "acct", Known: true},
		"X_url":                {Value: "https://conjur.example.com", Known: true},
		"CONJUR_APPLIANCE_URL": {Value: "https://conjur.example.com", Known: true},
		"CONJUR_AUTHN_URL":     {},
		"MY_POD_NAMESPACE":     {},
		"RETRY_COUNT_LIMIT":    {Value: "3", Known: true},
		"EMPTY":                {Known: true},
		"JOINED":               {},
	}
	if !maps.Equal(c.Env, want) {
		t.Errorf("got %v", c.Env)
	}
	if c.Open {
		t.Error("the environment is open, but all its ConfigMaps are there")
	}
	for name, from := range map[string]string{
		"a ConfigMap elsewhere": "configMapRef: {name: elsewhere}",
		"a Secret":              "secretRef: {name: conjur-connect}",
	} {
		if c := provider(t, strings.Replace(deployment, "configMapRef: {name: conjur-connect}", from, 1)); !c.Open {
			t.Errorf("%s: the environment is not open", name)
		}
	}
}

func TestVariablesWinOverWholeConfigMaps(t *testing.T) {
	c := provider(t, strings.NewReplacer("prefix: X_", `prefix: ""`, "name: EMPTY", "name: CONJUR_ACCOUNT\n          value: other").Replace(deployment))
	if got := c.Env["CONJUR_ACCOUNT"].Value; got != "other" {
		t.Errorf("got %q", got)
	}
}

func TestMounts(t *testing.T) {
	c := provider(t, deployment)
	for folder, want := range map[string]struct {
		files   map[string]string
		mounted bool
	}{
		"/conjur/podinfo":       {nil, true},
		"/conjur/podinfo/below": {nil, true},
		"/conjur/podinfo2":      {nil, false},
		"/conjur/templates":     {map[string]string{"a.tpl": "the text"}, true},
		"/conjur/some":          {map[string]string{"b.tpl": "the text"}, true},
		"/conjur/part":          {nil, true},
		"/conjur/secrets":       {nil, false},
	} {
		files, mounted := c.Mounted(folder)
		if mounted != want.mounted || !maps.Equal(files, want.files) || (files == nil) != (want.files == nil) {
			t.Errorf("%s: got %v, %v", folder, files, mounted)
		}
	}
	for folder, want := range map[string]string{
		"/conjur/podinfo": "/conjur/podinfo", "/conjur/podinfo/a/b": "/conjur/podinfo", "/conjur/secrets": "", "/conjur": "",
	} {
		if got := c.MountOf(folder); got != want {
			t.Errorf("the volume of %s is mounted at %q, want %q", folder, got, want)
		}
	}
	if hook := c.Execs["lifecycle.postStart"]; !slices.Equal(hook, []string{"/bin/hook", "now"}) || len(c.Execs) != 1 {
		t.Errorf("commands %q", c.Execs)
	}
}
