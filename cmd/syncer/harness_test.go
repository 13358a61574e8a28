package main

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
)

// asCommand makes the test binary be syncer, when it is in the environment.
const asCommand = "SYNCER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	podtest.Main()
	if os.Getenv(asCommand) != "" {
		if isShell(os.Args) {
			os.Exit(receive(append(inject.Scripts(), testScript())))
		}
		os.Exit(start(newTestCommand()))
	}
	proctest.AtOnce(16)
	goleak.VerifyTestMain(m)
}

// newTestCommand returns the command tree without the annotations that a
// machine may happen to have: where none are named, there are none.
func newTestCommand() *cobra.Command {
	root := newCommand()
	for _, cmd := range append(root.Commands(), root) {
		if f := cmd.Flags().Lookup("annotations"); f != nil {
			_ = f.Value.Set("/proc/self/none" + f.DefValue) // it does not count as named
		}
	}
	return root
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	proctest.Eventually(t, what, condition)
}

// world is a server and what a Pod has: annotations, environment, folders.
type world struct {
	t           *testing.T
	server      *conjurdtest.Server
	url         string // by which processes reach the server
	dir         string
	host        string            // the identity that variables are permitted to
	annotations map[string]string // without conjur.org/
	env         map[string]string
	values      []string          // all that were ever set: no log may hold one
	value       map[string]string // :: variable → the value it has
}

// newWorld makes a world with the host "app", which logs in by API key, and
// the annotations of a sidecar that refreshes every second and that proves a
// removal in no longer than two polls.
func newWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := &world{t: t, server: conjurdtest.Start(t, options...), dir: t.TempDir(), host: "app", value: map[string]string{}}
	w.url = w.server.URL
	w.server.Policy("- !host app\n")
	w.annotations = map[string]string{
		"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": "1s", "removal-grace": "0s",
	}
	w.env = map[string]string{
		"CONJUR_ACCOUNT": conjurdtest.Account, "CONJUR_SSL_CERTIFICATE": string(w.server.CA),
		"CONJUR_AUTHN_LOGIN": "host/app", "CONJUR_AUTHN_API_KEY": w.server.HostKey("app"),
	}
	for _, folder := range []string{"secrets", "templates", "status", "tmp"} {
		if err := os.Mkdir(w.path(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// oneShot makes it a process that delivers once, with quick retries.
func (w *world) oneShot(mode string, retries int) {
	delete(w.annotations, "secrets-refresh-interval")
	w.annotations["container-mode"] = mode
	w.annotations["retry-count-limit"] = strconv.Itoa(retries)
}

func (w *world) path(names ...string) string {
	return filepath.Join(append([]string{w.dir}, names...)...)
}

// group defines a secret group; each variable has the last part of its id for
// alias, and is made, permitted and given a value.
func (w *world) group(name, format string, ids ...string) {
	w.t.Helper()
	var list strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&list, "- %q: %q\n", filepath.Base(id), id)
		w.variable(id)
		w.renew(id)
	}
	w.annotations["conjur-secrets."+name] = list.String()
	w.annotations["secret-file-format."+name] = format
}

// variable makes a variable that the host may read, without a value.
func (w *world) variable(id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- !variable %q\n", id))
	w.permit(id)
}

func (w *world) permit(id string) { w.t.Helper(); w.privilege("!permit", id) }
func (w *world) deny(id string)   { w.t.Helper(); w.privilege("!deny", id) }

func (w *world) privilege(tag, id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- %s { role: !host %s, privileges: [read, execute], resource: !variable %q }\n", tag, w.host, id))
}

// remove deletes a variable.
func (w *world) remove(id string) {
	w.t.Helper()
	w.server.Policy(fmt.Sprintf("- !delete { record: !variable %q }\n", id))
}

// renew sets a variable to a new value that is nowhere else.
func (w *world) renew(id string) string {
	w.t.Helper()
	w.renewTogether(id)
	return w.value[id]
}

// renewTogether sets several variables to new values at one moment.
func (w *world) renewTogether(ids ...string) {
	w.t.Helper()
	set := map[string][]byte{}
	for _, id := range ids {
		value := "canary-" + rand.Text()
		w.value[id], set[id] = value, []byte(value)
		w.values = append(w.values, value)
	}
	if err := w.server.Conjurd.SetMany(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
}

// template writes a group's template file.
func (w *world) template(group, text string) {
	w.t.Helper()
	w.write(w.path("templates", group+".tpl"), text)
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// annotate writes the annotations as the Downward API does: whole or not at
// all, sorted by key.
func (w *world) annotate() {
	w.t.Helper()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(w.annotations)) {
		fmt.Fprintf(&text, "conjur.org/%s=%q\n", key, w.annotations[key])
	}
	w.write(w.path("annotations.new"), text.String())
	if err := os.Rename(w.path("annotations.new"), w.path("annotations")); err != nil {
		w.t.Fatal(err)
	}
}

// file is the content of a file below the secrets folder; "" without it.
func (w *world) file(name string) string {
	content, _ := os.ReadFile(w.path("secrets", name))
	return string(content)
}

func (w *world) exists(names ...string) bool {
	_, err := os.Lstat(w.path(names...))
	return err == nil
}

// await waits until the file below the secrets folder holds the text.
func (w *world) await(name, text string) {
	w.t.Helper()
	eventually(w.t, "a new text in "+name, func() bool { return strings.Contains(w.file(name), text) })
}

// awaitProvided waits until everything was delivered.
func (w *world) awaitProvided() {
	w.t.Helper()
	eventually(w.t, notify.ProvidedFile, func() bool { return w.exists("status", notify.ProvidedFile) })
}

// awaitUpdated waits for the sentinel file, and takes it away as an
// application does.
func (w *world) awaitUpdated() {
	w.t.Helper()
	eventually(w.t, notify.UpdatedFile, func() bool { return w.exists("status", notify.UpdatedFile) })
	if err := os.Remove(w.path("status", notify.UpdatedFile)); err != nil {
		w.t.Fatal(err)
	}
}

// beat takes the heartbeat's file away and waits until it is back, which
// takes up to a second.
func (w *world) beat() {
	w.t.Helper()
	alive := w.path("status", notify.AliveFile)
	eventually(w.t, "the first beat", func() bool { return os.Remove(alive) == nil })
	eventually(w.t, "the next beat", func() bool { return w.exists("status", notify.AliveFile) })
}
