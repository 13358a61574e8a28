package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/secretsync/syncer/config"
)

func TestEffective(t *testing.T) {
	src := sources(t, group.with(dict{
		"secrets-refresh-interval":  "90s",
		"secret-file-permissions.g": "rw-------",
		"conjur-secrets.t":          "- k: a\n  content-type: base64",
		"secret-file-format.t":      "template",
	}), jwt(t).with(dict{"JWT_TOKEN_PATH": "/tmp/token"}))
	src.Templates = fstest.MapFS{"t.tpl": {Data: []byte("x")}}
	cfg, _ := load(t, src)
	got, err := json.MarshalIndent(config.NewEffective(cfg), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "containerMode": "sidecar",
  "secretsDestination": "file",
  "refresh": {
    "enabled": true,
    "interval": "1m30s"
  },
  "retry": {
    "limit": 5,
    "intervalSeconds": 1
  },
  "removeDeletedSecrets": true,
  "removal": {
    "confirmations": 2,
    "grace": "10s",
    "brake": 50,
    "brakeHold": "10m0s"
  },
  "exitOnRevoked": true,
  "restoreDeletedFiles": "refresh",
  "secretsSizeLimit": 64,
  "server": {
    "status": false
  },
  "health": {
    "freshness": "4m30s",
    "ready": "delivered"
  },
  "log": {
    "level": "info",
    "format": "text"
  },
  "conjur": {
    "applianceUrl": "https://conjur.example.com",
    "authnUrl": "https://conjur.example.com/api/authn-jwt/my-service",
    "account": "acct",
    "jwtTokenPath": "/tmp/token",
    "httpTimeoutSeconds": 60
  },
  "targets": [
    {
      "name": "g",
      "secrets": [
        {
          "k": "a/b"
        }
      ],
      "path": "g.yaml",
      "format": "yaml",
      "permissions": "rw-------"
    },
    {
      "name": "t",
      "secrets": [
        {
          "k": "a",
          "content-type": "base64"
        }
      ],
      "path": "t.out",
      "format": "template",
      "permissions": "rw-r--r--"
    }
  ]
}`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

// TestEffectiveOfADeployment prints what a file of everything comes to.
func TestEffectiveOfADeployment(t *testing.T) {
	yaml := strings.Replace(definitionsFile, "containerMode:", `
restartApp: {user: x}
server: {address: ":9"}
leaderElection: {enabled: false, leaseName: other, leaseDuration: 20s}
identities:
- {name: keyed, namespaces: [a], secrets: [ns/plain], conjur: {login: host/k, apiKeyFile: KEY}}
containerMode:`, 1)
	src := severalSources(t, yaml, connection)
	src.Kubeconfig = "/k"
	cfg, _ := load(t, src)
	got, err := json.Marshal(config.NewEffective(cfg))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := json.Marshal(cfg.Identities[1].Conjur.APIKeyFile)
	for _, want := range []string{
		`"containerMode":"standalone","secretsDestination":"k8s_secrets"`,
		`"server":{"address":":9","status":false}`,
		`"identities":[{"name":"keyed","namespaces":["a"],"secrets":["ns/plain"],"conjur":{"login":"host/k","apiKeyFile":` + string(key) + `}}]`,
		`"kubernetes":{"namespaces":["a","ns"],"namespace":"ns","kubeconfig":"/k","secrets":[{"name":"plain"},{"name":"db","namespace":"a","create":true,"type":"kubernetes.io/basic-auth","map":{"password":{"id":"app/db/password"}`,
		`"app.conf":{"secrets":[{"u":"app/db/user"}],"template":"{{ secret \"u\" }}"}`,
		`"from-map":{"secrets":"*","templateConfigMap":"tpl/app"}`,
		`"restart":["deployment/shop","StatefulSet/db"]}]}`,
		`"leaderElection":{"enabled":false,"leaseName":"other","namespace":"ns","leaseDuration":"20s"},"restarts":{"quietPeriod":"10s","perHour":60}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "restartApp") || strings.Contains(string(got), "the-key") {
		t.Errorf("got %s", got)
	}
}

func TestEffectiveOfAJob(t *testing.T) {
	cfg, _ := load(t, sources(t, job, inCluster))
	got, _ := json.Marshal(config.NewEffective(cfg))
	if !strings.Contains(string(got), `"kubernetes":{"namespace":"ns"}}`) {
		t.Errorf("got %s", got)
	}
	cfg, _ = load(t, sources(t, group.with(dict{"restart-app-signal": "SIGHUP", "restart-app-command": "java", "restore-deleted-files": "never",
		"secret-file-format.g": "template", "secret-file-template-configmap.g": "tpl/k"}), connection))
	got, _ = json.Marshal(config.NewEffective(cfg))
	for _, want := range []string{`"restartApp":{"signal":"SIGHUP","command":"java"}`, `"restoreDeletedFiles":"never"`, `"format":"template","permissions":"rw-r--r--","templateConfigMap":"tpl/k"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestEffectiveHoldsNoSecret(t *testing.T) {
	cfg, _ := load(t, sources(t, group, connection))
	got, err := json.Marshal(config.NewEffective(cfg))
	if err != nil || strings.Contains(string(got), "the-key") {
		t.Errorf("%s, %v", got, err)
	}
	// The Config itself must not leak either, if someone marshals it.
	if got, err := json.Marshal(cfg); err != nil || strings.Contains(string(got), "the-key") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestValidation(t *testing.T) {
	for name, c := range map[string]struct {
		annotations dict
		want        string
	}{
		"right":   {group, `{"errors":[],"warnings":[]}`},
		"wrong":   {group.with(dict{"log-level": "x"}), `{"errors":[{"key":"conjur.org/log-level","message":"\"x\" is not a log level; use one of debug, info, warn, error"}],"warnings":[]}`},
		"warning": {group.with(dict{"zzzz": "x"}), `{"errors":[],"warnings":[{"key":"conjur.org/zzzz","message":"not a setting; ignored"}]}`},
	} {
		_, warnings, err := config.Load(sources(t, c.annotations, connection).Read())
		got, _ := json.Marshal(config.NewValidation(warnings, err))
		if string(got) != c.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := config.NewValidation(nil, errors.New("other")); len(got.Errors) != 1 || got.Errors[0].Message != "other" {
		t.Errorf("got %v", got)
	}
}

func TestExplain(t *testing.T) {
	src := sources(t, group.with(dict{
		"secrets-refresh-enabled": "true",
		"conjur-secrets.g":        "- k: a\n- l: a\n- m: b",
		"secret-file-format.g":    "template",
	}), connection)
	src.Templates = templates
	cfg, _ := load(t, src)
	for _, name := range []string{"g", "file/g"} {
		e, ok := config.Explain(cfg, name)
		if !ok || strings.Join(e.Variables, " ") != "a b" || e.Template != "/conjur/templates/g.tpl" {
			t.Errorf("got %v, %v", e, ok)
		}
		var kinds []string
		for _, trigger := range e.Triggers {
			kinds = append(kinds, trigger.Kind)
		}
		if strings.Join(kinds, " ") != "start poll destination template" {
			t.Errorf("triggers %q", kinds)
		}
	}
	if _, ok := config.Explain(cfg, "h"); ok {
		t.Error("a target that is not there is explained")
	}
	cfg.Mode = config.ModeInit
	if e, _ := config.Explain(cfg, "g"); len(e.Triggers) != 1 {
		t.Errorf("init has the triggers %v", e.Triggers)
	}
}

func TestExplainAConfigMap(t *testing.T) {
	cfg, _ := load(t, sources(t, group.with(dict{"secrets-refresh-enabled": "true", "restore-deleted-files": "never",
		"secret-file-format.g": "template", "secret-file-template-configmap.g": "tpl/k"}), connection))
	e, _ := config.Explain(cfg, "g")
	if n := len(e.Triggers); n != 4 || e.Triggers[2].When != "when the file is altered, within 5m0s" || e.Triggers[3].When != "when the ConfigMap tpl changes" {
		t.Errorf("got %+v", e.Triggers)
	}
}

func TestExplainAllVariables(t *testing.T) {
	cfg, _ := load(t, sources(t, group.with(dict{
		"secrets-refresh-enabled": "true", "conjur-secrets.g": "- k: a\n- '*'", "conjur-secrets-policy-path.g": "p",
	}), connection))
	e, _ := config.Explain(cfg, "g")
	if strings.Join(e.Variables, " ") != "p/a p/*" || len(e.Triggers) != 4 || e.Triggers[1].Kind != "list" {
		t.Errorf("got %+v", e)
	}
}
