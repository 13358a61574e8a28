package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// change is a setting that changes while a process runs: a text of its
// configuration file that becomes another.
type change struct{ setting, old, new string }

// labelled are the changes for Secrets with the label, in an order in which one
// does not spoil the next.
var labelled = []change{
	{"refresh.interval", "interval: 1s", "interval: 1100ms"},
	{"retry.limit", "limit: 7", "limit: 8"},
	{"retry.intervalSeconds", "intervalSeconds: 1}", "intervalSeconds: 0}"},
	{"removal.confirmations", "confirmations: 2", "confirmations: 3"},
	{"removal.grace", "grace: 0s", "grace: 1s"},
	{"removal.brake", "brake: 50", "brake: 51"},
	{"removal.brakeHold", "brakeHold: 1h", "brakeHold: 2h"},
	{"health.freshness", "freshness: 7m", "freshness: 8m"},
	{"health.ready", "ready: delivered", "ready: tried"},
	{"log.debug", "debug: false", "debug: true"},
	{"log.level", "log: {", "log: {level: info, "},
	{"log.format", "debug: true", "debug: true, format: json"},
	{"restarts.quietPeriod", "quietPeriod: 5s", "quietPeriod: 6s"},
	{"restarts.perHour", "perHour: 9", "perHour: 8"},
	{"kubernetes.namespaces", "namespaces: [NS, ", "namespaces: [EXTRA, NS, "},
	{"identities.namespaces", "namespaces: [SHOP]", "namespaces: [SHOP, EXTRA]"},
	{"identities.secrets", "secrets: [NS/one]", "secrets: [NS/one, NS/two]"},
	{"identities.conjur.login", "login: host/shop", "login: host/other"},
	{"identities.conjur.apiKeyFile", "key-of-shop", "key-of-other"},
	{"identities.conjur.account", "account: dev, login: host/other", "account: new, login: host/other"},
	{"identities.conjur.jwtTokenPath", "jwtTokenPath: /old", "jwtTokenPath: /new"},
	{"identities.conjur.azureClientId", "azureClientId: old", "azureClientId: new"},
	{"identities.conjur.clientCertFile", "clientCertFile: /old", "clientCertFile: /new"},
	{"identities.conjur.clientKeyFile", "clientKeyFile: /old", "clientKeyFile: /new"},
	{"identities.conjur.authnUrl", "authn-jwt/old", "authn-jwt/new"},
	{"identities.name", "name: cloud", "name: renamed"},
	{"identities", "identities:\n", "identities:\n- {name: more, secrets: [NS/more], conjur: {login: host/calm, apiKeyFile: DIR/key-of-calm}}\n"},
	{"removeDeletedSecrets", "removeDeletedSecrets: true", "removeDeletedSecrets: false"},
	{"conjur.login", "login: host/app", "login: host/app2"},
	{"conjur.apiKeyFile", "key-of-app", "key-of-app2"},
	{"refresh.enabled", "{enabled: true, interval: 1100ms}", "{enabled: false}"},
	// All identities have these from the process.
	{"conjur.jwtTokenPath", "jwtTokenPath: /mine", "jwtTokenPath: /mine2"},
	{"conjur.azureClientId", "azureClientId: mine", "azureClientId: mine2"},
	{"conjur.clientCertFile", "clientCertFile: /mine", "clientCertFile: /mine2"},
	{"conjur.clientKeyFile", "clientKeyFile: /mine", "clientKeyFile: /mine2"},
	{"conjur.httpTimeoutSeconds", "httpTimeoutSeconds: 20", "httpTimeoutSeconds: 21"},
	{"conjur.tokenTimeout", "tokenTimeout: 2h", "tokenTimeout: 3h"},
	{"conjur.metadataUrl", "metadataUrl: http://old", "metadataUrl: http://new"},
	{"conjur.clientCertWaitSeconds", "clientCertWaitSeconds: 3", "clientCertWaitSeconds: 4"},
	{"conjur.certFile", "certFile: CA", "certFile: CA2"},
	{"conjur.account", "account: dev, ap", "account: new, ap"},
	{"conjur.authnUrl", "authnUrl: URL/authn,", "authnUrl: URL/new/authn,"},
	{"conjur.applianceUrl", "applianceUrl: URL", "applianceUrl: URL/new"},
}

const labelledFile = `
containerMode: standalone
secretsDestination: k8s_secrets
server: {address: ADDRESS}
leaderElection: {enabled: true}
refresh: {enabled: true, interval: 1s}
retry: {limit: 7, intervalSeconds: 1}
removal: {confirmations: 2, grace: 0s, brake: 50, brakeHold: 1h}
removeDeletedSecrets: true
health: {freshness: 7m, ready: delivered}
log: {debug: false}
restarts: {quietPeriod: 5s, perHour: 9}
conjur: {login: host/app, apiKeyFile: DIR/key-of-app, account: dev, applianceUrl: URL, authnUrl: URL/authn, certFile: CA,
  tokenTimeout: 2h, httpTimeoutSeconds: 20, metadataUrl: http://old, clientCertWaitSeconds: 3,
  azureClientId: mine, clientCertFile: /mine, clientKeyFile: /mine, jwtTokenPath: /mine}
kubernetes: {namespaces: [NS, BUSY, KEPT, SHOP]}
identities:
- {name: busy, namespaces: [BUSY], conjur: {login: host/busy, apiKeyFile: DIR/key-of-busy}}
- {name: kept, namespaces: [KEPT], conjur: {login: host/kept, apiKeyFile: DIR/key-of-kept}}
- {name: calm, secrets: [KEPT/calm], conjur: {login: host/calm, apiKeyFile: DIR/key-of-calm}}
- {name: shop, namespaces: [SHOP], conjur: {account: dev, login: host/shop, apiKeyFile: DIR/key-of-shop}}
- {name: cloud, secrets: [NS/one], conjur: {authnUrl: URL/authn-jwt/old, jwtTokenPath: /old, azureClientId: old, clientCertFile: /old, clientKeyFile: /old}}
`

// listed are the changes for Secrets that are listed.
var listed = []change{
	{"kubernetes.secrets.create", "create: true", "create: false"},
	{"kubernetes.secrets.type", "type: Opaque", "type: kubernetes.io/basic-auth"},
	{"kubernetes.secrets.map", "map: {k: ", "map: {username: "},
	{"kubernetes.secrets.map.id", "id: busy/1", "id: busy/2"},
	{"kubernetes.secrets.map.contentType", "contentType: text", "contentType: base64"},
	{"kubernetes.secrets.restart", "deployment/old", "deployment/new"},
	{"kubernetes.secrets.pullSecretFor", "pullSecretFor: [old]", "pullSecretFor: [new]"},
	{"kubernetes.secrets.groups", "groups: {", "groups: {more: {secrets: [{k: 2}]}, "},
	{"kubernetes.secrets.groups.secrets", "[{k: 1}]", "[{l: 1}]"},
	{"kubernetes.secrets.groups.policyPath", "policyPath: busy", "policyPath: other"},
	{"kubernetes.secrets.groups.format", "format: json", "format: yaml"},
	{"kubernetes.secrets.groups.template", "template: old", "template: new"},
	{"kubernetes.secrets.groups.dotenvReaders", "[node, bun]", "node"},
	{"kubernetes.secrets.groups.templateConfigMap", "tpl/old", "tpl/new"},
	{"kubernetes.secrets.name", "name: db", "name: new"},
	{"kubernetes.secrets.namespace", "namespace: SHOP", "namespace: NS"},
	{"kubernetes.secrets", "SHOP], secrets: [", "SHOP], secrets: [{name: extra, namespace: SHOP}, "},
}

// standaloneHead begins files of a standalone.
const standaloneHead = `
containerMode: standalone
secretsDestination: k8s_secrets
server: {address: ADDRESS}
leaderElection: {enabled: true}
refresh: {interval: 1s}
removal: {grace: 0s, brake: 50, brakeHold: 1h}
conjur: {login: host/app, apiKeyFile: DIR/key-of-app, account: dev, applianceUrl: URL, certFile: CA}
`

const listedFile = standaloneHead + `kubernetes: {namespaces: [NS, BUSY, KEPT, SHOP], secrets: [
  {name: fine, namespace: KEPT}, {name: doomed, namespace: KEPT}, {name: calm, namespace: KEPT}, {name: load, namespace: BUSY, pullSecretFor: [old]},
  {name: db, namespace: SHOP, create: true, type: Opaque, restart: [deployment/old], map: {k: {id: busy/1, contentType: text}},
   groups: {plain: {secrets: [{k: 1}], policyPath: busy, format: json}, inline: {secrets: [{k: busy/1}], template: old},
     env: {secrets: [{k: busy/1}], format: dotenv, dotenvReaders: [node, bun]},
     ref: {secrets: [{k: busy/1}], templateConfigMap: tpl/old}}}]}
identities:
- {name: busy, namespaces: [BUSY], conjur: {login: host/busy, apiKeyFile: DIR/key-of-busy}}
- {name: kept, namespaces: [KEPT], conjur: {login: host/kept, apiKeyFile: DIR/key-of-kept}}
- {name: calm, secrets: [KEPT/calm], conjur: {login: host/calm, apiKeyFile: DIR/key-of-calm}}
`

// delivered are the changes for files.
var delivered = []change{
	{"exitOnRevoked", "exitOnRevoked: true", "exitOnRevoked: false"},
	{"nodeSecretsBase", "Base: busy", "Base: busy/deep"},
	{"targets.nodeSecrets", "nodeSecrets: true", "nodeSecrets: false"},
	{"restoreDeletedFiles", "restoreDeletedFiles: refresh", "restoreDeletedFiles: never"},
	{"restartApp.signal", "signal: SIGHUP", "signal: SIGUSR1"},
	{"restartApp.user", `user: "1000"`, `user: "1001"`},
	{"restartApp.command", "command: none", "command: nobody"},
	{"restartApp.inPlace", "inPlace: false", "inPlace: true"},
	{"restartApp.every", "every: 1m", "every: 2m"},
	{"restartApp.warning", "warning: 1h", "warning: 2h"}, // longer than the test
	{"targets.secrets", "[{k: 1}]", "[{l: 1}]"},
	{"targets.policyPath", "policyPath: busy", "policyPath: other"},
	{"targets.path", "path: old", "path: new"},
	{"targets.format", "format: json", "format: yaml"},
	{"targets.dotenvReaders", "[node, bun]", "node"},
	{"targets.permissions", "rw-r-----", "rw-------"},
	{"targets.template", "template: old", "template: new"},
	{"targets.templateConfigMap", "tpl/old", "tpl/new"},
	{"targets.name", "name: db", "name: new"},
	{"targets", "targets:\n", "targets:\n- {name: more, secrets: [{k: busy/1}]}\n"},
}

const deliveredFile = `
containerMode: sidecar
secretsDestination: file
server: {address: ADDRESS}
refresh: {interval: 1s}
removal: {grace: 0s, brake: 40, brakeHold: 1h}
exitOnRevoked: true
nodeSecretsBase: busy
restoreDeletedFiles: refresh
restartApp: {signal: SIGHUP, user: "1000", command: none, inPlace: false, every: 1m, warning: 1h}
conjur: {login: host/kept, apiKeyFile: DIR/key-of-kept, account: dev, applianceUrl: URL, certFile: CA}
kubernetes: {namespace: NS}
targets:
- {name: fine, secrets: [{v: kept/fine}]}
- {name: doomed, secrets: [{a: kept/1}, {b: kept/2}, {c: kept/3}, {d: kept/4}]}
- {name: load, secrets: [{k: busy/load}]}
- {name: db, secrets: [{k: 1}], policyPath: busy, path: old, format: json, permissions: rw-r-----}
- {name: node, secrets: [{k: busy/deep/1}], nodeSecrets: true}
- {name: env, secrets: [{k: busy/1}], format: dotenv, dotenvReaders: [node, bun]}
- {name: inline, secrets: [{k: busy/1}], format: template, template: old}
- {name: ref, secrets: [{k: busy/1}], format: template, templateConfigMap: tpl/old}
`

const rotatedHead = standaloneHead + `kubernetes: {namespaces: [NS, BUSY, KEPT, SHOP]}
identities:
- {name: busy, namespaces: [BUSY], conjur: {login: host/busy, apiKeyFile: DIR/key-of-busy}}
- {name: kept, namespaces: [KEPT], conjur: {login: host/kept, apiKeyFile: DIR/key-of-kept}}
- {name: calm, secrets: [KEPT/calm], conjur: {login: host/calm, apiKeyFile: DIR/key-of-calm}}
- {name: rotates, secrets: [NS/one], conjur: {login: host/rotates, apiKeyFile: DIR/key-of-rotates}}
- {name: anew, secrets: [NS/two], conjur: {login: host/anew, apiKeyFile: DIR/key-of-anew}}
`

// rotated returns the changes of how sets are rotated, and the file before them:
// those that the tests of the configuration make.
func rotated(t *testing.T) (file string, changes []change) {
	t.Helper()
	text, err := os.ReadFile("../../config/testdata/rotated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../../config/testdata/rotated-changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	if err := yaml.Unmarshal(list, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		changes = append(changes, change{row[0], row[1], row[2]})
	}
	return rotatedHead + string(text), changes
}

func TestEverySettingIsChangedWhileItsProcessRuns(t *testing.T) {
	_, rotated := rotated(t)
	changed := map[string]bool{}
	for _, c := range slices.Concat(labelled, listed, delivered, rotated) {
		changed[c.setting] = true
	}
	for name, scope := range config.Scopes() {
		whole := scope == config.ScopeNone || scope == config.ScopeProcess
		fixed := name == "conjur.apiKey" || name == "conjur.sslCertificate" // are in the environment
		if changed[name] == (whole || fixed) {
			t.Errorf("%s, of the scope %d, is changed: %v", name, scope, changed[name])
		}
	}
}

// mostChanges are those of one process. Each waits for a poll. The next process begins with
// the file that they leave.
const mostChanges = 24

// TestAChangedSettingTouchesOnlyWhatItNames: while values rotate, and with
// removals held back, nothing happens to an identity that a change does not
// concern, nor to what is looked at from outside.
func TestAChangedSettingTouchesOnlyWhatItNames(t *testing.T) {
	rotatedFile, rotated := rotated(t)
	for name, c := range map[string]struct {
		file, identity string
		changes        []change
	}{
		"labelled": {labelledFile, "kept", labelled}, "listed": {listedFile, "kept", listed}, "delivered": {deliveredFile, "default", delivered},
		"rotated": {rotatedFile, "kept", rotated},
	} {
		file := c.file
		for changes := range slices.Chunk(c.changes, mostChanges) {
			before := file
			for _, change := range changes {
				file = strings.Replace(file, change.old, change.new, 1)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBystander(t, before, c.identity)
				for i, change := range changes {
					b.apply(i+1, change)
				}
				b.p.Stop()
			})
		}
	}
}

// bystander is an identity with a hold, which few changes concern.
type bystander struct {
	*world
	p        *proctest.Process
	identity string
	kept     string // its namespace
	user     string // that the API server knows the process as
	names    *strings.Replacer
	probes   net.Conn // nil before the first question, and after a failed one
	answers  *bufio.Reader
	dials    int // of probes

	mu        sync.Mutex
	fine      int             // answers with the one value of its own that is there
	addresses map[string]bool // from which another identity, without a hold, asks
	rotations int             // logins of those who rotate
	begun     int             // questions with which the rotation of a set begins
}

func newBystander(t *testing.T, file, identity string) *bystander {
	// Only a change has anybody log in, however long this takes.
	b := &bystander{world: newWorld(t, conjurdtest.TokenTTL(5*time.Hour)), identity: identity, addresses: map[string]bool{}}
	busy, extra, shop := b.join(), b.join(), b.join()
	b.kept, b.user = b.join(), b.world.user()
	b.names = strings.NewReplacer("ADDRESS", fmt.Sprintf("%q", b.address), "NS", b.namespace, "EXTRA", extra, "BUSY", busy, "KEPT", b.kept, "SHOP", shop,
		"DIR", b.dir, "URL", b.Server.URL, "CA2", filepath.Join(b.dir, "ca2.pem"), "CA", filepath.Join(b.dir, "ca.pem"))
	ids := []string{"kept/fine", "kept/1", "kept/2", "kept/3", "kept/4", "busy/load", "busy/1", "busy/2", "busy/deep/1", "other/1", "calm/one"}
	b.Variables(ids...)
	for _, host := range []string{"app", "app2", "busy", "kept", "shop", "other", "calm", "rotates", "anew"} {
		b.Server.Policy(fmt.Sprintf("- !host %s\n", host))
		for _, id := range ids {
			b.Server.Policy(fmt.Sprintf("- !permit {role: !host %s, privileges: [read, execute], resource: !variable %s}\n", host, id))
		}
		b.write("key-of-"+host, b.Server.HostKey(host))
	}
	for _, set := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "another", "more"} {
		of := fmt.Sprintf("privileges: [read, execute, update], resources: [!variable %s, !variable %[1]s/control]", set)
		b.Server.Policy(fmt.Sprintf("- !variable %s\n- !variable %[1]s/control\n- !permit {role: !host rotates, %s}\n- !permit {role: !host anew, %[2]s}\n", set, of))
	}
	b.write("ca.pem", string(b.Server.CA))
	b.write("ca2.pem", string(b.Server.CA))
	b.Env = map[string]string{"KUBECONFIG": b.Env["KUBECONFIG"], "MY_POD_NAMESPACE": b.namespace, "MY_NODE_NAME": "n1"}
	b.settings = []string{b.names.Replace(file)}
	b.secretIn(b.kept, "fine", map[string]string{"v": "kept/fine"})
	b.secretIn(b.kept, "doomed", map[string]string{"a": "kept/1", "b": "kept/2", "c": "kept/3", "d": "kept/4"})
	b.secretIn(b.kept, "calm", map[string]string{"v": "calm/one"})
	b.secretIn(busy, "load", map[string]string{"k": "busy/load"})
	b.secretIn(extra, "extra", map[string]string{"k": "busy/1"})
	b.Server.Intercept(b.listen)
	t.Cleanup(b.hangUp)

	for _, folder := range []string{"secrets", "status"} {
		if err := os.MkdirAll(filepath.Join(b.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.p = b.start("--secrets-dir", filepath.Join(b.dir, "secrets"), "--templates-dir", b.dir)
	b.awaitLoad()
	eventually(t, "the other values", func() bool {
		return b.metric("syncer_syncs_total", `result="written"`) >= 2 && (identity == "default" || b.readIn(b.kept, "calm").Data["v"] != nil)
	})
	b.Server.Policy("- !delete {record: !variable kept/1}\n- !delete {record: !variable kept/2}\n- !delete {record: !variable kept/3}\n- !delete {record: !variable kept/4}\n")
	eventually(t, "a hold", func() bool { return b.metric("syncer_removals_held") == 4 })
	b.polls()
	return b
}

func (b *bystander) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// listen notes who asks for the values that nobody changes.
func (b *bystander) listen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &coded{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(rec, r)
		asked := r.URL.RawQuery + r.URL.Path
		b.mu.Lock()
		defer b.mu.Unlock()
		if strings.Contains(asked, "calm%2Fone") {
			b.addresses[r.RemoteAddr] = true
		}
		if strings.HasSuffix(r.URL.Path, "host/rotates/authenticate") || strings.HasSuffix(r.URL.Path, "host/anew/authenticate") {
			b.rotations++
		}
		if strings.HasSuffix(r.URL.Path, "thirteen/control") {
			b.begun++
		}
		if strings.Contains(asked, "kept%2Ffine") && !strings.Contains(asked, "busy") && rec.code == http.StatusOK {
			b.fine++
		}
	})
}

type coded struct {
	http.ResponseWriter
	code int
}

func (s *coded) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// get returns the process's answer over the probes' connection. An http.Client would leave
// the connection if the machine were busy for 50 ms after a request.
func (b *bystander) get(path string) (text []byte, answered bool) {
	b.Helper()
	if b.probes == nil {
		conn, err := net.Dial("tcp", b.address)
		if err != nil {
			return nil, false
		}
		b.probes, b.answers = conn, bufio.NewReader(conn)
		b.dials++
	}
	_, err := fmt.Fprintf(b.probes, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, b.address)
	if err == nil {
		var answer *http.Response
		if answer, err = http.ReadResponse(b.answers, nil); err == nil {
			text, err = io.ReadAll(answer.Body)
		}
	}
	if err != nil {
		b.hangUp()
	}
	return text, err == nil
}

func (b *bystander) hangUp() {
	if b.probes != nil {
		_ = b.probes.Close()
		b.probes = nil
	}
}

// metric adds the bystander's metrics of a name that have all these labels.
func (b *bystander) metric(name string, labels ...string) (sum float64) {
	b.Helper()
	text, answered := b.get("/metrics")
	if !answered {
		return -1
	}
	labels = append(labels, fmt.Sprintf("identity=%q", b.identity))
lines:
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue lines
			}
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &value); err != nil {
			b.Fatal(err)
		}
		sum += value
	}
	return sum
}

// eventually waits, and uses the probes' connection meanwhile: the server closes one that
// is idle for a minute, which passes on a busy machine.
func (b *bystander) eventually(what string, is func() bool) {
	b.Helper()
	eventually(b, what, func() bool {
		_, _ = b.get("/healthz")
		return is()
	})
}

// polls waits until the bystander's variables have been polled, and polled again.
func (b *bystander) polls() {
	b.Helper()
	before := b.metric("syncer_conjur_requests_total", `code="304"`)
	eventually(b, "two polls", func() bool { return b.metric("syncer_conjur_requests_total", `code="304"`) >= before+2 })
}

// awaitLoad has a value rotate and waits for it.
func (b *bystander) awaitLoad() {
	b.Helper()
	value := b.Renew("busy/load")
	b.eventually("the rotated value", func() bool {
		text, _ := os.ReadFile(filepath.Join(b.dir, "secrets", "load.yaml"))
		s := b.readIn(b.names.Replace("BUSY"), "load")
		return strings.Contains(string(text), value) || string(s.Data["k"]) == value
	})
}

// outside is the state of a process that others see, and the state of its sources.
type outside struct {
	Dials int    // of the probes' address
	Lease string // who has it, since when, after how many others
	Begun int    // watches of Secrets of the bystander's namespace, and lists
}

// inside is the state of the bystander.
type inside struct {
	Logins, Holds, Held float64
	Fine, Syncs         int
	Addresses           int // of another one's connections
	Rotations           int // logins of those who rotate
	Calls               int // to the API server about its Secrets
}

func (b *bystander) look() (o outside, i inside) {
	b.Helper()
	i.Logins = b.metric("syncer_conjur_requests_total", `kind="authenticate"`)
	i.Holds, i.Held = b.metric("syncer_removal_holds_total"), b.metric("syncer_removals_held")
	b.mu.Lock()
	i.Fine, i.Addresses, i.Rotations = b.fine, len(b.addresses), b.rotations
	b.mu.Unlock()
	i.Syncs = len(b.p.Lines("Rendering target", "fine"))
	o.Dials = b.dials
	leases, err := b.leases().List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range leases.Items {
		o.Lease += fmt.Sprintln(l.Name, *l.Spec.HolderIdentity, l.Spec.AcquireTime, *l.Spec.LeaseTransitions)
	}
	for _, c := range plane.Calls(b, kubetest.ByUser(b.user)) {
		switch {
		case c.Namespace != b.kept || c.Resource != "secrets":
		case c.Verb == "list" || c.Verb == "watch" && strings.Contains(c.URI, "sendInitialEvents=true"):
			o.Begun++
		case c.Verb == "watch": // goes on after minutes, where one ended
		default:
			i.Calls++
		}
	}
	return o, i
}

// apply makes the nth change, and checks that the others do not notice it.
func (b *bystander) apply(n int, c change) {
	b.Helper()
	before, old := b.config(), b.settings[0]
	text, with := b.names.Replace(c.old), b.names.Replace(c.new)
	if strings.Count(old, text) != 1 {
		b.Fatalf("%s: %q is there %d times", c.setting, text, strings.Count(old, text))
	}
	wasOutside, wasInside := b.look()
	begun := b.rebuilt()
	b.settings[0] = strings.Replace(old, text, with, 1)
	b.configure()
	b.eventually(c.setting+" taken up", func() bool { return len(b.p.Lines("the running process applies it")) == n })

	after := b.config()
	d := config.Compare(before, after)
	if want := config.Scopes()[c.setting]; d.Scope != want && !strings.HasPrefix(c.setting, "log.") {
		b.Errorf("%s: scope %d, want %d", c.setting, d.Scope, want)
	}
	if strings.HasPrefix(c.setting, "rotation.") {
		b.eventually(c.setting+": the sets read anew", func() bool { return b.rebuilt() > begun })
	} else if b.rebuilt() != begun {
		b.Errorf("%s: the sets are read anew", c.setting)
	}
	concerned := slices.Contains(d.Lanes, strings.TrimPrefix(b.identity, "default"))
	if !concerned && after.Refresh.Enabled {
		b.awaitLoad()
	}
	isOutside, isInside := b.look()
	if slices.Contains(d.Settings, "rotation.identity") {
		wasInside.Rotations++
	}
	if isOutside != wasOutside {
		b.Errorf("%s: seen from outside, what was\n\t%+v is\n\t%+v", c.setting, wasOutside, isOutside)
	}
	if isInside != wasInside && !concerned {
		b.Errorf("%s: what was\n\t%+v is\n\t%+v, though the identities %q are concerned", c.setting, wasInside, isInside, d.Lanes)
	}
}

// rebuilt returns how often the rotation of a set began.
func (b *bystander) rebuilt() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun
}

// config is what the process reads.
func (b *bystander) config() *config.Config {
	b.Helper()
	cfg, _, err := config.Load(config.Sources{
		Annotations: config.ReadFile(filepath.Join(b.dir, "annotations")), ConfigFile: config.ReadFile(b.configure()),
		Getenv:     func(name string) string { return b.Env[name] },
		SecretsDir: b.dir, TemplatesDir: b.dir, StatusDir: b.dir,
	})
	if err != nil {
		b.Fatal(err)
	}
	return cfg
}
