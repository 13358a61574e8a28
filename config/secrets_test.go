package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// definitionsFile is a file for a Deployment that serves the namespaces a and ns.
const definitionsFile = `
containerMode: standalone
secretsDestination: k8s_secrets
kubernetes:
  namespace: ns
  namespaces: [a, ns]
  secrets:
  - plain
  - name: db
    namespace: a
    create: true
    type: kubernetes.io/basic-auth
    map:
      password: {id: app/db/password}
      username: app/db/user
      p12: {id: acct:variable:app/p12, contentType: base64}
      "*": app/more/*
    groups:
      z.json: {secrets: [x/y], policyPath: app, format: json}
      app.conf:
        secrets: [{u: app/db/user}]
        template: '{{ secret "u" }}'
      from-map: {secrets: "*", templateConfigMap: tpl/app}
      plain: {secrets: [v]}
    restart: [deployment/shop, StatefulSet/db]
`

func TestDefinitions(t *testing.T) {
	cfg, warnings := load(t, fileSources(t, definitionsFile, nil, connection))
	if len(warnings) > 0 || names(cfg) != "a/db ns/plain" {
		t.Fatalf("got %s, %v", names(cfg), warnings)
	}
	db, plain := cfg.Kubernetes.Definitions[0], cfg.Kubernetes.Definitions[1]
	if plain.Configured != nil || !plain.Named || plain.Account != "acct" {
		t.Errorf("got %+v", plain)
	}
	text := func(alias, id string) targets.Entry {
		return targets.Entry{Alias: alias, Variable: id, ContentType: targets.ContentText}
	}
	got := db.Configured
	if want := []targets.Entry{text("password", "app/db/password"), text("username", "app/db/user"),
		{Alias: "p12", Variable: "app/p12", ContentType: targets.ContentBase64}, text("*", "app/more/*")}; !slices.Equal(got.Entries, want) {
		t.Errorf("entries %+v", got.Entries)
	}
	if s := got.Secret; !s.Create || s.Type != "kubernetes.io/basic-auth" || !slices.Equal(s.Restart, []string{"deployment/shop", "statefulset/db"}) {
		t.Errorf("got %+v", s)
	}
	want := []*targets.Target{
		{Group: "app.conf", Format: targets.FormatTemplate, Template: targets.Template{Inline: `{{ secret "u" }}`}, Entries: []targets.Entry{text("u", "app/db/user")}},
		{Group: "from-map", Format: targets.FormatTemplate, Template: targets.Template{ConfigMap: targets.ConfigMapKey{Namespace: "a", Name: "tpl", Key: "app"}}, Entries: []targets.Entry{text("*", "*")}},
		{Group: "plain", Format: targets.FormatYAML, Entries: []targets.Entry{text("v", "v")}},
		{Group: "z.json", Format: targets.FormatJSON, Entries: []targets.Entry{text("y", "app/x/y")}},
	}
	if !reflect.DeepEqual(got.Secret.Groups, want) {
		t.Errorf("groups %+v", got.Secret.Groups)
	}
}

func TestDefinitionsMakeTargets(t *testing.T) {
	cfg, _ := load(t, fileSources(t, definitionsFile, nil, connection))
	def := cfg.Kubernetes.Definitions[0]
	def.Missing = true
	target := definitions.FromSecret(def)
	if target.Key != "secret/a/db" || !target.Secret.Create || len(target.Secret.Faults) > 0 || len(target.Secret.Groups) != 4 {
		t.Errorf("got %+v with %+v", target, target.Secret)
	}
}

func TestDefinitionsRefuse(t *testing.T) {
	for name, c := range map[string]struct{ secret, place, want string }{
		"listed twice":        {"{name: plain}", "kubernetes.secrets[2].name", `"plain" is listed twice`},
		"not served":          {"{name: x, namespace: b}", "kubernetes.secrets[2].namespace", "is not served"},
		"made of nothing":     {"{name: x, create: true}", "kubernetes.secrets[2].create", "needs a map or groups"},
		"data key":            {"{name: x, map: {'a b': v}}", "kubernetes.secrets[2].map.a b", "characters other than"},
		"the map's own key":   {"{name: x, map: {conjur-map: v}}", "kubernetes.secrets[2].map.conjur-map", "that of the map itself"},
		"id":                  {"{name: x, map: {a: v/}}", "kubernetes.secrets[2].map.a", `map.a: the variable "v/" must not end in a slash`},
		"another account":     {"{name: x, map: {a: {id: 'other:variable:v'}}}", "kubernetes.secrets[2].map.a.id", `account "other"`},
		"one key, two names":  {"{name: x, map: {a.b: v, '*': a/b}}", "kubernetes.secrets[2].map.*", "have the data key \"a.b\""},
		"group and key":       {"{name: x, map: {a: v}, groups: {a: {secrets: [v]}}}", "kubernetes.secrets[2].groups.a.secrets", "the map also has the data key"},
		"group's name":        {"{name: x, groups: {'a b': {secrets: [v]}}}", "kubernetes.secrets[2].groups.a b.secrets", "cannot be a data key"},
		"group of the map":    {"{name: x, groups: {conjur-map: {secrets: [v]}}}", "kubernetes.secrets[2].groups.conjur-map.secrets", "cannot be a data key"},
		"no template":         {"{name: x, groups: {g: {secrets: [v], format: template}}}", "kubernetes.secrets[2].groups.g.secrets", "needs a template"},
		"unknown reader":      {"{name: x, groups: {g: {secrets: [v], format: dotenv, dotenvReaders: [denv]}}}", "kubernetes.secrets[2].groups.g.dotenvReaders", `"denv" is not a reader of dotenv`},
		"two templates":       {"{name: x, groups: {g: {secrets: [v], template: a, templateConfigMap: b/c}}}", "kubernetes.secrets[2].groups.g.templateConfigMap", "there is also a template in"},
		"broken template":     {"{name: x, groups: {g: {secrets: [v], template: '{{'}}}", "kubernetes.secrets[2].groups.g.template", "template: g:1"},
		"alias of a format":   {"{name: x, groups: {g: {secrets: [{'a b': v}], format: bash}}}", "kubernetes.secrets[2].groups.g.secrets", `"a b"`},
		"alias of a template": {"{name: x, groups: {g: {secrets: [v], template: '{{ secret \"w\" }}'}}}", "kubernetes.secrets[2].groups.g.template", `"w"`},
		"entry of a group":    {"{name: x, groups: {g: {secrets: [{a: {}}]}}}", "kubernetes.secrets[2].groups.g.secrets", "must be text"},
		"workload":            {"{name: x, restart: [pod/a]}", "kubernetes.secrets[2].restart", `"pod/a" is not a workload`},
		"no workload":         {"{name: x, restart: []}", "kubernetes.secrets[2].restart", "list is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			src := fileSources(t, definitionsFile+"  - "+c.secret+"\n", nil, connection)
			got := problems(t, src)
			if len(got) != 1 || got[0].Key != src.ConfigFile.Name+":26: "+c.place || !strings.Contains(got[0].Error(), c.want) {
				t.Errorf("got %q, want one of %s with %q", got, c.place, c.want)
			}
		})
	}
}

func TestDefinitionsReportAllAtOnce(t *testing.T) {
	src := fileSources(t, definitionsFile+"  - {name: x, map: {'a b': v, c: 'd/'}, groups: {g: {secrets: [a/]}}, restart: [pod/a, x]}\n  - {name: y, namespace: c}\n", nil, connection)
	if got := problems(t, src); len(got) != 6 {
		t.Errorf("got %q", got)
	}
}

func TestDefinitionsOutsideOfStandalone(t *testing.T) {
	const yaml = "secretsDestination: k8s_secrets\nkubernetes:\n  namespace: ns\n  secrets:\n"
	star := fileSources(t, yaml+"  - {name: x, create: True, map: {a: '*'}}\n", nil, connection)
	made, doubts := load(t, star)
	assertOne(t, doubts, star.ConfigFile.Name+":5: kubernetes.secrets[0].map.a", `"a" is one variable called *`)
	if !strings.HasPrefix(doubts[0].Message, `"a"`) || !made.Kubernetes.Definitions[0].Configured.Secret.Create {
		t.Errorf("got %q, %+v", doubts, made.Kubernetes.Definitions[0].Configured.Secret)
	}
	src := fileSources(t, yaml+"  - {name: x, namespace: other}\n", nil, connection)
	assertOne(t, problems(t, src), src.ConfigFile.Name+":5: kubernetes.secrets[0].namespace", `the Pod's namespace is "ns"`)
	src = fileSources(t, yaml+"  - {name: x, namespace: ns, restart: [deployment/a]}\n  - {name: y, type: Opaque}\n", nil, connection)
	cfg, warnings := load(t, src)
	if names(cfg) != "ns/x ns/y" || len(warnings) != 2 || !strings.Contains(warnings[0].Message, "standalone only") || !strings.Contains(warnings[1].Message, "create: true only") {
		t.Errorf("got %s, %v", names(cfg), warnings)
	}
	if cfg.Kubernetes.Definitions[0].Configured != nil {
		t.Errorf("got %+v", cfg.Kubernetes.Definitions[0])
	}
}

// TestStrongerListWins takes a list as a whole from its strongest source.
func TestStrongerListWins(t *testing.T) {
	const yaml = "kubernetes: {secrets: [{name: x, create: true, map: {k: v}}]}"
	cfg, _ := load(t, fileSources(t, yaml, job.with(dict{"k8s-secrets": "- y"}), inCluster))
	if names(cfg) != "ns/y" || cfg.Kubernetes.Definitions[0].Configured != nil {
		t.Errorf("got %s", names(cfg))
	}
	cfg, _ = load(t, fileSources(t, yaml, job, inCluster.with(dict{"K8S_SECRETS": "y"})))
	if names(cfg) != "ns/x" || cfg.Kubernetes.Definitions[0].Configured == nil {
		t.Errorf("got %s", names(cfg))
	}
}

func TestFilesIgnoreSecretsAndIdentities(t *testing.T) {
	src := fileSources(t, "kubernetes: {secrets: [x]}\nidentities: [{name: a, namespaces: [b]}]", group, connection)
	cfg, warnings := load(t, src)
	if len(warnings) != 2 || len(cfg.Identities) != 1 || !strings.HasSuffix(warnings[0].Key, ":1: kubernetes.secrets") || !strings.HasSuffix(warnings[1].Key, ":2: identities") {
		t.Errorf("got %v, %v", cfg.Identities, warnings)
	}
}
