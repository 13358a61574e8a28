package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/test/proctest"
)

// exec starts syncer exec on this world with a shell script as its command.
// The script finds the world's folder in $world. Its output is searched for
// values, as is syncer's, so it must tell what it sees in files.
func (w *world) exec(script string, flags ...string) *proctest.Process {
	w.Helper()
	return w.execCommand(flags, "sh", "-c", script)
}

func (w *world) execCommand(flags []string, command ...string) *proctest.Process {
	w.Helper()
	return w.execBy((*exec.Cmd).Start, flags, command...)
}

// execBy is execCommand with another way to start a process.
func (w *world) execBy(begin func(*exec.Cmd) error, flags []string, command ...string) *proctest.Process {
	w.Helper()
	w.Annotate()
	args := slices.Concat([]string{
		"exec", "--annotations", w.Path("annotations"), "--secrets-dir", w.Path("secrets"),
		"--templates-dir", w.Path("templates"),
	}, flags, []string{"--"}, command)
	env := append(w.Environ(), "PATH="+os.Getenv("PATH"), "world="+w.Dir)
	p := spawnBy(w, begin, env, args...)
	w.Cleanup(func() { w.Silent(p) })
	return p
}

// noted is the content of a file that a script has written; "" without it.
func (w *world) noted(name string) string {
	content, _ := os.ReadFile(w.Path(name))
	return string(content)
}

func (w *world) awaitNoted(name, text string) {
	w.Helper()
	eventually(w, fmt.Sprintf("%q in %s", text, name), func() bool { return strings.Contains(w.noted(name), text) })
}

// environment makes a group of variables of the environment.
func (w *world) environment(group string, ids ...string) {
	w.Helper()
	w.Group(group, "json", ids...)
}

// waits is the end of a script that goes on until a signal ends it.
const waits = `; while [ -d "$world" ]; do sleep 0.05; done`

func TestExecRunsItsCommandWithFilesAndEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.environment("web", "web/TOKEN", "web/KEY")
	w.Env["TOKEN"], w.Env["OTHER"] = "of the container", "other"
	p := w.exec(`tr '\0' '\n' < /proc/$$/environ | sed 's/=.*/=/' > "$world/all"; cat "$world/secrets/db.json" > "$world/files"; printf '%s %s %s' "$TOKEN" "$KEY" "$OTHER" > "$world/env"; exit 7`, "--env", "web")
	p.Exit(7)
	if !strings.Contains(w.noted("files"), w.Value["db/password"]) {
		t.Errorf("the command has not seen the file, but %q", w.noted("files"))
	}
	if want := w.Value["web/TOKEN"] + " " + w.Value["web/KEY"] + " other"; w.noted("env") != want {
		t.Error("the command has not seen its environment")
	}
	w.nowhereButIn("env", w.Value["web/TOKEN"])
	if env := strings.Count(w.noted("all"), "TOKEN="); env != 1 {
		t.Errorf("the variable is %d times in the environment", env)
	}
	if left, _ := filepath.Glob(w.Path("tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// nowhereButIn fails the test if a file of the world but one holds the text.
func (w *world) nowhereButIn(name, text string) {
	w.Helper()
	err := filepath.WalkDir(w.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == w.Path(name) {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			w.Errorf("a value of the environment is in %s", path)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

func TestExecNeedsNoFolderForAnEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	if err := os.Remove(w.Path("secrets")); err != nil {
		t.Fatal(err)
	}
	p := w.exec(`printf %s "$password" > "$world/env"`, "--env", "db")
	p.Exit(0)
	if lines := p.Lines("Writing target"); len(lines) > 0 || len(p.Lines("Environment variables set", "file/db")) != 1 {
		t.Errorf("the log says that a file was written: %q", lines)
	}
	if w.noted("env") != w.Value["db/password"] {
		t.Error("the command has not seen its environment")
	}
	if errors := p.Lines("ERROR"); len(errors) > 0 {
		t.Errorf("reported: %q", errors)
	}
}

func TestExecDeliversOnceInTheModeInit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("init", 0)
	w.Group("db", "json", "db/password")
	w.exec(`cp "$world/secrets/db.json" "$world/files"; exit 4`).Exit(4)
	if !strings.Contains(w.noted("files"), w.Value["db/password"]) {
		t.Error("the command has not seen the file")
	}
	if n := w.Server.Counts().Authentications; n != 1 {
		t.Errorf("%d logins for one delivery", n)
	}
}

// TestExecRefreshesWithoutASetting: every five minutes, in the place of a sidecar that
// somebody configured.
func TestExecRefreshesWithoutASetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	delete(w.Annotations, "secrets-refresh-interval")
	p := w.exec("exit 0", "--env", "db")
	p.Exit(0)
	if !strings.Contains(p.Log(), `"refresh": "5m0s"`) {
		t.Error("syncer exec does not refresh")
	}
}

func TestExecEndsIfToldToWhileItDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	asked := make(chan struct{})
	var once sync.Once
	w.Server.Intercept(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(asked) })
			<-r.Context().Done()
		})
	})
	p := w.exec(`touch "$world/ran"`, "--grace", "100ms")
	<-asked
	p.Signal(syscall.SIGTERM)
	p.Exit(1)
	if w.exists("ran") {
		t.Error("the command has run")
	}
}

func TestExecRunsNothingUnlessAllIsDelivered(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(*world)
		flags []string
		names []string // what the log must name
	}{
		{"a variable without a value", func(w *world) {
			w.Annotations["conjur-secrets.db"] = "- password: db/password\n- other: db/other\n"
			w.Declare("db/other")
		}, nil, []string{"db/other"}},
		{"an unknown group", nil, []string{"--env", "nobody", "--env", "db"}, []string{`no secret group "nobody"`}},
		{"an alias that is no name", func(w *world) { w.Group("bad", "json", "bad/one-two") }, []string{"--env", "bad"}, []string{`"one-two"`, `"bad"`}},
		{"an alias twice", func(w *world) { w.Group("more", "json", "more/password") }, []string{"--env", "more", "--env", "db"}, []string{`"db" and "more"`, `"password"`}},
		{"all variables", func(w *world) { w.Annotations["conjur-secrets.all"] = "*" }, []string{"--env", "all"}, []string{`"all"`, "all variables"}},
		{"a value that no environment can hold", func(w *world) { w.Server.Set("db/password", "a\x00b") }, []string{"--env", "db"}, []string{"password", "NUL"}},
		{"another destination", func(w *world) {
			w.Annotations["secrets-destination"] = "k8s_secrets"
			w.Annotations["k8s-secrets"] = "- some\n"
			w.Env["MY_POD_NAMESPACE"] = "here"
		}, nil, []string{"files or environment variables"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Group("db", "json", "db/password")
			w.Annotations["retry-count-limit"] = "0"
			if test.spoil != nil {
				test.spoil(w)
			}
			p := w.exec(`touch "$world/ran"`, test.flags...)
			p.Exit(1)
			if w.exists("ran") {
				t.Error("the command has run")
			}
			for _, name := range test.names {
				if !strings.Contains(p.Log(), name) {
					t.Errorf("the log does not name %s", name)
				}
			}
		})
	}
}

func TestExecEndsAsItsCommandDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.write(w.Path("data"), "not a program")
	for _, test := range []struct {
		command []string
		status  int
	}{
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "exit 42"}, 42},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9},
		{[]string{"sh", "-c", "kill -SEGV $$"}, 128 + 11},
		{[]string{"no-such-program"}, 127},
		{[]string{w.Path("no-such-program")}, 127},
		{[]string{w.Path("data")}, 126},
		{[]string{w.Dir}, 126},
	} {
		t.Run(strings.Join(test.command, " "), func(t *testing.T) {
			w.execCommand(nil, test.command...).Exit(test.status)
		})
	}
}

// lives is a script that tells of its process and its environment, and notes
// when it is told to end.
const lives = `trap 'echo "$$ ended" >> "$world/log"; exit' TERM; echo "$$ $password" >> "$world/log"` + waits

func TestExecRestartsItsCommandWithTheNewEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	w.Group("web", "json", "web/password")
	p := w.exec(lives, "--env", "db")
	w.awaitNoted("log", w.Value["db/password"])
	before, _, _ := strings.Cut(w.noted("log"), " ")
	value := w.Renew("db/password")
	w.awaitNoted("log", value)
	w.awaitNoted("log", before+" ended\n")

	w.Renew("web/password") // a file of another group
	eventually(t, "a third start", func() bool { return strings.Count(w.noted("log"), "canary-") == 3 })
	w.await("web.json", w.Value["web/password"])
	w.nowhereButIn("log", value)
	p.Stop()
	if n := strings.Count(w.noted("log"), "ended"); n != 3 {
		t.Errorf("%d ends for 3 starts", n)
	}
}

func TestExecSignalsItsCommandAfterAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	p := w.exec(`trap 'cat "$world/secrets/db.json" >> "$world/log"' HUP; trap 'echo lives >> "$world/log"' INT; echo started >> "$world/log"`+waits,
		"--on-change", "signal:SIGHUP")
	w.awaitNoted("log", "started")
	p.Signal(syscall.SIGINT) // which not every command takes for its end
	w.awaitNoted("log", "lives")
	for range 2 {
		w.renewAndAwait("db/password", "log")
	}
	p.Signal(syscall.SIGTERM)
	p.Exit(128 + 15)
	if n := strings.Count(w.noted("log"), "started"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}
}

// renewAndAwait renews a variable and waits until a script has told of it.
func (w *world) renewAndAwait(id, file string) string {
	w.Helper()
	value := w.Renew(id)
	w.awaitNoted(file, value)
	return value
}

func TestExecLeavesItsCommandAloneIfToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	p := w.exec(lives, "--on-change", "none", "--status-dir", w.Path("status"))
	w.awaitNoted("log", " ")
	w.Renew("db/password")
	w.await("db.json", w.Value["db/password"])
	w.awaitUpdated()
	w.beat()
	w.beat()
	p.Stop()
	if n := strings.Count(w.noted("log"), "ended"); n != 1 {
		t.Errorf("the command was ended %d times", n)
	}
}

func TestExecPassesSignalsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	names := []string{"HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "ALRM", "CONT"}
	var script strings.Builder
	for _, name := range names {
		fmt.Fprintf(&script, `trap 'echo %s >> "$world/log"' %s; `, name, name)
	}
	script.WriteString(`trap 'exit 3' TERM; echo ready >> "$world/log"` + waits)
	p := w.exec(script.String())
	w.awaitNoted("log", "ready")
	for _, name := range names {
		p.Signal(unix.SignalNum("SIG" + name))
		w.awaitNoted("log", name+"\n")
	}
	p.Signal(syscall.SIGTERM)
	p.Exit(3)
}

func TestExecUsesForceOnACommandThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	// It ignores SIGTERM, and so does what it leaves behind.
	p := w.exec(`trap '' TERM; sleep 1000 > /dev/null 2>&1 & echo $! >> "$world/left"; echo "$password" >> "$world/log"; while [ -d "$world" ] && [ ! -e "$world/go" ]; do sleep 0.05; done`,
		"--env", "db", "--stop-timeout", "200ms")
	w.awaitNoted("log", w.Value["db/password"])
	w.renewAndAwait("db/password", "log")
	var first, second int // that the commands left behind
	if _, err := fmt.Sscan(w.noted("left"), &first, &second); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(second, unix.SIGKILL) }()
	eventually(t, "the end of what the first command left behind", func() bool { return unix.Kill(first, 0) != nil })
	if len(p.Lines("killing it")) != 1 {
		t.Error("the log does not say that force was used")
	}
	w.write(w.Path("go"), "")
	p.Exit(0)
}

func TestExecEndsItsCommandWhenSecretsAreRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.environment("web", "web/password")
	p := w.exec(lives, "--env", "web")
	w.awaitNoted("log", w.Value["web/password"])
	w.Deny("db/password")
	p.Exit(1)
	if w.exists("secrets", "db.json") {
		t.Error("the file with the revoked value is still there")
	}
	if !strings.Contains(w.noted("log"), "ended") {
		t.Error("the command was not told to end")
	}
}

func TestExecDoesNotStartItsCommandOnceToldToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	// It takes its time to end.
	p := w.exec(`trap 'echo ending >> "$world/log"; while [ ! -e "$world/go" ]; do sleep 0.05; done; exit 5' TERM; echo "$password" >> "$world/log"`+waits, "--env", "db", "--stop-timeout", "1m")
	w.awaitNoted("log", w.Value["db/password"])
	w.Renew("db/password")
	w.awaitNoted("log", "ending")
	p.Signal(syscall.SIGTERM)
	awaitSignal(t, p)
	w.write(w.Path("go"), "")
	p.Exit(5)
	if n := strings.Count(w.noted("log"), "canary-"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}
}

func TestExecWithoutACommandSaysSo(t *testing.T) {
	t.Parallel()
	p := newWorld(t).execCommand(nil)
	p.Exit(1)
	if len(p.Lines("no command given", "after --")) != 1 {
		t.Errorf("it says %q", p.Log())
	}
}
