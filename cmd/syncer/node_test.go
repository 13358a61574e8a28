package main

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// onNode has a group of secrets of which this node may have its own.
func onNode(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, options...)
	w.Env["MY_NODE_NAME"] = "n1"
	w.Group("db", "json", "apps/user", "apps/password")
	w.Annotations["node-secrets.db"] = "true"
	return w
}

// own makes a variable of the node's own.
func (w *world) own(id string) {
	w.Helper()
	w.Declare("node/n1/" + id)
	w.Renew("node/n1/" + id)
}

// TestSecretsOfANode has one group of them and one without; one is added, and one
// goes.
func TestSecretsOfANode(t *testing.T) {
	t.Parallel()
	w := onNode(t, conjurdtest.Strict())
	w.Annotations["conjur-secrets.general"] = "- apps/user"
	w.Declare("node/n2/apps/user") // that of another node, which this one may even read
	w.Renew("node/n2/apps/user")
	w.own("apps/user")
	p := w.start()
	w.settle()
	w.await("db.json", w.Value["node/n1/apps/user"])
	w.await("db.json", w.Value["apps/password"])
	w.await("general.yaml", w.Value["apps/user"])

	w.Declare("node/n1/apps/password") // declared, and without a value
	w.await("db.json", w.Renew("apps/password"))
	w.await("db.json", w.Renew("node/n1/apps/password"))
	w.await("db.json", w.Renew("node/n1/apps/user"))

	before := w.file("db.json")
	w.Remove("node/n1/apps/user")
	w.await("db.json", w.Value["apps/user"])
	w.await("db.json", w.Value["node/n1/apps/password"])
	if strings.Contains(before, w.Value["apps/user"]) {
		t.Error("it held the general one before")
	}
	w.own("apps/user")
	w.await("db.json", w.Value["node/n1/apps/user"])
	p.Stop()
	before = w.file("db.json")
	p = w.start() // and finds all as it was left
	w.beat()
	w.Server.ResetCounts()
	eventually(t, "an answer 304", func() bool { return w.Server.Counts().NotModified > 0 })
	if w.file("db.json") != before {
		t.Error("a restart changed the file")
	}
	p.Stop()
}

// told runs a command line, with this standard input, in this process.
func told(t *testing.T, input string, args ...string) (out, said string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	root := newCommand()
	setArgs(root, args)
	root.SetIn(strings.NewReader(input))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestSetOneVariable(t *testing.T) {
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			server := setFixture(t, options...)
			if _, said, err := told(t, "one\x00", "set", "a"); err != nil || said != "" {
				t.Errorf("set: %v, %q", err, said)
			}
			assertValue(t, server, "a", "one\x00")
			if _, said, err := told(t, "two\n", "set", "a"); err != nil || !strings.Contains(said, "ends in a line feed") {
				t.Errorf("set: %v, %q", err, said)
			}
			assertValue(t, server, "a", "two\n")
			if _, _, err := told(t, "", "set", "a"); err == nil || !strings.Contains(err.Error(), "standard input is empty") {
				t.Errorf("without a value: %v", err)
			}
			if _, _, err := told(t, "canary", "set", "c"); err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("a variable that may not be set: %v", err)
			}
		})
	}
}

func TestNodeList(t *testing.T) {
	server := setFixture(t)
	server.Policy(`
- !variable node/n2/a
- !variable node/n1/a
- !variable node/n1/lost
- !variable user/u/node/n1/key
- !variable user/u/key
- !permit { role: !host app, privileges: [read], resources: [!variable node/n1/a, !variable node/n2/a, !variable node/n1/lost, !variable user/u/node/n1/key, !variable user/u/key] }
`)
	server.Set("node/n1/a", "canary")
	out, said, err := told(t, "", "node", "list")
	want := "NODE  VARIABLE    VALUE\nn1    a           set\nn1    lost        none\nn1    user/u/key  none\nn2    a           none\n"
	if err != nil || out != want {
		t.Errorf("%v; it lists\n%s", err, out)
	}
	if want := "warning: node n1: the general variable \"lost\" does not exist; create it, or the other nodes get no value\n"; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
	out, _, err = told(t, "", "node", "list", "--output", "json", "--base", "user")
	if err != nil || !strings.Contains(out, `"overrides": []`) {
		t.Errorf("below another base: %v, %s", err, out)
	}
	if _, _, err = told(t, "", "node", "list", "--base", "a, b"); err == nil || !strings.Contains(err.Error(), "there is one base for all groups") {
		t.Errorf("below two bases: %v", err)
	}
	if out, _, err = told(t, "", "__complete", "explain", "--node", ""); err != nil || out != "n1\nn2\n:4\n" {
		t.Errorf("a shell offers the nodes %q, %v", out, err)
	}
}

func TestManifestsOfTheExamplesAreValid(t *testing.T) {
	for _, path := range []string{"node-agent/daemonset.yaml", "inject.yaml"} {
		if _, said, err := told(t, "", "validate", "-f", "../../deploy/examples/"+path); err != nil || said != "" {
			t.Errorf("%s: %v: %s", path, err, said)
		}
	}
}
