package config

import (
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sidecarFile and clusterFile say all that the tables have, but for what needs
// the environment or another authenticator, each setting in a text of its own.
const sidecarFile = `
containerMode: sidecar
secretsDestination: file
refresh: {enabled: true, interval: 90s}
retry: {limit: 7, intervalSeconds: 3}
removeDeletedSecrets: false
removal: {confirmations: 3, grace: 1m, brake: 40, brakeHold: 1h}
exitOnRevoked: false
restoreDeletedFiles: never
restartApp: {signal: SIGHUP, user: "1000", command: java, inPlace: true, every: 1m, warning: 1s}
server: {address: "127.0.0.1:9000", status: true, statusTokenFile: /status-token}
health: {freshness: 7m, ready: tried}
log: {level: warn, format: json}
tracing: {console: false, jaegerUrl: "http://old"}
conjur:
  applianceUrl: https://old
  authnUrl: https://old/authn
  account: mine
  login: host/file
  apiKeyFile: /key/file
  jwtTokenPath: /token
  clientCertWaitSeconds: 3
  azureClientId: old
  metadataUrl: http://old
  clientCertFile: /cert
  clientKeyFile: /key
  tokenTimeout: 2m
  certFile: /ca
  httpTimeoutSeconds: 9
kubernetes: {namespace: ns}
targets:
- {name: db, secrets: [{k: a/b}], policyPath: prod, path: db/creds, format: json, permissions: rw-r-----}
- {name: inline, secrets: [{k: a/b}], format: template, template: old}
- {name: env, secrets: [{k: a/b}], format: dotenv, dotenvReaders: [node, bun]}
- {name: ref, secrets: [{k: a/b}], format: template, templateConfigMap: tpl/old}
`

const nodeFile = `
containerMode: sidecar
secretsDestination: file
nodeSecretsBase: data
targets: [{name: db, secrets: [{k: data/apps/b}], nodeSecrets: true}]
`

const smallFile = `
containerMode: init
secretsDestination: file
targets: [{name: db, secrets: [{k: a/b}]}]
`

const clusterFile = `
containerMode: standalone
secretsDestination: k8s_secrets
kubernetes:
  namespace: ns
  kubeconfig: /old
  namespaces: [ns, shop, till]
  secrets:
  - one
  - two
  - three
  - {name: four, pullSecretFor: [earlier]}
  - name: db
    namespace: shop
    create: true
    type: Opaque
    map: {k: {id: a/old, contentType: text}}
    restart: [deployment/old]
    groups:
      plain: {secrets: [{k: a/plain}], policyPath: prod, format: json}
      inline: {secrets: [{k: a/b}], format: template, template: old}
      ref: {secrets: [{k: a/b}], format: template, templateConfigMap: tpl/old}
      env: {secrets: [{k: a/b}], format: dotenv, dotenvReaders: [node, bun]}
leaderElection: {enabled: true, leaseName: old, namespace: ns, leaseDuration: 20s}
restarts: {quietPeriod: 5s, perHour: 9}
namespaceMemory: 7
identities:
- name: shop
  namespaces: [shop]
  conjur: {login: host/shop, authnUrl: "https://old/authn-jwt/old", account: mine, jwtTokenPath: /shop/token}
- name: till
  secrets: [ns/one]
  conjur: {authnUrl: "https://old/authn-cert/old", clientCertFile: /till/cert, clientKeyFile: /till/key}
- name: azure
  namespaces: [till]
  conjur: {login: host/azure, authnUrl: "https://old/authn-azure/old", azureClientId: old}
- name: key
  secrets: [ns/two, ns/three]
  conjur: {login: host/key, authnUrl: "https://old/authn", apiKeyFile: /key/file}
`

const jobFile = `
containerMode: application
secretsDestination: k8s_secrets
kubernetes: {namespace: ns, secrets: [one]}
`

var connected = map[string]string{
	"CONJUR_APPLIANCE_URL": "https://old", "CONJUR_ACCOUNT": "mine", "CONJUR_AUTHN_LOGIN": "host/env", "CONJUR_AUTHN_API_KEY": "old",
	"MY_NODE_NAME": "n1",
}

// change is a setting that changes alone.
type change struct {
	file     string
	old, new string // texts of the file, or, if old begins with $, a variable and its value
	settings string // that have changed, sorted
	lanes    []string
}

// certificate stands for a PEM text.
const certificate = "PEM"

// all are the lanes of clusterFile.
var all = []string{"", "azure", "key", "shop", "till"}

// changes are those of each setting, but for those of rotation.
var changes = map[string]change{
	"containerMode":                {smallFile, "init", "application", "containerMode", nil},
	"secretsDestination":           {smallFile + "kubernetes: {namespace: ns}\n", "n: file", "n: k8s_secrets", "kubernetes.namespaces namespaceMemory restarts.perHour restarts.quietPeriod secretsDestination targets.db", nil},
	"refresh.enabled":              {sidecarFile, "{enabled: true, interval: 90s}", "{enabled: false}", "health.freshness refresh.enabled refresh.interval", nil},
	"refresh.interval":             {sidecarFile, "90s", "2m", "refresh.interval", nil},
	"retry.limit":                  {sidecarFile, "limit: 7", "limit: 8", "retry.limit", nil},
	"retry.intervalSeconds":        {sidecarFile, "Seconds: 3}", "Seconds: 4}", "retry.intervalSeconds", nil},
	"nodeSecretsBase":              {nodeFile, "Base: data", "Base: data/apps", "nodeSecretsBase targets.db.secrets", nil},
	"removeDeletedSecrets":         {sidecarFile, "DeletedSecrets: false", "DeletedSecrets: true", "removeDeletedSecrets", nil},
	"removal.confirmations":        {sidecarFile, "confirmations: 3", "confirmations: 4", "removal.confirmations", nil},
	"removal.grace":                {sidecarFile, "grace: 1m", "grace: 3m", "removal.grace", nil},
	"removal.brake":                {sidecarFile, "brake: 40", "brake: 41", "removal.brake", nil},
	"removal.brakeHold":            {sidecarFile, "brakeHold: 1h", "brakeHold: 2h", "removal.brakeHold", nil},
	"exitOnRevoked":                {sidecarFile, "exitOnRevoked: false", "exitOnRevoked: true", "exitOnRevoked", nil},
	"restoreDeletedFiles":          {sidecarFile, "never", "refresh", "restoreDeletedFiles", nil},
	"secretsSizeLimit":             {smallFile, "containerMode", "secretsSizeLimit: 3\ncontainerMode", "secretsSizeLimit", nil},
	"restartApp.signal":            {sidecarFile, "SIGHUP", "SIGTERM", "restartApp.signal", nil},
	"restartApp.user":              {sidecarFile, `"1000"`, `"1001"`, "restartApp.user", nil},
	"restartApp.inPlace":           {sidecarFile, "inPlace: true, every: 1m, warning: 1s", "inPlace: false", "restartApp.every restartApp.inPlace restartApp.warning", nil},
	"restartApp.every":             {sidecarFile, "every: 1m", "every: 2m", "restartApp.every", nil},
	"restartApp.warning":           {sidecarFile, "warning: 1s", "warning: 2s", "restartApp.warning", nil},
	"restartApp.command":           {sidecarFile, "java", "perl", "restartApp.command", nil},
	"server.address":               {sidecarFile, ":9000", ":9001", "server.address", nil},
	"server.status":                {sidecarFile, "status: true", "status: false", "server.status", nil},
	"server.statusTokenFile":       {sidecarFile, "/status-token", "/other-token", "server.statusTokenFile", nil},
	"health.freshness":             {sidecarFile, "freshness: 7m", "freshness: 8m", "health.freshness", nil},
	"health.ready":                 {sidecarFile, "tried", "delivered", "health.ready", nil},
	"log.level":                    {sidecarFile, "level: warn", "level: error", "log.level", nil},
	"log.debug":                    {smallFile, "containerMode", "log: {debug: true}\ncontainerMode", "log.level", nil},
	"log.format":                   {sidecarFile, "format: json}\ntr", "format: text}\ntr", "log.format", nil},
	"tracing.console":              {sidecarFile, "console: false", "console: true", "", nil},
	"tracing.jaegerUrl":            {sidecarFile, `"http://old"`, `"http://new"`, "", nil},
	"conjur.applianceUrl":          {sidecarFile, "applianceUrl: https://old", "applianceUrl: https://new", "conjur.applianceUrl", []string{""}},
	"conjur.authnUrl":              {sidecarFile, "authnUrl: https://old", "authnUrl: https://new", "conjur.authnUrl", []string{""}},
	"conjur.account":               {clusterFile, "$CONJUR_ACCOUNT", "new", "conjur.account identities.azure.conjur.account identities.key.conjur.account identities.till.conjur.account", []string{"", "azure", "key", "till"}},
	"conjur.login":                 {clusterFile, "$CONJUR_AUTHN_LOGIN", "host/new", "conjur.login", []string{""}},
	"conjur.apiKey":                {clusterFile, "$CONJUR_AUTHN_API_KEY", "new", "conjur.apiKey", []string{""}},
	"conjur.apiKeyFile":            {sidecarFile, "/key/file", "/key/new", "conjur.apiKeyFile", []string{""}},
	"conjur.jwtTokenPath":          {sidecarFile, "/token", "/new", "conjur.jwtTokenPath", []string{""}},
	"conjur.clientCertPath":        {clusterFile, "$CONJUR_CLIENT_CERT_PATH", "/new", "conjur.clientCertPath", all},
	"conjur.clientCertWaitSeconds": {sidecarFile, "WaitSeconds: 3", "WaitSeconds: 4", "conjur.clientCertWaitSeconds", []string{""}},
	"conjur.azureClientId":         {sidecarFile, "Id: old", "Id: new", "conjur.azureClientId", []string{""}},
	"conjur.metadataUrl":           {sidecarFile, "http://old\n", "http://new\n", "conjur.metadataUrl", []string{""}},
	"conjur.clientCertFile":        {sidecarFile, "/cert\n", "/new\n", "conjur.clientCertFile", []string{""}},
	"conjur.clientKeyFile":         {sidecarFile, "/key\n", "/new\n", "conjur.clientKeyFile", []string{""}},
	"conjur.tokenTimeout":          {sidecarFile, "2m", "3m", "conjur.tokenTimeout", []string{""}},
	"conjur.sslCertificate":        {clusterFile, "$CONJUR_SSL_CERTIFICATE", certificate, "conjur.sslCertificate", all},
	"conjur.certFile":              {sidecarFile, "/ca\n", "/new\n", "conjur.certFile", []string{""}},
	"conjur.httpTimeoutSeconds":    {sidecarFile, "Seconds: 9", "Seconds: 8", "conjur.httpTimeoutSeconds", []string{""}},
	"kubernetes.secrets":           {jobFile, "[one]", "[one, two]", "kubernetes.secrets.ns/two", nil},
	"kubernetes.namespaces":        {clusterFile, "shop, till]", "shop, till, more]", "kubernetes.namespaces", nil},
	"kubernetes.namespaceSelector": {"containerMode: standalone\nsecretsDestination: k8s_secrets\nkubernetes: {namespace: ns, namespaceSelector: team=a}\n", "team=a", "team=b", "kubernetes.namespaceSelector", nil},
	"kubernetes.namespace":         {sidecarFile, "namespace: ns", "namespace: new", "kubernetes.namespace targets.ref.templateConfigMap", nil},
	"kubernetes.podName":           {smallFile, "$MY_POD_NAME", "new", "kubernetes.podName", nil},
	"kubernetes.nodeName":          {nodeFile, "$MY_NODE_NAME", "new", "kubernetes.nodeName targets.db.secrets", nil},
	"kubernetes.kubeconfig":        {clusterFile, "fig: /old", "fig: /new", "kubernetes.kubeconfig", nil},
	"leaderElection.enabled":       {clusterFile, "enabled: true", "enabled: false", "leaderElection.enabled", nil},
	"leaderElection.leaseName":     {clusterFile, "leaseName: old", "leaseName: new", "leaderElection.leaseName", nil},
	"leaderElection.namespace":     {clusterFile, "namespace: ns, l", "namespace: new, l", "leaderElection.namespace", nil},
	"leaderElection.leaseDuration": {clusterFile, "20s", "30s", "leaderElection.leaseDuration", nil},
	"restarts.quietPeriod":         {clusterFile, "5s", "6s", "restarts.quietPeriod", nil},
	"restarts.perHour":             {clusterFile, "perHour: 9", "perHour: 8", "restarts.perHour", nil},
	"namespaceMemory":              {clusterFile, "Memory: 7", "Memory: 9", "namespaceMemory", nil},

	"targets":                   {smallFile, "targets: [", "targets: [{name: more, secrets: [{k: a/b}]}, ", "targets.more", nil},
	"targets.name":              {smallFile, "db", "new", "targets.db targets.new", nil},
	"targets.secrets":           {sidecarFile, "{k: a/b}], policy", "{k: a/c}], policy", "targets.db.secrets", nil},
	"targets.policyPath":        {sidecarFile, "prod", "test", "targets.db.secrets", nil},
	"targets.nodeSecrets":       {nodeFile, "nodeSecrets: true", "nodeSecrets: false", "targets.db.secrets", nil},
	"targets.path":              {sidecarFile, "db/creds", "db/new", "targets.db.path", nil},
	"targets.format":            {sidecarFile, "format: json, p", "format: yaml, p", "targets.db.format", nil},
	"targets.dotenvReaders":     {sidecarFile, "[node, bun]", "node", "targets.env.dotenvReaders", nil},
	"targets.permissions":       {sidecarFile, "rw-r-----", "rw-------", "targets.db.permissions", nil},
	"targets.template":          {sidecarFile, "template: old", "template: new", "targets.inline.template", nil},
	"targets.templateConfigMap": {sidecarFile, "tpl/old", "tpl/new", "targets.ref.templateConfigMap", nil},

	"kubernetes.secrets.name":          {clusterFile, "name: db", "name: new", "kubernetes.secrets.shop/db kubernetes.secrets.shop/new", nil},
	"kubernetes.secrets.namespace":     {clusterFile, "namespace: shop", "namespace: ns", "kubernetes.secrets.ns/db kubernetes.secrets.shop/db", nil},
	"kubernetes.secrets.create":        {clusterFile, "create: true", "create: false", "kubernetes.secrets.shop/db.create", nil},
	"kubernetes.secrets.type":          {clusterFile, "Opaque", "kubernetes.io/tls", "kubernetes.secrets.shop/db.type", nil},
	"kubernetes.secrets.map":           {clusterFile, "k: {id", "new: {id", "kubernetes.secrets.shop/db.map", nil},
	"kubernetes.secrets.groups":        {clusterFile, "plain:", "new:", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.pullSecretFor": {clusterFile, "earlier", "later", "kubernetes.secrets.ns/four.pullSecretFor", nil},
	"kubernetes.secrets.restart":       {clusterFile, "deployment/old", "deployment/new", "kubernetes.secrets.shop/db.restart", nil},

	"kubernetes.secrets.groups.secrets":           {clusterFile, "a/plain", "a/new", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.groups.policyPath":        {clusterFile, "prod", "test", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.groups.format":            {clusterFile, "json", "yaml", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.groups.dotenvReaders":     {clusterFile, "[node, bun]", "node", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.groups.template":          {clusterFile, "template: old", "template: new", "kubernetes.secrets.shop/db.groups", nil},
	"kubernetes.secrets.groups.templateConfigMap": {clusterFile, "tpl/old", "tpl/new", "kubernetes.secrets.shop/db.groups", nil},

	"kubernetes.secrets.map.id":          {clusterFile, "a/old", "a/new", "kubernetes.secrets.shop/db.map", nil},
	"kubernetes.secrets.map.contentType": {clusterFile, "text", "base64", "kubernetes.secrets.shop/db.map", nil},

	"identities":                       {clusterFile, "identities:\n", "identities:\n- {name: more, secrets: [ns/four], conjur: {login: host/more, apiKeyFile: /key/more}}\n", "identities.more", []string{"more"}},
	"identities.name":                  {clusterFile, "name: shop", "name: new", "identities.new identities.shop", []string{"new", "shop"}},
	"identities.namespaces":            {clusterFile, "namespaces: [till]", "namespaces: [till, ns]", "identities.azure.namespaces", nil},
	"identities.secrets":               {clusterFile, "ns/three", "ns/four", "identities.key.secrets", nil},
	"identities.conjur.login":          {clusterFile, "host/shop", "host/new", "identities.shop.conjur.login", []string{"shop"}},
	"identities.conjur.authnUrl":       {clusterFile, "authn-jwt/old", "authn-jwt/new", "identities.shop.conjur.authnUrl", []string{"shop"}},
	"identities.conjur.account":        {clusterFile, "mine", "new", "identities.shop.conjur.account", []string{"shop"}},
	"identities.conjur.apiKeyFile":     {clusterFile, "/key/file", "/key/new", "identities.key.conjur.apiKeyFile", []string{"key"}},
	"identities.conjur.jwtTokenPath":   {clusterFile, "/shop/token", "/new", "identities.shop.conjur.jwtTokenPath", []string{"shop"}},
	"identities.conjur.azureClientId":  {clusterFile, "Id: old", "Id: new", "identities.azure.conjur.azureClientId", []string{"azure"}},
	"identities.conjur.clientCertFile": {clusterFile, "/till/cert", "/new", "identities.till.conjur.clientCertFile", []string{"till"}},
	"identities.conjur.clientKeyFile":  {clusterFile, "/till/key", "/new", "identities.till.conjur.clientKeyFile", []string{"till"}},
}

func TestChangingASettingTouchesWhatItsScopeSays(t *testing.T) {
	maps.Copy(changes, rotatedChanges(t))
	for name, scope := range Scopes() {
		t.Run(name, func(t *testing.T) {
			c, ok := changes[name]
			if !ok {
				t.Fatal("no change of it is known")
			}
			if s, ok := find(fileSettings(), name); ok && (scope == ScopeNone) != s.later {
				t.Errorf("scope %d", scope)
			}
			before, after := c.load(t)
			for _, d := range []Difference{Compare(before, after), Compare(after, before)} {
				slices.Sort(d.Settings)
				slices.Sort(d.Lanes)
				if d.Scope != scope || strings.Join(d.Settings, " ") != c.settings || !slices.Equal(d.Lanes, c.lanes) {
					t.Errorf("changed %+v, want the scope %d, %q and the lanes %q", d, scope, c.settings, c.lanes)
				}
			}
			if d := Compare(before, before); d.Scope != ScopeNone || d.Settings != nil || d.Lanes != nil {
				t.Errorf("changed without a change: %+v", d)
			}
		})
	}
}

func TestAnotherFolderIsAnotherProcess(t *testing.T) {
	before := loadScoped(t, smallFile, connected)
	after := *before
	after.Folders.Status = "/new"
	if d := Compare(before, &after); d.Scope != ScopeProcess || !slices.Equal(d.Settings, []string{"folders"}) {
		t.Errorf("changed %+v", d)
	}
}

func TestASettingWrittenWithItsDefaultIsNoChange(t *testing.T) {
	before, after := loadScoped(t, smallFile, connected), loadScoped(t, smallFile+"removal: {grace: 10s}\n", connected)
	if d := Compare(before, after); d.Scope != ScopeNone {
		t.Errorf("changed %+v", d)
	}
}

// load loads the configuration before and after the change.
func (c change) load(t *testing.T) (before, after *Config) {
	t.Helper()
	env := maps.Clone(connected)
	if strings.Contains(c.file, "apiKeyFile: /key/file\n  jwt") {
		delete(env, "CONJUR_AUTHN_API_KEY")
	}
	before = loadScoped(t, c.file, env)
	if variable, ok := strings.CutPrefix(c.old, "$"); ok {
		env[variable] = c.new
		if c.new == certificate {
			server := httptest.NewTLSServer(nil)
			defer server.Close()
			env[variable] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		}
		return before, loadScoped(t, c.file, env)
	}
	if strings.Count(c.file, c.old) != 1 {
		t.Fatalf("%q is in the file %d times", c.old, strings.Count(c.file, c.old))
	}
	return before, loadScoped(t, strings.Replace(c.file, c.old, c.new, 1), env)
}

// loadScoped loads a file, which has no fault.
func loadScoped(t *testing.T, file string, env map[string]string) *Config {
	t.Helper()
	l := &loader{values: newValues(), src: Sources{Assume: Assumptions{Files: true}, Templates: fstest.MapFS{}}}
	l.parseFile("file", []byte(file), &l.report)
	l.addEnvironment(func(name string) string { return env[name] }, &l.report)
	cfg := l.config()
	if len(l.problems) > 0 {
		t.Fatal(l.problems)
	}
	return cfg
}
