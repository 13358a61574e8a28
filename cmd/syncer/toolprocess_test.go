package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// toolProcess runs syncer as a process of its own, in an environment that has
// nothing but env.
func toolProcess(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{asCommand + "=1"}, env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// annotatedWith writes annotations, without "conjur.org/" where there is no other
// domain, and gives the arguments that name them. The destination is files.
func annotatedWith(t *testing.T, annotations map[string]string) []string {
	t.Helper()
	all := map[string]string{"secrets-destination": "file"}
	maps.Copy(all, annotations)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name := key
		if !strings.Contains(key, "/") {
			name = "conjur.org/" + key
		}
		fmt.Fprintf(&text, "%s=%q\n", name, all[key])
	}
	dir := files(t, "annotations", text.String(), "templates/cm.tpl", `file:{{ secret "k" }}`, "templates/empty.tpl", "")
	return []string{"--annotations", dir + "/annotations", "--templates-dir", dir + "/templates"}
}

// decodeAll decodes the whole of a text, and refuses fields that v has not.
func decodeAll(t *testing.T, text string, v any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("something follows the JSON in %q", text)
	}
}

type problemJSON struct{ Key, Message string }

type validationJSON struct{ Errors, Warnings []problemJSON }

// TestProcessValidate holds validate against the facts of the Secrets
// Provider's annotations: what it accepts, and where it finds fault.
func TestProcessValidate(t *testing.T) {
	t.Parallel()
	group := map[string]string{"conjur-secrets.g": "- k: a/b"}
	for name, c := range map[string]struct {
		annotations map[string]string
		env         []string
		wrong       []string // keys of errors, in order
		doubtful    []string // keys of warnings
	}{
		"a Boolean in capitals":       {annotations: map[string]string{"secrets-refresh-enabled": "TRUE", "container-mode": "sidecar"}},
		"no Boolean":                  {annotations: map[string]string{"secrets-refresh-enabled": "yes"}, wrong: []string{"conjur.org/secrets-refresh-enabled"}},
		"mixed case is no Boolean":    {annotations: map[string]string{"secrets-refresh-enabled": "tRuE"}, wrong: []string{"conjur.org/secrets-refresh-enabled"}},
		"a wrong destination":         {annotations: map[string]string{"secrets-destination": "files"}, wrong: []string{"conjur.org/secrets-destination"}},
		"an empty destination":        {annotations: map[string]string{"secrets-destination": ""}, wrong: []string{"conjur.org/secrets-destination"}},
		"a wrong format":              {annotations: map[string]string{"secret-file-format.g": "toml"}, wrong: []string{"conjur.org/secret-file-format.g"}},
		"a wrong log level":           {annotations: map[string]string{"log-level": "trace"}, wrong: []string{"conjur.org/log-level"}},
		"a wrong mode":                {annotations: map[string]string{"container-mode": "daemon"}, wrong: []string{"conjur.org/container-mode"}},
		"an empty mode":               {annotations: map[string]string{"container-mode": ""}, wrong: []string{"conjur.org/container-mode"}},
		"an unknown annotation":       {annotations: map[string]string{"secret-group.x": "- a"}, doubtful: []string{"conjur.org/secret-group.x"}},
		"another domain":              {annotations: map[string]string{"example.com/x": "y"}},
		"the shortest interval":       {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": "1s"}},
		"hours and minutes":           {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": "2h30m"}},
		"no time":                     {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": "0s"}, wrong: []string{"conjur.org/secrets-refresh-interval"}},
		"days":                        {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": "1d"}, wrong: []string{"conjur.org/secrets-refresh-interval"}},
		"a space before":              {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": " 5m"}, wrong: []string{"conjur.org/secrets-refresh-interval"}},
		"too long an interval":        {annotations: map[string]string{"container-mode": "sidecar", "secrets-refresh-interval": "9999999h"}, wrong: []string{"conjur.org/secrets-refresh-interval"}},
		"refresh of an init":          {annotations: map[string]string{"secrets-refresh-enabled": "true"}, wrong: []string{"conjur.org/secrets-refresh-enabled"}},
		"an interval of an init":      {annotations: map[string]string{"secrets-refresh-interval": "5m"}, wrong: []string{"conjur.org/secrets-refresh-interval"}},
		"no refresh of an init":       {annotations: map[string]string{"secrets-refresh-enabled": "false", "container-mode": "init"}},
		"an absolute path":            {annotations: map[string]string{"secret-file-path.g": "/etc/x"}, wrong: []string{"conjur.org/secret-file-path.g"}},
		"a path beside the folder":    {annotations: map[string]string{"secret-file-path.g": "../secrets-other/x"}, wrong: []string{"conjur.org/secret-file-path.g"}},
		"a name of 256 bytes":         {annotations: map[string]string{"secret-file-path.g": strings.Repeat("n", 256)}, wrong: []string{"conjur.org/secret-file-path.g"}},
		"a name of 255 bytes":         {annotations: map[string]string{"secret-file-path.g": strings.Repeat("n", 255)}},
		"an octal mode":               {annotations: map[string]string{"secret-file-permissions.g": "0644"}, wrong: []string{"conjur.org/secret-file-permissions.g"}},
		"a slash at a variable's end": {annotations: map[string]string{"conjur-secrets.g": "- k: a/b/"}, wrong: []string{"conjur.org/conjur-secrets.g"}},
		"a map for a list":            {annotations: map[string]string{"conjur-secrets.g": "a: x/y"}, wrong: []string{"conjur.org/conjur-secrets.g"}},
		"a list in a list":            {annotations: map[string]string{"conjur-secrets.g": "- ok/path\n- - inner\n"}, wrong: []string{"conjur.org/conjur-secrets.g"}},
		"two groups, one path": {annotations: map[string]string{"conjur-secrets.h": "- k: a/b", "secret-file-path.g": "same", "secret-file-path.h": "same"},
			wrong: []string{"conjur.org/secret-file-path.h"}},
		"a broken template": {annotations: map[string]string{"secret-file-format.g": "template", "secret-file-template.g": "{{ < }}"},
			wrong: []string{"conjur.org/secret-file-template.g"}},
		"an alias that is not there": {annotations: map[string]string{"secret-file-format.g": "template", "secret-file-template.g": `{{ secret "x" }}`},
			wrong: []string{"conjur.org/secret-file-template.g"}},
		"a template nowhere":           {annotations: map[string]string{"secret-file-format.g": "template"}, wrong: []string{"conjur.org/secret-file-template.g"}},
		"an alias with a dash":         {annotations: map[string]string{"conjur-secrets.g": "- a-b: x", "secret-file-format.g": "bash"}, wrong: []string{"conjur.org/conjur-secrets.g"}},
		"the annotation wins":          {annotations: map[string]string{"container-mode": "application"}, env: []string{"CONTAINER_MODE=nonsense"}},
		"a mode that does not matter":  {env: []string{"CONTAINER_MODE=invalid-mode"}, doubtful: []string{"CONTAINER_MODE"}},
		"a connection that is partial": {env: []string{"CONJUR_ACCOUNT=a", "CONJUR_APPLIANCE_URL=https://c", "CONJUR_AUTHN_LOGIN=host/a"}, wrong: []string{"CONJUR_AUTHN_URL"}},
		"all at once": {annotations: map[string]string{"log-level": "loud", "secret-file-format.g": "toml", "secret-file-permissions.g": "rw"},
			wrong: []string{"conjur.org/log-level", "conjur.org/secret-file-format.g", "conjur.org/secret-file-permissions.g"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := maps.Clone(group)
			maps.Copy(annotations, c.annotations)
			out, errs, status := toolProcess(t, c.env, append([]string{"validate", "--output", "json"}, annotatedWith(t, annotations)...)...)
			var got validationJSON
			decodeAll(t, out, &got)
			if got.Errors == nil || got.Warnings == nil {
				t.Errorf("a list is null: %s", out)
			}
			if keys := keysOf(got.Errors); !slices.Equal(keys, c.wrong) {
				t.Errorf("errors %q, want about %q", got.Errors, c.wrong)
			}
			if keys := keysOf(got.Warnings); !slices.Equal(keys, c.doubtful) {
				t.Errorf("warnings %q, want about %q", got.Warnings, c.doubtful)
			}
			if want := min(len(c.wrong), 1); status != want || errs != "" {
				t.Errorf("status %d, want %d; standard error %q", status, want, errs)
			}
		})
	}
}

func keysOf(problems []problemJSON) (keys []string) {
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestProcessRefusesBadCommandLines wants an error and nothing on standard
// output.
func TestProcessRefusesBadCommandLines(t *testing.T) {
	t.Parallel()
	good := annotatedWith(t, map[string]string{"conjur-secrets.g": "- k: a/b"})
	for _, c := range []struct {
		status int
		args   []string
	}{
		{1, append([]string{"validate", "--output", "yaml"}, good...)},
		{1, append([]string{"validate", "more"}, good...)},
		{1, []string{"validate", "--annotations", "/nowhere/annotations"}},
		{1, []string{"config", "--annotations", "/nowhere/annotations"}},
		{1, append([]string{"explain"}, good...)},
		{1, append([]string{"explain", "h"}, good...)},
		{1, append([]string{"render", "--group", "g"}, good...)},
		{1, append([]string{"render", "--values", "/nowhere/values.json", "--group", "g"}, good...)},
		{1, []string{"migrate"}},
		{1, []string{"migrate", "-f", "/nowhere/manifest.yaml"}},
		{2, append([]string{"diff"}, good...)},
		{2, append([]string{"diff", "--output", "yaml"}, good...)},
		{2, []string{"diff", "more"}},
		{2, []string{"diff", "--annotations", "/nowhere/annotations"}},
	} {
		if out, errs, status := toolProcess(t, nil, c.args...); status != c.status || out != "" || errs == "" {
			t.Errorf("%q: status %d, want %d; %q and %q", c.args, status, c.status, out, errs)
		}
	}
	if _, errs, _ := toolProcess(t, nil, "validate", "pod.yaml"); !strings.Contains(errs, `the argument "pod.yaml" is not for syncer validate; files are named by flags`) {
		t.Errorf("a file without a flag: %q", errs)
	}
	if _, errs, _ := toolProcess(t, nil, "explain"); !strings.Contains(errs, "an argument is missing: syncer explain TARGET") {
		t.Errorf("no target: %q", errs)
	}
}
