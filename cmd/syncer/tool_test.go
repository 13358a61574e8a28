package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs a command line in this process, without the environment's Conjur,
// and gives what it wrote and the status it ends with.
func tool(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	for _, name := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_ACCOUNT", "CONJUR_AUTHN_URL", "CONJUR_AUTHN_LOGIN", "CONJUR_AUTHN_API_KEY", "SYNCER_CONFIG"} {
		t.Setenv(name, "")
	}
	var out, errs bytes.Buffer
	root := newCommand()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	if err := root.ExecuteContext(t.Context()); err != nil {
		status = exitStatus(err)
		if !errors.Is(err, errLogged) {
			errs.WriteString(err.Error())
		}
	}
	return out.String(), errs.String(), status
}

// files writes files into a new folder and gives its path.
func files(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const toolAnnotations = `conjur.org/container-mode="sidecar"
conjur.org/secrets-destination="file"
conjur.org/conjur-secrets.db="- user: db/user\n- password: db/password\n"
conjur.org/secret-file-format.db="dotenv"
conjur.org/conjur-secrets.web="- token: web/token\n"
conjur.org/secret-file-format.web="template"
`

const toolValues = `{"db/user": "canary-user", "db/password": {"base64": "Y2FuYXJ5LXBhc3M="}, "web/token": "canary-token"}`

func toolFolder(t *testing.T) string {
	t.Helper()
	return files(t, "annotations", toolAnnotations, "values.json", toolValues, "templates/web.tpl", `<{{ secret "token" }}>`)
}

func TestRenderPrintsTheFileAndNothingElse(t *testing.T) {
	dir := toolFolder(t)
	for group, want := range map[string]string{
		"db":  "user=\"canary-user\"\npassword=\"canary-pass\"",
		"web": "<canary-token>",
	} {
		out, errs, status := tool(t, "", "render", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates",
			"--values", dir+"/values.json", "--group", group)
		if out != want || errs != "" || status != 0 {
			t.Errorf("%s: printed %q and %q with status %d, want %q", group, out, errs, status, want)
		}
	}
}

func TestRenderNamesAllMissingValuesAndPrintsNothing(t *testing.T) {
	dir := toolFolder(t)
	out, errs, status := tool(t, `{"web/token": "canary"}`, "render", "--annotations", dir+"/annotations",
		"--templates-dir", dir+"/templates", "--values", "-", "--group", "db")
	if out != "" || status != 1 || !strings.Contains(errs, "db/user") || !strings.Contains(errs, "db/password") || strings.Contains(errs, "canary") {
		t.Errorf("printed %q and %q with status %d, want both variables named", out, errs, status)
	}
}

func TestRenderWritesAllBelowAFolder(t *testing.T) {
	dir := toolFolder(t)
	_, errs, status := tool(t, "", "render", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates",
		"--values", dir+"/values.json", "--out", dir+"/out")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	if got, err := os.ReadFile(dir + "/out/web.out"); err != nil || string(got) != "<canary-token>" {
		t.Errorf("web.out holds %q, %v", got, err)
	}
}

func TestValidateTellsEveryProblemAsJSON(t *testing.T) {
	dir := files(t, "annotations", `conjur.org/secrets-destination="file"
conjur.org/conjur-secrets.a="- k: a/b"
conjur.org/secret-file-format.a="toml"
conjur.org/secret-file-permissions.a="0644"
conjur.org/secrets-refresh-interval="0s"
`)
	out, _, status := tool(t, "", "validate", "--annotations", dir+"/annotations", "--output", "json")
	var got struct {
		Errors, Warnings []struct{ Key, Message string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keys := map[string]bool{}
	for _, e := range got.Errors {
		keys[e.Key] = true
	}
	for _, key := range []string{"conjur.org/secret-file-format.a", "conjur.org/secret-file-permissions.a", "conjur.org/secrets-refresh-interval"} {
		if !keys[key] {
			t.Errorf("no error about %s: %s", key, out)
		}
	}
	if status != 1 || got.Warnings == nil {
		t.Errorf("status %d, warnings %v", status, got.Warnings)
	}
}

func TestValidateOfGoodAnnotationsNeedsNoConnection(t *testing.T) {
	dir := toolFolder(t)
	args := []string{"validate", "--annotations", dir + "/annotations", "--templates-dir", dir + "/templates"}
	if out, errs, status := tool(t, "", args...); out != "" || errs != "" || status != 0 {
		t.Errorf("printed %q and %q with status %d", out, errs, status)
	}
	if _, errs, status := tool(t, "", append(args, "--connection")...); status != 1 || !strings.Contains(errs, "CONJUR_APPLIANCE_URL") {
		t.Errorf("with --connection: %q, status %d", errs, status)
	}
	if _, errs, status := tool(t, "", "validate", "--annotations", dir+"/nope"); status != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("a file that is not there: %q, status %d", errs, status)
	}
}

func TestConfigPrintsWhatIsInEffect(t *testing.T) {
	dir := toolFolder(t)
	out, _, status := tool(t, "", "config", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates", "--output", "json")
	var got struct {
		Targets []struct {
			Path, Mode, Format string
			Entries            []struct{ Alias, Variable, ContentType string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
		t.Fatalf("%v, status %d: %s", err, status, out)
	}
	if len(got.Targets) != 2 || got.Targets[0].Path != "/conjur/secrets/db.dotenv" || got.Targets[0].Mode != "0644" ||
		got.Targets[0].Entries[1].Variable != "db/password" || got.Targets[0].Entries[1].ContentType != "text" {
		t.Errorf("targets are %+v", got.Targets)
	}
}

func TestExplainTellsWhatBelongsToATarget(t *testing.T) {
	dir := toolFolder(t)
	out, _, status := tool(t, "", "explain", "web", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates")
	for _, want := range []string{"file/web", "web/token", "web.tpl"} {
		if !strings.Contains(out, want) || status != 0 {
			t.Errorf("status %d, no %s in %s", status, want, out)
		}
	}
	if _, errs, status := tool(t, "", "explain", "nope", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates"); status != 1 || !strings.Contains(errs, "db, web") {
		t.Errorf("an unknown target: %q, status %d", errs, status)
	}
}
