package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/secretsync/syncer/config"
)

// fileSources has no annotations but those given.
func fileSources(t *testing.T, yaml string, annotations, env dict) config.Sources {
	t.Helper()
	src := sources(t, annotations, env)
	src.ConfigFile.Name = writeFile(t, "syncer.yaml", yaml)
	return src
}

const everything = `
containerMode: sidecar
secretsDestination: file
refresh: {enabled: true, interval: 90s}
retry: {limit: 7, intervalSeconds: 3}
removeDeletedSecrets: false
removal: {confirmations: 3, grace: 1m, brake: 40, brakeHold: 1h}
exitOnRevoked: false
restoreDeletedFiles: never
restartApp: {signal: SIGHUP, user: "1000", command: java}
server: {address: "127.0.0.1:9000", status: true, statusTokenFile: /status-token}
health: {freshness: 7m, ready: tried}
log: {level: warn, format: json}
conjur:
  login: host/file
kubernetes: {namespace: ns}
targets:
- name: map
  secrets: [{k: a/b}]
  format: template
  templateConfigMap: tpl/app.conf
- name: db
  secrets:
  - app/db/user
  - pass: app/db/password
    content-type: base64
  policyPath: prod
  path: db/creds
  format: json
  permissions: rw-r-----
- name: app.conf
  secrets: [{k: a/b}]
  format: template
  template: |
    {{ secret "k" }}
`

func TestFileAndAnnotationsGiveTheSame(t *testing.T) {
	env := connection.with(dict{"CONJUR_AUTHN_LOGIN": ""})
	fromFile, warnings := load(t, fileSources(t, everything, nil, env))
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	fromAnnotations, _ := load(t, sources(t, dict{
		"container-mode": "sidecar", "secrets-destination": "file",
		"secrets-refresh-enabled": "true", "secrets-refresh-interval": "90s",
		"retry-count-limit": "7", "retry-interval-sec": "3",
		"remove-deleted-secrets-enabled": "false", "exit-on-revoked": "false",
		"removal-confirmations": "3", "removal-grace": "60s", "removal-brake": "40%", "removal-brake-hold": "60m",
		"restore-deleted-files": "never", "server-address": "127.0.0.1:9000", "server-status": "true", "server-status-token-file": "/status-token", "health-freshness": "420s", "health-ready": "tried",
		"restart-app-signal": "SIGHUP", "restart-app-user": "1000", "restart-app-command": "java",
		"log-level": "warn", "log-format": "json", "authn-identity": "host/file",
		"conjur-secrets.map":                 "- k: a/b",
		"secret-file-format.map":             "template",
		"secret-file-template-configmap.map": "tpl/app.conf",
		"conjur-secrets.db":                  "- app/db/user\n- pass: app/db/password\n  content-type: base64\n",
		"conjur-secrets-policy-path.db":      "prod",
		"secret-file-path.db":                "db/creds",
		"secret-file-format.db":              "json",
		"secret-file-permissions.db":         "rw-r-----",
		"conjur-secrets.app.conf":            "- k: a/b",
		"secret-file-format.app.conf":        "template",
		"secret-file-template.app.conf":      "{{ secret \"k\" }}\n",
		"example.com/of-another-operator":    "x",
	}, env.with(dict{"MY_POD_NAMESPACE": "ns"})))
	if d := config.Compare(fromFile, fromAnnotations); len(d.Settings) > 0 || !reflect.DeepEqual(fromFile.Targets, fromAnnotations.Targets) {
		t.Errorf("%q differ: file\n%+v\nannotations\n%+v", d.Settings, fromFile, fromAnnotations)
	}
}

func TestStrongerSourceWins(t *testing.T) {
	src := fileSources(t, "log: {level: warn, format: json}\nretry: {limit: 2}\n", group.with(dict{"log-level": "error"}),
		connection.with(dict{"LOG_LEVEL": "debug", "LOG_FORMAT": "text", "RETRY_INTERVAL_SEC": "9"}))
	cfg, _ := load(t, src)
	if cfg.Log != (config.Log{Level: "error", Format: "json"}) || cfg.Retry.Limit != 2 || cfg.Retry.Interval.Seconds() != 9 {
		t.Errorf("log %v, retry %v", cfg.Log, cfg.Retry)
	}
}

func TestFileAddsToGroups(t *testing.T) {
	src := fileSources(t, "targets: [{name: h, secrets: [a]}]", group, connection)
	cfg, _ := load(t, src)
	if len(cfg.Targets) != 2 || cfg.Targets[0].Group != "g" || cfg.Targets[1].Group != "h" {
		t.Errorf("got %v", cfg.Targets)
	}
}

func TestFileNamedByTheEnvironment(t *testing.T) {
	src := fileSources(t, everything, nil, nil)
	env := connection.with(dict{config.ConfigFileVariable: src.ConfigFile.Name})
	src.ConfigFile.Name, src.Getenv = "", func(name string) string { return env[name] }
	if cfg, _ := load(t, src); len(cfg.Targets) != 3 {
		t.Errorf("got %v", cfg.Targets)
	}
}

func TestFileIsJSONToo(t *testing.T) {
	src := fileSources(t, `{"secretsDestination": "file", "targets": [{"name": "g", "secrets": ["a/b"]}]}`, nil, connection)
	load(t, src)
}

func TestMissingConfigFile(t *testing.T) {
	src := sources(t, group, connection)
	src.ConfigFile.Name = filepath.Join(t.TempDir(), "none.yaml")
	assertOne(t, problems(t, src), src.ConfigFile.Name, "no such file")
}

func TestEmptyFileSaysNothing(t *testing.T) {
	for _, text := range []string{"", "# a comment\n", "{}"} {
		load(t, fileSources(t, text, group, connection))
	}
}

// refused is what the loader and the schema both refuse, each for one reason.
var refused = map[string]struct {
	yaml       string
	place, msg string // place: after the file's name
}{
	"unknown setting":         {"containerMod: init", ":1: containerMod", "did you mean containerMode?"},
	"unknown object":          {"x: {y: z}", ":1: x", "not a setting"},
	"unknown in an object":    {"log:\n  levle: info", ":2: log.levle", "did you mean log.level?"},
	"object wanted":           {"log: info", ":1: log", "must be a map"},
	"no value":                {"log:\n  level:", ":2: log.level", "has no value"},
	"enumeration":             {"containerMode: daemon", ":1: containerMode", "is not a container mode"},
	"integer wanted":          {"retry: {limit: five}", ":1: retry.limit", "must be an integer"},
	"integer in quotes":       {"retry: {limit: '5'}", ":1: retry.limit", "must be an integer"},
	"integer too small":       {"retry: {limit: -2}", ":1: retry.limit", "less than -1"},
	"integer too big":         {"conjur: {httpTimeoutSeconds: 601}", ":1: conjur.httpTimeoutSeconds", "more than 600"},
	"Boolean wanted":          {"removeDeletedSecrets: 'true'", ":1: removeDeletedSecrets", "must be true or false"},
	"text wanted":             {"conjur: {account: 123}", ":1: conjur.account", "put 123 in quotes"},
	"text wanted, not a list": {"conjur: {account: [a]}", ":1: conjur.account", "must be text, not a list"},
	"list wanted":             {"kubernetes: {secrets: a}", ":1: kubernetes.secrets", "must be a list"},
	"names wanted":            {"kubernetes: {namespaces: [{}]}", ":1: kubernetes.namespaces", "must be a name"},
	"API key":                 {"conjur: {apiKey: x}", ":1: conjur.apiKey", "not a setting"},
	"targets not a list":      {"targets: {}", ":1: targets", "must be a list"},
	"target not a map":        {"targets: [x]", ":1: targets[0]", "must be a map"},
	"target without name":     {"targets: [{secrets: [a]}]", ":1: targets[0]", "name is missing"},
	"target without secrets":  {"targets: [{name: a}]", ":1: targets[0]", "secrets is missing"},
	"name not text":           {"targets: [{name: 1, secrets: [a]}]", ":1: targets[0].name", "must be text"},
	"unknown in a target":     {"targets: [{name: a, secrets: [a], formt: json}]", ":1: targets[0].formt", "did you mean format?"},
	"format":                  {"targets: [{name: a, secrets: [a], format: toml}]", ":1: targets[0].format", "is not a format"},
	"octal permissions":       {"targets: [{name: a, secrets: [a], permissions: '0644'}]", ":1: targets[0].permissions", "is not a file mode"},
	"a share":                 {"removal: {brake: 101}", ":1: removal.brake", "is not a percentage"},
	"a share in words":        {"removal: {brake: half}", ":1: removal.brake", "is not a percentage"},
	"a share of no type":      {"removal: {brake: true}", ":1: removal.brake", "must be a number or off"},
	"one too few":             {"removal: {confirmations: 0}", ":1: removal.confirmations", "less than 1"},
	"an address":              {"server: {address: here}", ":1: server.address", "not an address to listen on"},
	"a command":               {"restartApp: {command: /bin/java}", ":1: restartApp.command", "without folders"},
	"a user":                  {"restartApp: {user: 'a b'}", ":1: restartApp.user", "neither a user's number"},
	"no signal":               {"restartApp: {signal: HUP}", ":1: restartApp.signal", "did you mean SIGHUP?"},
	"a way with files":        {"restoreDeletedFiles: always", ":1: restoreDeletedFiles", "use one of refresh, never"},
	"no ConfigMap":            {"targets: [{name: a, secrets: [a], format: template, templateConfigMap: A/b}]", ":1: targets[0].templateConfigMap", "lower-case"},
	"not a namespace":         {"leaderElection: {namespace: a.b}", ":1: leaderElection.namespace", "is not a name"},
	"not a Lease":             {"leaderElection: {leaseName: A}", ":1: leaderElection.leaseName", "lower-case"},
	"Secret without name":     {"kubernetes: {secrets: [{create: true}]}", ":1: kubernetes.secrets[0]", "name is missing"},
	"Secret of no name":       {"kubernetes: {secrets: ['']}", ":1: kubernetes.secrets[0]", "name is missing"},
	"Secret's name":           {"kubernetes: {secrets: [ok, Not_ok]}", ":1: kubernetes.secrets[1]", "lower-case"},
	"unknown in a Secret":     {"kubernetes: {secrets: [{name: a, created: true}]}", ":1: kubernetes.secrets[0].created", "did you mean create?"},
	"Secret's type":           {"kubernetes: {secrets: [{name: a, type: kubernetes.io/service-account-token}]}", ":1: kubernetes.secrets[0].type", "is not a type of Secret that Syncer makes"},
	"no id":                   {"kubernetes: {secrets: [{name: a, map: {k: {contentType: text}}}]}", ":1: kubernetes.secrets[0].map.k", "id is missing"},
	"content type":            {"kubernetes: {secrets: [{name: a, map: {k: {id: v, contentType: hex}}}]}", ":1: kubernetes.secrets[0].map.k.contentType", "is not a content type"},
	"an older content type":   {"kubernetes: {secrets: [{name: a, map: {k: {id: v, content-type: text}}}]}", ":1: kubernetes.secrets[0].map.k.content-type", "did you mean contentType?"},
	"map not a map":           {"kubernetes: {secrets: [{name: a, map: [k]}]}", ":1: kubernetes.secrets[0].map", "must be a map"},
	"directory in a Secret":   {"kubernetes: {secrets: [{name: a, groups: {g: {secrets: [v], format: directory}}}]}", ":1: kubernetes.secrets[0].groups.g.format", "is not a format"},
	"path in a Secret":        {"kubernetes: {secrets: [{name: a, groups: {g: {secrets: [v], path: x}}}]}", ":1: kubernetes.secrets[0].groups.g.path", "not a setting"},
	"group without secrets":   {"kubernetes: {secrets: [{name: a, groups: {g: {format: json}}}]}", ":1: kubernetes.secrets[0].groups.g", "secrets is missing"},
	"identities not a list":   {"identities: {}", ":1: identities", "must be a list"},
	"identity without name":   {"identities: [{namespaces: [a]}]", ":1: identities[0]", "name is missing"},
	"identity's name":         {"identities: [{name: A.b, namespaces: [a]}]", ":1: identities[0].name", "is not a name"},
	"API key of an identity":  {"identities: [{name: a, conjur: {apiKey: x}}]", ":1: identities[0].conjur.apiKey", "not a setting"},
	"integer permissions":     {"targets: [{name: a, secrets: [a], permissions: 0644}]", ":1: targets[0].permissions", "in quotes"},
}

func TestFileRefuses(t *testing.T) {
	for name, c := range refused {
		t.Run(name, func(t *testing.T) { wantRefused(t, c.yaml, c.place, c.msg) })
	}
}

// wantRefused wants that a file has a problem with msg at a place of it.
func wantRefused(t *testing.T, yaml, place, msg string) {
	t.Helper()
	src := fileSources(t, yaml, group, connection)
	got := problems(t, src)
	i := slices.IndexFunc(got, func(p config.Problem) bool { return p.Key == src.ConfigFile.Name+place })
	if i < 0 || !strings.Contains(got[i].Message, msg) {
		t.Errorf("got %q, want one of %s with %q", got, place, msg)
	}
}

func TestFileRefusesWhatASchemaCannotSay(t *testing.T) {
	for name, c := range map[string]struct{ yaml, place, msg string }{
		"not YAML":              {"a: [", "", "not valid YAML"},
		"two documents":         {"{}\n---\n{}\n", "", "more than one YAML document"},
		"a list":                {"[]", ":1", "must be a map"},
		"written twice":         {"containerMode: sidecar\ncontainerMode: init", ":2: containerMode", "written twice"},
		"short grace":           {"removal: {grace: -1s}", ":1: removal.grace", "too short"},
		"short hold":            {"removal: {brakeHold: 0s}", ":1: removal.brakeHold", "at least 1s"},
		"short lease":           {"leaderElection: {leaseDuration: 2s}", ":1: leaderElection.leaseDuration", "at least 3s"},
		"a signal that stops":   {"restartApp: {signal: SIGSTOP}", ":1: restartApp.signal", "stops a process forever"},
		"no such signal":        {"restartApp: {signal: SIGNOTHING}", ":1: restartApp.signal", "is not a signal"},
		"a port too high":       {"server: {address: ':70000'}", ":1: server.address", "not an address"},
		"short interval":        {"refresh: {interval: 10ms}", ":1: refresh.interval", "at least 1s"},
		"one name, twice":       {"targets:\n- {name: a, secrets: [a]}\n- {name: a, secrets: [a]}", ":3: targets[1].name", "another target, or a group in the annotations"},
		"name of an annotation": {"targets: [{name: g, secrets: [a]}]", ":1: targets[0].name", "or a group in the annotations"},
		"entry":                 {"targets:\n- name: a\n  secrets:\n  - a\n  - b/", ":3: targets[0].secrets", "line 5:"},
		"path":                  {"targets: [{name: a, secrets: [a], path: ../x}]", ":1: targets[0].path", "leaves the folder"},
		"default path":          {"targets: [{name: a, secrets: [a], path: b.yaml}, {name: b, secrets: [b]}]", ":1: targets[1].path", "have the same path"},
		"itself":                {"log: &x {log: *x}", ":1: log.log", "not a setting"},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, c.yaml, c.place, c.msg) })
	}
}

func TestFileListsOfNames(t *testing.T) {
	src := fileSources(t, "secretsDestination: k8s_secrets\nkubernetes: {namespace: ns, secrets: []}", nil, connection)
	got := problems(t, src)
	if got[0].Key != src.ConfigFile.Name+":2: kubernetes.secrets" || !strings.Contains(got[0].Message, "list is empty") {
		t.Errorf("got %q", got)
	}
	src = fileSources(t, "secretsDestination: k8s_secrets\nkubernetes: {namespace: ns, secrets: [b, a]}", nil, connection)
	if cfg, _ := load(t, src); names(cfg) != "ns/a ns/b" {
		t.Errorf("got %s", names(cfg))
	}
}

func TestFileAnchors(t *testing.T) {
	src := fileSources(t, `
secretsDestination: file
targets:
- {name: a, secrets: &s [{k: x}], permissions: &p rw-------}
- {name: b, secrets: *s, permissions: *p}
`, nil, connection)
	cfg, _ := load(t, src)
	if got := cfg.Targets[1]; len(got.Entries) != 1 || got.Entries[0].Variable != "x" || got.File.Mode != 0o600 {
		t.Errorf("got %v", got)
	}
}

func TestFileTemplateFromFolder(t *testing.T) {
	src := fileSources(t, "secretsDestination: file\ntargets: [{name: g, secrets: [k], format: template}]", nil, connection)
	src.Templates = fstest.MapFS{"g.tpl": {Data: []byte("x")}}
	if cfg, _ := load(t, src); cfg.Targets[0].Template.File != "g.tpl" {
		t.Errorf("got %v", cfg.Targets[0])
	}
}

// TestExamplesOfTheReference loads every configuration file that is shown
// there.
func TestExamplesOfTheReference(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		yaml, _, _ := strings.Cut(part, "```")
		if !strings.Contains(yaml, "secretsDestination:") {
			continue // annotations
		}
		examples++
		src := fileSources(t, yaml, nil, inCluster.with(dict{"JWT_TOKEN_PATH": writeFile(t, "token", "x"), "CONJUR_AUTHN_API_KEY": ""}))
		src.Assume.Files, src.Assume.Connection = true, true
		load(t, src)
	}
	if examples < 3 {
		t.Errorf("%d examples", examples)
	}
}

// TestStandaloneIgnoresAnnotations: those that nobody named, if the configuration file is
// that of a standalone. A standalone of annotations alone is one for the Secrets Provider.
func TestStandaloneIgnoresAnnotations(t *testing.T) {
	settings := dict{"log-level": "debug", "namespace-allowlist": "other"}
	standalone := "containerMode: standalone\nkubernetes: {namespaces: [shop]}\n"
	for name, c := range map[string]struct {
		file, mode  string
		annotations dict
		named, uses bool
	}{
		"mode in the file":             {standalone, "", settings, false, false},
		"mode in the environment":      {"kubernetes: {namespaces: [shop]}\n", "standalone", settings, false, false},
		"named":                        {standalone, "", settings, true, true},
		"mode in the annotations":      {"log: {format: json}\n", "", settings.with(dict{"container-mode": "standalone"}), false, true},
		"without a configuration file": {"", "standalone", settings, false, true},
	} {
		src := fileSources(t, c.file, c.annotations, connection.with(dict{"CONTAINER_MODE": c.mode, "SECRETS_DESTINATION": "k8s_secrets", "MY_POD_NAMESPACE": "shop"}))
		src.AnnotationsNamed = c.named
		if c.file == "" {
			src.ConfigFile.Name = ""
		}
		cfg, warnings := load(t, src)
		if uses := cfg.Log.Level == "debug"; uses != c.uses || cfg.Mode != config.ModeStandalone {
			t.Errorf("%s: mode %s uses the annotations: %t", name, cfg.Mode, uses)
		}
		warned := len(warnings) > 0 && warnings[0].Key == src.Annotations.Name
		if warned == c.uses {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
}

// TestSourcesNameTheirFiles: without names, nothing is read that may lie on the machine.
func TestSourcesNameTheirFiles(t *testing.T) {
	if got := (config.Sources{}).Read(); got.Annotations.Err != nil || got.ConfigFile.Err != nil || got.Templates != nil {
		t.Errorf("read %+v", got)
	}
}
