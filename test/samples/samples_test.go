//go:build linux && long

package samples

import (
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

// delivery is what a sample is to deliver: files by their path in the container
// of the application, and data keys of Secrets; and what a command prints there
// when the application starts after that. {id} is the value of a variable below
// shop, {id|base64} the same in base64.
type delivery struct {
	files   map[string]string
	secrets map[string]map[string]string
	starts  map[string]string
}

var deliveries = map[string]delivery{
	"init-files-jwt": {files: map[string]string{
		"/opt/shop/secrets/db.yaml":         "\"username\": \"{db/username}\"\n\"password\": \"{db/password}\"",
		"/opt/shop/secrets/config/app.conf": "address = {db/url}\n",
	}},
	"init-files-k8s": {files: map[string]string{
		"/opt/shop/secrets/db.env":  "username=\"{db/username}\"\npassword=\"{db/password}\"",
		"/opt/shop/secrets/app.out": "\nkey={tls/key|base64}\n",
	}},
	"init-secrets-jwt": {
		secrets: map[string]map[string]string{
			"db-credentials": {"username": "{db/username}", "password": "{db/password}"}, "tls-key": {"key": "{tls/key}"},
		},
		starts: map[string]string{"printenv DB_PASSWORD": "{db/password}\n"},
	},
	"init-secrets-k8s": {
		secrets: map[string]map[string]string{"db-credentials": {"username": "{db/username}", "password": "{db/password}"}},
		starts:  map[string]string{"printenv DB_PASSWORD": "{db/password}\n"},
	},
	"rotation-files-jwt": {files: map[string]string{
		"/opt/shop/secrets/db.json": `{"username":"{db/username}","password":"{db/password}"}`,
	}},
	"rotation-files-k8s": {files: map[string]string{
		"/opt/shop/secrets/db.bash":  "export url=\"{db/url}\"\nexport username=\"{db/username}\"\nexport password=\"{db/password}\"",
		"/opt/shop/secrets/all.yaml": "\"shop/db/password\": \"{db/password}\"\n\"shop/db/url\": \"{db/url}\"\n\"shop/db/username\": \"{db/username}\"\n\"shop/tls/key\": \"{tls/key|base64}\"",
	}},
	"rotation-secrets-jwt": {secrets: map[string]map[string]string{
		"db-credentials": {"username": "{db/username}", "password": "{db/password}", "app.conf": "address = {db/url}\n"},
	}},
	"rotation-secrets-k8s": {
		secrets: map[string]map[string]string{
			"db-credentials": {"username": "{db/username}", "password": "{db/password}"},
			"everything":     {"shop.db.url": "{db/url}", "shop.db.username": "{db/username}", "shop.db.password": "{db/password}", "shop.tls.key": "{tls/key|base64}"},
		},
		starts: map[string]string{"cat /opt/shop/secrets/password": "{db/password}"}, // of the Secret's volume
	},
	"job":        {secrets: map[string]map[string]string{"db-credentials": {"username": "{db/username}", "password": "{db/password}"}}},
	"standalone": {secrets: map[string]map[string]string{"db-credentials": {"username": "{db/username}", "password": "{db/password}"}}},
}

var variable = regexp.MustCompile(`\{[a-z/]+(\|base64)?\}`)

// filledIn puts the values into a text.
func (w *world) filledIn(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		id, encoded := strings.CutSuffix(strings.Trim(name, "{}"), "|base64")
		value := w.Value["shop/"+id]
		if encoded {
			return base64.StdEncoding.EncodeToString([]byte(value))
		}
		return value
	})
}

// lacks returns the missing parts of a delivery; empty means none.
func (w *world) lacks(d delivery) string {
	w.Helper()
	for name, want := range d.secrets {
		data := w.readSecret(name)
		for key, text := range want {
			if string(data[key]) != w.filledIn(text) {
				return "the key " + key + " of the Secret " + name
			}
		}
		if len(data) != len(want)+1 || data["conjur-map"] == nil {
			return "the map alone beside the keys of the Secret " + name
		}
	}
	for path, want := range d.files {
		if status, text := w.node.exec("app", "cat", path); status != 0 || text != w.filledIn(want) {
			return "the file " + path + ", instead of: " + text
		}
	}
	return ""
}

// application checks the content that the application finds at its start.
func (w *world) application(d delivery) {
	w.Helper()
	for command, want := range d.starts {
		if status, text := w.node.exec("app", "sh", "-c", command); status != 0 || text != w.filledIn(want) {
			w.Errorf("%s ended with %d and printed %q", command, status, text)
		}
	}
}

// await waits for a delivery.
func (w *world) await(d delivery) {
	w.Helper()
	var lacking string
	defer func() {
		if w.Failed() {
			w.Log("the last that was missing: " + lacking)
		}
	}()
	eventually(w.TB, "the delivery", func() bool { lacking = w.lacks(d); return lacking == "" })
}

// has reports whether a sentinel is in the status folder of Syncer's container.
func (p *pod) has(sentinel string) bool {
	p.Helper()
	_, err := p.stat(provider, "/conjur/status/"+sentinel)
	return err == nil
}

const (
	provided = "CONJUR_SECRETS_PROVIDED"
	updated  = "CONJUR_SECRETS_UPDATED"
)

// up deploys a sample and starts Syncer's container in it.
func (w *world) up(sample, manifest string) *proctest.Process {
	w.Helper()
	p := w.deploy(sample, manifest).start(provider)
	w.Cleanup(func() { w.Silent(p) })
	return p
}

// TestInitContainersDeliver: before the application starts all is there.
func TestInitContainersDeliver(t *testing.T) {
	t.Parallel()
	for _, sample := range []string{"init-files-jwt", "init-files-k8s", "init-secrets-jwt", "init-secrets-k8s"} {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.up(sample, w.manifest(sample)).Exit(0)
			if lacking := w.lacks(deliveries[sample]); lacking != "" {
				t.Errorf("not delivered: %s", lacking)
			}
			w.application(deliveries[sample])
			if !w.node.has(provided) || w.node.has(updated) {
				t.Error("PROVIDED alone is to be there")
			}
			w.fed()
		})
	}
}

// fed checks that Syncer received a certificate exactly if its sample logs in by one.
func (w *world) fed() {
	w.Helper()
	w.node.mu.Lock()
	defer w.node.mu.Unlock()
	// On a busy machine, a login may time out, and another one replaces it.
	if want := strings.HasSuffix(w.Name(), "-k8s"); (w.node.scripts > 0) != want {
		w.Errorf("sh was fed with %d scripts, want some: %v", w.node.scripts, want)
	}
}

var sidecars = []string{"rotation-files-jwt", "rotation-files-k8s", "rotation-secrets-jwt", "rotation-secrets-k8s"}

// TestSidecarsFollowRotation: the application is notified of each change once.
func TestSidecarsFollowRotation(t *testing.T) {
	t.Parallel()
	for _, sample := range sidecars {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.up(sample, w.manifest(sample))
			w.node.hook()
			w.await(deliveries[sample])
			w.application(deliveries[sample])
			eventually(t, provided, func() bool { return w.node.has(provided) })
			w.node.probe(0)
			if w.node.has(updated) {
				t.Error("UPDATED is there before any change")
			}
			for range 2 {
				w.Renew("shop/db/username", "shop/db/password")
				w.await(deliveries[sample])
				eventually(t, updated, func() bool { return w.node.has(updated) })
				w.node.probe(1)
				w.node.probe(0)
			}
			w.fed()
			p.Stop()
		})
	}
}

// TestSidecarsWithoutRotationStay: they deliver once and keep running.
func TestSidecarsWithoutRotationStay(t *testing.T) {
	t.Parallel()
	for _, sample := range sidecars {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.up(sample, regexp.MustCompile(`(?m)^ *conjur.org/secrets-refresh-.*\n`).ReplaceAllString(w.manifest(sample), ""))
			w.node.hook()
			w.await(deliveries[sample])
			w.application(deliveries[sample])
			eventually(t, provided, func() bool { return w.node.has(provided) })
			w.node.probe(0)
			w.fed()
			p.Stop()
		})
	}
}

func TestJobDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up("job", w.manifest("job")).Exit(0)
	if lacking := w.lacks(deliveries["job"]); lacking != "" {
		t.Errorf("not delivered: %s", lacking)
	}
}

// TestStandaloneIsReadyAndFollows, without the right to leases.
func TestStandaloneIsReadyAndFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.up("standalone", w.manifest("standalone"))
	for _, path := range []string{"/readyz", "/healthz"} {
		eventually(t, path, func() bool { return w.status(path) == http.StatusOK })
	}
	if lacking := w.lacks(deliveries["standalone"]); lacking != "" {
		t.Errorf("ready, but not delivered: %s", lacking)
	}
	w.Renew("shop/db/password")
	w.await(deliveries["standalone"])
	p.Stop()
}

// warned are the expected warnings of validate for a sample, by their beginnings.
var warned = map[string][]string{
	"init-files-jwt":       {"volumeMounts: the volume mounted at /conjur has no folder /conjur/secrets at first; Syncer makes it"},
	"init-secrets-jwt":     {"CONTAINER_MODE: deprecated", "SECRETS_DESTINATION: deprecated", "RETRY_COUNT_LIMIT: deprecated", "RETRY_INTERVAL_SEC: deprecated", "K8S_SECRETS: deprecated"},
	"rotation-files-k8s":   {"volumeMounts: the volume conjur at /conjur/secrets may write", "volumeMounts: the volume mounted at /conjur has no folder /conjur/secrets at first; Syncer makes it"},
	"rotation-secrets-jwt": {"SECRETS_DESTINATION: deprecated"},
	"rotation-secrets-k8s": {"annotation conjur.org/retry-interval-sec: 5 is more than the maximum, 1s"},
}

// TestToolsAreRightAboutTheSamples: validate finds no error. migrate changes the image, and
// reports no problem that would break a working sample.
func TestToolsAreRightAboutTheSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for sample := range deliveries {
		text := w.filled(sample+".yaml", authenticator(sample))
		_, messages, status := w.tool(text, "validate", "-f", "-")
		lines := slices.Collect(strings.Lines(messages))
		if status != 0 || !slices.EqualFunc(lines, warned[sample], func(line, want string) bool { return strings.HasPrefix(line, "warning: "+want) }) {
			t.Errorf("%s: validate ended with %d and said %q, want the warnings %q", sample, status, lines, warned[sample])
		}
		migrated, messages, _ := w.tool(text, "migrate", "-f", "-", "--image", syncerImage)
		if want := strings.ReplaceAll(text, "cyberark/secrets-provider-for-k8s:latest", syncerImage); migrated != want {
			t.Errorf("%s: migrate printed:\n%s", sample, migrated)
		}
		for _, line := range slices.Collect(strings.Lines(messages)) {
			// All samples start unchanged. authn-k8s, which the URL may name, needs the namespace.
			// Without the verb watch, Syncer sees no change within a second.
			if strings.Contains(line, "by hand") || strings.Contains(line, "MY_POD_NAMESPACE") ||
				strings.Contains(line, "within a second") && !strings.Contains(line, "with watch besides") {
				t.Errorf("%s: migrate said %s", sample, line)
			}
		}
	}
}

// status asks a probe.
func (w *world) status(path string) int {
	w.Helper()
	resp, err := http.Get("http://" + w.address + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode
}
