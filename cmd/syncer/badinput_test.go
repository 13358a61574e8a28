package main

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// badInput is one fault of the configuration, and what the log must name.
type badInput struct {
	name string
	do   func(w *world)
	want []string
}

// annotation, environment and unset are the usual ways to get it wrong.
func annotation(key, value, complaint string) badInput {
	return badInput{key + "=" + value, func(w *world) { w.Annotations[key] = value }, []string{"conjur.org/" + key, complaint}}
}

func environment(name, value, complaint string) badInput {
	return badInput{name + "=" + value, func(w *world) { w.Env[name] = value }, []string{name, complaint}}
}

func unset(name, complaint string) badInput {
	return badInput{"no " + name, func(w *world) { delete(w.Env, name) }, []string{name, complaint}}
}

// refreshed is a mode that ends, with an interval.
func refreshed(mode string) badInput {
	return badInput{"refresh as " + mode, func(w *world) { w.Annotations["container-mode"] = mode },
		[]string{"conjur.org/secrets-refresh-interval", "the mode " + mode + " cannot refresh secrets"}}
}

// destination is one that comes from the environment alone.
func destination(name string) badInput {
	return badInput{"SECRETS_DESTINATION=" + name, func(w *world) {
		delete(w.Annotations, "secrets-destination")
		w.Env["SECRETS_DESTINATION"] = name
	}, []string{"SECRETS_DESTINATION", name}}
}

// withOwn is a group with secrets of the node's own.
func withOwn(fault badInput) badInput {
	return badInput{"secrets of a node: " + fault.name, func(w *world) {
		w.Env["MY_NODE_NAME"], w.Annotations["node-secrets.db"] = "n1", "true"
		fault.do(w)
	}, fault.want}
}

// withoutLogin is an authenticator that proves who somebody is and not as whom
// to log in.
func withoutLogin(authenticator string) badInput {
	return badInput{authenticator + " without a login", func(w *world) {
		delete(w.Env, "CONJUR_AUTHN_LOGIN")
		w.Env["CONJUR_AUTHN_URL"] = "https://127.0.0.1/" + authenticator
	}, []string{"conjur.org/authn-identity", "not set"}}
}

// compatible lists faults that can be made together.
func compatible() []badInput { return append(ofTheProcess(), ofGroups()...) }

func ofTheProcess() []badInput {
	return []badInput{
		annotation("secrets-refresh-interval", "soon", "soon"),
		annotation("retry-count-limit", "many", "many"),
		annotation("remove-deleted-secrets-enabled", "perhaps", "perhaps"),
		annotation("log-level", "loud", "loud"),
		environment("CONJUR_CERT_FILE", "/nowhere/ca.pem", "/nowhere/ca.pem"),
		unset("CONJUR_ACCOUNT", "not set"),
	}
}

func ofGroups() []badInput {
	return []badInput{
		annotation("secret-file-format.db", "toml", "toml"),
		annotation("secret-file-permissions.web", "0644", "0644"),
		annotation("secret-file-path.web", "../outside/web.json", "../outside/web.json"),
		annotation("conjur-secrets.mail", "- a: {b: c}\n", "line 1"),
	}
}

// badInputs lists faults of the process: nothing is delivered.
func badInputs() []badInput {
	return append(ofTheProcess(),
		annotation("secrets-refresh-interval", "0s", "too short"),
		annotation("secrets-refresh-interval", "-5m", "too short"),
		annotation("secrets-refresh-interval", "999ms", "too short"),
		refreshed("init"), refreshed("application"),
		annotation("container-mode", "daemon", "daemon"),
		annotation("container-mode", "", "container mode"),
		annotation("secrets-refresh-enabled", "false", "secrets-refresh-interval"),
		annotation("secrets-refresh-enabled", "on", "Boolean"),
		annotation("secrets-destination", "disk", "disk"),
		annotation("exit-on-revoked", "2", "Boolean"),
		annotation("retry-interval-sec", "1s", "integer"),
		annotation("log-format", "xml", "xml"),
		badInput{"no destination", func(w *world) { delete(w.Annotations, "secrets-destination") }, []string{"conjur.org/secrets-destination", "not set"}},
		badInput{"no group", func(w *world) {
			maps.DeleteFunc(w.Annotations, func(key, _ string) bool { return strings.Contains(key, ".") })
		},
			[]string{"conjur.org/conjur-secrets", "no secret group"}},
		badInput{"no login", func(w *world) { delete(w.Env, "CONJUR_AUTHN_LOGIN") }, []string{"conjur.org/authn-identity", "not set"}},
		unset("CONJUR_AUTHN_API_KEY", "not set"),
		environment("CONJUR_APPLIANCE_URL", "http://conjur.example.com", "clear text"),
		environment("CONJUR_APPLIANCE_URL", "conjur.example.com", "https://"),
		environment("CONJUR_SSL_CERTIFICATE", "no certificate", "PEM"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/nothing", "authenticator"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/authn-ldap/service", "authn-ldap"),
		badInput{"authn-k8s without a Pod", func(w *world) { w.Env["CONJUR_AUTHN_URL"] = "https://127.0.0.1/authn-k8s/service" }, []string{"MY_POD_NAME", "authn-k8s"}},
		badInput{"authn-cert without a certificate", func(w *world) { w.Env["CONJUR_AUTHN_URL"] = "https://127.0.0.1/authn-cert/service" }, []string{"CONJUR_AUTHN_CERT_FILE", "authn-cert"}},
		withoutLogin("authn-iam/service"), withoutLogin("authn-azure/service"), withoutLogin("authn-gcp"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/authn-iam", "service id"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/authn-azure", "service id"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/authn-gcp/service", "service id"),
		environment("CONJUR_AUTHN_URL", "https://127.0.0.1/authn-jwt", "service id"),
		destination("disk"), destination("file"),
		withOwn(environment("MY_NODE_NAME", "n1/n2", "spec.nodeName")),
		withOwn(annotation("node-secrets-base", "db, web", "there is one base")),
	)
}

// badGroups lists faults of the group db, or of it and web.
func badGroups() []badInput {
	return append(ofGroups(),
		annotation("secret-file-path.db", "/etc/passwd", "/etc/passwd"),
		annotation("secret-file-path.db", "a/../../b", "a/../../b"),
		badInput{"one path twice", func(w *world) { w.Annotations["secret-file-path.db"] = "web.json" }, []string{"conjur.org/secret-file-path.", `"db"`, `"web"`}},
		annotation("secret-file-path.db", "web.json/db.json", "web.json"),
		annotation("conjur-secrets.db", "- : x", "conjur-secrets.db"),
		annotation("conjur-secrets.db", "- path/\n", "path/"),
		annotation("conjur-secrets.db", "[", "conjur-secrets.db"),
		badInput{"no template", func(w *world) { w.Annotations["secret-file-format.db"] = "template" },
			[]string{"conjur.org/secret-file-template.db", "db.tpl"}},
		badInput{"a template with an unknown alias", func(w *world) {
			w.Annotations["secret-file-format.db"] = "template"
			w.Annotations["secret-file-template.db"] = `{{ secret "nobody" }}`
		}, []string{"conjur.org/secret-file-template.db", "nobody"}},
		badInput{"an alias that dotenv cannot have", func(w *world) {
			w.Annotations["secret-file-format.db"] = "dotenv"
			w.Annotations["conjur-secrets.db"] = "- not-a-name: db/password\n"
		}, []string{"conjur.org/conjur-secrets.db", "not-a-name"}},
		withOwn(unset("MY_NODE_NAME", "spec.nodeName")),
		withOwn(badInput{"an id by hand", func(w *world) { w.Annotations["conjur-secrets.db"] = "- node/n1/db/password" },
			[]string{"conjur.org/node-secrets.db", "node/n1/db/password", "name the one that all nodes have"}}),
	)
}

func TestBadInputEndsBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	for _, c := range badInputs() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := badWorld(t)
			c.do(w)
			w.refused(w.start(), c.want)
		})
	}
}

// TestABadGroupStopsNoOther: it is named, all others are delivered, and the
// process ends with an error.
func TestABadGroupStopsNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range badGroups() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := badWorld(t)
			w.oneShot("init", 0)
			w.Group("good", "json", "good/password")
			c.do(w)
			p := w.start()
			p.Exit(1)
			if len(p.Lines(append(c.want, "ERROR")...)) == 0 || len(p.Lines("not delivered: file/")) == 0 {
				t.Errorf("no error names %q and the group in:\n%s", c.want, p.Log())
			}
			if !strings.Contains(w.file("good.json"), w.Value["good/password"]) || w.exists("status", notify.ProvidedFile) {
				t.Error("the other group is not delivered, or all is said to be")
			}
		})
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	w := badWorld(t)
	p := w.start("--workers", "-1", "--grace", "-2s")
	p.Exit(1)
	for _, want := range []string{"--workers -1 is too few; use at least 1", "--grace -2s is too short; use at least 0s"} {
		if len(p.Lines(want)) != 1 {
			t.Errorf("%q is not said once in:\n%s", want, p.Log())
		}
	}
}

// TestAllProblemsAreToldAtOnce makes many faults in one configuration.
func TestAllProblemsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w := badWorld(t)
	var all [][]string
	for _, c := range compatible() {
		c.do(w)
		all = append(all, c.want)
	}
	w.refused(w.start(), all...)
}

func TestMalformedAnnotations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no quotes":     {"conjur.org/log-level=debug\n", "annotations:1"},
		"no sign":       {"conjur.org/log-level\n", "annotations:1"},
		"an empty line": {"a=\"b\"\n\nc=\"d\"\n", "annotations:2"},
		"half a string": {"a=\"b\"\nconjur.org/log-level=\"debug\n", "annotations:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := badWorld(t)
			w.write(w.Path("bad", "annotations"), c.text)
			w.refused(w.start("--annotations", w.Path("bad", "annotations")), []string{c.want})
		})
	}
}

func TestUnknownFlagsAndCommands(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"no-such-command"}, {"--log-format", "xml"}, {"--workers", "some"}} {
		w := badWorld(t)
		p := w.start(args...)
		p.Exit(1)
		if !strings.Contains(p.Log(), args[0]) {
			t.Errorf("%q is not told: %s", args[0], p.Log())
		}
	}
}

// badWorld would work, if nothing were wrong.
func badWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("web", "json", "web/password")
	w.Env["CONJUR_CERT_FILE"] = w.Path("ca.pem")
	delete(w.Env, "CONJUR_SSL_CERTIFICATE")
	w.write(w.Path("ca.pem"), string(w.Server.CA))
	if err := os.Mkdir(w.Path("bad"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// refused fails the test unless the process ends with status 1, has told each
// of the problems in a line of its own, sent nothing and written nothing.
func (w *world) refused(p *proctest.Process, problems ...[]string) {
	w.Helper()
	p.Exit(1)
	for _, texts := range problems {
		if len(p.Lines(append(texts, "ERROR")...)) == 0 {
			w.Errorf("no error names %q in:\n%s", texts, p.Log())
		}
	}
	if n := w.Server.Counts(); n != (conjurdtest.Counts{}) {
		w.Errorf("requests: %+v", n)
	}
	for _, folder := range []string{"secrets", "status"} {
		if left, err := os.ReadDir(w.Path(folder)); err != nil || len(left) > 0 {
			w.Errorf("in the folder %s: %v, %v", folder, left, err)
		}
	}
}
