package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
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
	unsetMachine()
	goleak.VerifyTestMain(m)
}

// unsetMachine keeps of this process's environment only what finds the tools: what a machine
// or its user may have set for Syncer and its libraries is no part of a test.
func unsetMachine() {
	kept := regexp.MustCompile(`^(PATH|HOME|TMPDIR|LANG|TZ|C?GO.*|SYNCER_.*)$`)
	for _, set := range os.Environ() {
		name, _, _ := strings.Cut(set, "=")
		if !kept.MatchString(name) || name == config.ConfigFileVariable {
			_ = os.Unsetenv(name)
		}
	}
}

// newTestCommand returns the command tree without the annotations that a
// machine may happen to have: where none are named, there are none.
func newTestCommand() *cobra.Command {
	root := newCommand()
	withoutMachine(root)
	return root
}

func withoutMachine(cmd *cobra.Command) {
	if f := cmd.Flags().Lookup("annotations"); f != nil {
		_ = f.Value.Set("/proc/self/none" + f.DefValue) // it does not count as named
	}
	for _, sub := range cmd.Commands() {
		withoutMachine(sub)
	}
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	proctest.Eventually(t, what, condition)
}

// world is a Conjur server and a Pod.
type world struct{ *shared.Pod }

func newWorld(t testing.TB, options ...conjurdtest.Option) *world {
	t.Helper()
	w := &world{shared.NewPod(t, options...)}
	w.Env["TMPDIR"] = w.Path("tmp")
	return w
}

// oneShot makes it a process that delivers once, with quick retries.
func (w *world) oneShot(mode string, retries int) {
	delete(w.Annotations, "secrets-refresh-interval")
	w.Annotations["container-mode"] = mode
	w.Annotations["retry-count-limit"] = strconv.Itoa(retries)
}

// template writes a group's template file whole, as a kubelet does. An empty file
// would cause another error.
func (w *world) template(group, text string) {
	w.Helper()
	shared.Replace(w, w.Path("templates", group+".tpl"), text)
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// file is the content of a file below the secrets folder; "" without it.
func (w *world) file(name string) string {
	content, _ := os.ReadFile(w.Path("secrets", name))
	return string(content)
}

func (w *world) exists(names ...string) bool {
	_, err := os.Lstat(w.Path(names...))
	return err == nil
}

// await waits until the file below the secrets folder holds the text.
func (w *world) await(name, text string) {
	w.Helper()
	eventually(w, "a new text in "+name, func() bool { return strings.Contains(w.file(name), text) })
}

// awaitProvided waits until everything was delivered.
func (w *world) awaitProvided() {
	w.Helper()
	eventually(w, notify.ProvidedFile, func() bool { return w.exists("status", notify.ProvidedFile) })
}

// awaitUpdated waits for the sentinel file, and takes it away as an
// application does.
func (w *world) awaitUpdated() {
	w.Helper()
	eventually(w, notify.UpdatedFile, func() bool { return w.exists("status", notify.UpdatedFile) })
	if err := os.Remove(w.Path("status", notify.UpdatedFile)); err != nil {
		w.Fatal(err)
	}
}

// beat takes the heartbeat's file away and waits until it is back, which
// takes up to a second.
func (w *world) beat() {
	w.Helper()
	alive := w.Path("status", notify.AliveFile)
	eventually(w, "the first beat", func() bool { return os.Remove(alive) == nil })
	eventually(w, "the next beat", func() bool { return w.exists("status", notify.AliveFile) })
}
