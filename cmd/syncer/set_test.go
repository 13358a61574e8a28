package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/secret"
)

const setTestPolicy = `
- !variable a
- !variable b
- !variable c
- !variable unset
- !host app
- !permit { role: !host app, privileges: [read, execute, update], resources: [!variable a, !variable b, !variable unset] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable c }
`

// setFixture is a server with three values set, whose host app the environment
// names.
func setFixture(t *testing.T, opts ...conjurdtest.Option) *conjurdtest.Server {
	t.Helper()
	server := conjurdtest.Start(t, opts...)
	server.Policy(setTestPolicy)
	for _, id := range []string{"a", "b", "c"} {
		server.Set(id, "old-"+id)
	}
	t.Setenv("CONJUR_AUTHN_URL", "")
	for name, value := range server.Env("app") {
		t.Setenv(name, value)
	}
	return server
}

func valuesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// assertValue reads as the admin.
func assertValue(t *testing.T, server *conjurdtest.Server, id, want string) {
	t.Helper()
	client, err := connect.Conjur(config.Conjur{
		ApplianceURL: server.URL, Account: server.Account, SSLCertificate: string(server.CA),
		AuthnType: config.AuthnAPIKey, Login: "admin", APIKey: secret.New([]byte(server.AdminKey)),
	}, connect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if a := client.Batch(t.Context(), &conjur.Batch{IDs: []string{id}}, ""); string(a.Found[id].Bytes()) != want {
		t.Errorf("%s is %q (%v), want %q", id, a.Found[id].Bytes(), a.Err, want)
	}
}

func TestSetSetsAllValuesAtOnce(t *testing.T) {
	server := setFixture(t)
	if err := command(t, "set", "-f", valuesFile(t, "a: one\nb: {base64: AP8=}\n")); err != nil {
		t.Fatal(err)
	}
	assertValue(t, server, "a", "one")
	assertValue(t, server, "b", "\x00\xff")
}

func TestSetWithOneRefusedSetsNothing(t *testing.T) {
	server := setFixture(t)
	err := command(t, "set", "-f", valuesFile(t, "a: canary-1\nc: canary-2\nnope: canary-3\n"))
	if err == nil || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), `"nope"`) || strings.Contains(err.Error(), "canary") {
		t.Errorf("error is %v, want one that names c and nope, and no value", err)
	}
	assertValue(t, server, "a", "old-a")
}

func TestSetAgainstTheGenuineServerAsksFirst(t *testing.T) {
	server := setFixture(t, conjurdtest.Strict())
	err := command(t, "set", "-f", valuesFile(t, "a: one\n"))
	if err == nil || !strings.Contains(err.Error(), "--allow-non-atomic") {
		t.Errorf("error is %v, want one that says what to add", err)
	}
	assertValue(t, server, "a", "old-a")
	if err := command(t, "set", "--allow-non-atomic", "-f", valuesFile(t, "a: one\nb: two\n")); err != nil {
		t.Error(err)
	}
	assertValue(t, server, "a", "one")
	assertValue(t, server, "b", "two")
}

func TestSetOneByOnePutsBackWhatItCanAndSaysSo(t *testing.T) {
	server := setFixture(t, conjurdtest.Strict())
	// In order of the ids: a and b are set, c is refused.
	err := command(t, "set", "--allow-non-atomic", "-f", valuesFile(t, "a: one\nb: two\nc: three\nunset: four\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`setting "c" failed`, `"a" has its earlier value again`, `"b" has its earlier value again`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s in it", err, want)
		}
	}
	assertValue(t, server, "a", "old-a")
	assertValue(t, server, "b", "old-b")
}

func TestSetSaysWhichValueKeepsItsNewForm(t *testing.T) {
	server := setFixture(t, conjurdtest.Strict())
	server.Policy("- !variable zz\n- !permit { role: !host app, privileges: [read, execute], resource: !variable zz }\n")
	err := command(t, "set", "--allow-non-atomic", "-f", valuesFile(t, "unset: one\nzz: two\n"))
	if err == nil || !strings.Contains(err.Error(), `"unset" keeps its new value`) {
		t.Errorf("error is %v, want one that says what was left", err)
	}
}
