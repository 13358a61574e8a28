package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
)

// dict is annotations, without "conjur.org/" where they are Syncer's, or an
// environment.
type dict map[string]string

// with returns a copy with more entries; an empty text removes one.
func (d dict) with(more dict) dict {
	all := maps.Clone(d)
	if all == nil {
		all = dict{}
	}
	for k, v := range more {
		if all[k] = v; v == "" {
			delete(all, k)
		}
	}
	return all
}

// connection is an environment that says how Conjur is reached.
var connection = dict{
	"CONJUR_APPLIANCE_URL": "https://conjur.example.com",
	"CONJUR_ACCOUNT":       "acct",
	"CONJUR_AUTHN_LOGIN":   "host/app",
	"CONJUR_AUTHN_API_KEY": "the-key-is-a-secret",
}

// group is the annotations of a sidecar with one secret group.
var group = dict{
	"secrets-destination": "file",
	"container-mode":      "sidecar",
	"conjur-secrets.g":    "- k: a/b",
}

// write makes an annotations file as the Downward API does.
func write(t testing.TB, annotations dict) string {
	t.Helper()
	var file strings.Builder
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name := key
		if !strings.Contains(key, "/") {
			name = "conjur.org/" + key
		}
		fmt.Fprintf(&file, "%s=%s\n", name, strconv.Quote(annotations[key]))
	}
	return writeFile(t, "annotations", file.String())
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sources(t testing.TB, annotations, env dict) config.Sources {
	t.Helper()
	return config.Sources{
		Annotations: config.File{Name: write(t, annotations)},
		Getenv:      func(name string) string { return env[name] },
		Templates:   fstest.MapFS{},
	}
}

// load loads what must be right.
func load(t *testing.T, src config.Sources) (*config.Config, []config.Problem) {
	t.Helper()
	cfg, warnings, err := config.Load(src.Read())
	if err != nil {
		t.Fatal(err)
	}
	return cfg, warnings
}

// problems loads and gives what is wrong.
func problems(t *testing.T, src config.Sources) []config.Problem {
	t.Helper()
	_, _, err := config.Load(src.Read())
	if err == nil {
		return nil
	}
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
		t.Fatalf("got the error %#v, want an InvalidError", err)
	}
	return invalid.Problems
}

// assertOne wants exactly one problem, with this key and text.
func assertOne(t *testing.T, got []config.Problem, key, text string) {
	t.Helper()
	if len(got) != 1 || got[0].Key != key || !strings.Contains(got[0].Message, text) {
		t.Errorf("got %q, want one of %s with %q", got, key, text)
	}
}

func TestDefaults(t *testing.T) {
	cfg, warnings := load(t, sources(t, dict{"secrets-destination": "file", "conjur-secrets.g": "- k: a/b"}, connection))
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	if cfg.Mode != config.ModeInit || cfg.Destination != config.DestinationFile {
		t.Errorf("mode %q, destination %q", cfg.Mode, cfg.Destination)
	}
	if cfg.Refresh != (config.Refresh{}) || cfg.Retry != (config.Retry{Limit: 5, Interval: time.Second}) {
		t.Errorf("refresh %v, retry %v", cfg.Refresh, cfg.Retry)
	}
	if !cfg.RemoveDeleted || !cfg.ExitOnRevoked {
		t.Errorf("removal %v, exit %v", cfg.RemoveDeleted, cfg.ExitOnRevoked)
	}
	if cfg.Log != (config.Log{Level: "info", Format: "text"}) {
		t.Errorf("log %v", cfg.Log)
	}
	if cfg.Folders != (config.Folders{Secrets: "/conjur/secrets", Templates: "/conjur/templates", Status: "/conjur/status"}) {
		t.Errorf("folders %v", cfg.Folders)
	}
	if cfg.Removal != (config.Removal{Confirmations: 2, Grace: 10 * time.Second, Brake: 50, BrakeHold: 10 * time.Minute}) || !cfg.RestoreDeletedFiles {
		t.Errorf("removal %v, deleted files come back: %v", cfg.Removal, cfg.RestoreDeletedFiles)
	}
	if cfg.Signal != (config.Signal{}) || cfg.Server != (config.Server{}) || len(cfg.Identities) != 1 {
		t.Errorf("signal %v, server %v, identities %v", cfg.Signal, cfg.Server, cfg.Identities)
	}
	if cfg.Conjur.HTTPTimeout != time.Minute {
		t.Errorf("time-out %v", cfg.Conjur.HTTPTimeout)
	}
	want := &targets.Target{
		Key: "file/g", Group: "g", Format: targets.FormatYAML,
		Entries: []targets.Entry{{Alias: "k", Variable: "a/b", ContentType: targets.ContentText}},
		File:    targets.File{Path: "g.yaml", Mode: 0o644},
	}
	if got := fmt.Sprint(*cfg.Targets[0]); len(cfg.Targets) != 1 || got != fmt.Sprint(*want) {
		t.Errorf("target %s", got)
	}
}

func TestEverythingIsReportedAtOnce(t *testing.T) {
	src := sources(t, nil, dict{"CONJUR_APPLIANCE_URL": "http://conjur.example.com", "CONJUR_AUTHN_URL": "https://c/authn-k8s/x", "CONJUR_CERT_FILE": "/nowhere/ca.pem", "CONJUR_CLIENT_CERT_PATH": "/nowhere/client.pem"})
	src.Annotations.Name = writeFile(t, "annotations", `conjur.org/container-mode="init"
conjur.org/retry-count-limit="many"
conjur.org/conjur-secrets.a="- a/b/"
no value
conjur.org/secret-file-format.b="toml"
conjur.org/conjur-secrets.b="- a/b"
conjur.org/conjur-secrets.c="- a/b"
conjur.org/secret-file-path.c="../../x"
conjur.org/conjur-secrets.d="- a/b"
conjur.org/secret-file-path.d="same"
conjur.org/secret-file-permissions.d="0644"
conjur.org/conjur-secrets.e="- a/b"
conjur.org/secret-file-path.e="same"
conjur.org/conjur-secrets.f="- a/b"
conjur.org/secret-file-format.f="template"
conjur.org/secrets-refresh-interval="5m"
`)
	got := problems(t, src)
	for _, key := range []string{
		"conjur.org/retry-count-limit", "conjur.org/conjur-secrets.a", src.Annotations.Name + ":4",
		"conjur.org/secret-file-format.b", "conjur.org/secret-file-path.c", "conjur.org/secret-file-path.e",
		"conjur.org/secret-file-permissions.d", "conjur.org/secret-file-template.f",
		"conjur.org/secrets-refresh-interval", "conjur.org/secrets-destination",
		"CONJUR_APPLIANCE_URL", "CONJUR_ACCOUNT", "conjur.org/authn-identity", "CONJUR_CERT_FILE",
		"MY_POD_NAME", "MY_POD_NAMESPACE", "CONJUR_CLIENT_CERT_PATH",
	} {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(p config.Problem) bool { return p.Key != key })); n != 1 {
			t.Errorf("%s is reported %d times", key, n)
		}
	}
	if len(got) != 17 {
		t.Errorf("%d problems: %q", len(got), got)
	}
}

func TestProblemsAreErrors(t *testing.T) {
	_, _, err := config.Load(sources(t, group.with(dict{"secret-file-format.g": "toml", "log-level": "loud"}), connection).Read())
	var p config.Problem
	if !errors.As(err, &p) || p.Key != "conjur.org/log-level" {
		t.Errorf("errors.As finds %q", p)
	}
	want := `annotation conjur.org/log-level: "loud" is not a log level; use one of debug, info, warn, error
annotation conjur.org/secret-file-format.g: "toml" is not a format; use one of yaml, json, dotenv, bash, properties, template, java-properties, env-file, kubernetes-env, directory, jwks, jwks-public`
	if err.Error() != want {
		t.Errorf("got\n%v", err)
	}
}

func TestNoAnnotationsFile(t *testing.T) {
	src := sources(t, nil, connection)
	src.Annotations.Name = filepath.Join(t.TempDir(), "none")
	for _, p := range problems(t, src) {
		if strings.Contains(p.Key, src.Annotations.Name) {
			t.Errorf("the missing file is reported: %v", p)
		}
	}
}

func TestUnreadableAnnotationsFile(t *testing.T) {
	src := sources(t, nil, connection)
	src.Annotations.Name = t.TempDir() // a folder cannot be read as a file
	if got := problems(t, src); got[0].Key != src.Annotations.Name {
		t.Errorf("got %q", got)
	}
}

func TestBrokenLineCausesNoFurtherProblem(t *testing.T) {
	src := sources(t, nil, connection)
	src.Annotations.Name = writeFile(t, "annotations", `conjur.org/secrets-destination=file
conjur.org/conjur-secrets.g=- a/b
conjur.org/secret-file-path.g="x"
`)
	got := problems(t, src)
	if len(got) != 2 || got[0].Key != src.Annotations.Name+":1" || got[1].Key != src.Annotations.Name+":2" {
		t.Errorf("got %q", got)
	}
}

func TestFoldersFromFlags(t *testing.T) {
	src := sources(t, group.with(dict{"secret-file-format.g": "template", "secret-file-path.g": "../out/x"}), connection)
	dir := t.TempDir()
	src.Templates, src.TemplatesDir, src.SecretsDir, src.StatusDir = nil, dir, "/some/out", "/some/status"
	if err := os.WriteFile(filepath.Join(dir, "g.tpl"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _ := load(t, src)
	if cfg.Folders != (config.Folders{Secrets: "/some/out", Templates: dir, Status: "/some/status"}) {
		t.Errorf("folders %v", cfg.Folders)
	}
	if got := cfg.Targets[0]; got.File.Path != "x" || got.Template.File != "g.tpl" {
		t.Errorf("target %v", got)
	}
}

func TestNoSecretIsShown(t *testing.T) {
	env := connection.with(dict{"CONJUR_AUTHN_URL": "https://user:the-key-is-a-secret@c/authn", "CONJUR_APPLIANCE_URL": "https://c/?token=the-key-is-a-secret"})
	_, warnings, err := config.Load(sources(t, group, env).Read())
	if out := fmt.Sprint(warnings, err); strings.Contains(out, "the-key") {
		t.Error(out)
	}
	cfg, _ := load(t, sources(t, group, connection))
	if out := fmt.Sprintf("%v %+v %#v", cfg, *cfg, *cfg); strings.Contains(out, "the-key") {
		t.Error(out)
	}
	if string(cfg.Conjur.APIKey.Bytes()) != connection["CONJUR_AUTHN_API_KEY"] {
		t.Error("the API key is not there")
	}
}
