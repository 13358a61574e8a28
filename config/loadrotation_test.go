package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// TestRotationOfSets reads all that is said of sets, and fills in the rest.
func TestRotationOfSets(t *testing.T) {
	src := fileSources(t, `
identities: [{name: rotates, conjur: {login: host/rotates, apiKeyFile: /key}}]
rotation:
  every: 30d
  identity: rotates
  perHour: 3
  fromPolicy: true
  sets:
  - {set: a, generate: {random: 32}, publish: {a-plain: key, a-public: {parts: [key]}}, adopt: {key: old}}
  - {set: b, generate: {password: {}}, cron: "0 3 * * 0", keep: 1d12h, confirm: {ask: ["http://127.0.0.1:1/keys"]}}
  - {set: c, generate: {x509: {subject: c, days: 10}}, before: 3d}
  - {set: d, generate: {uuid: true}, confirm: {ask: ["http://127.0.0.1:1/keys"], restarted: [deployment/app]}}
`, nil, connection)
	src.Assume.Files = true
	r, _, err := config.LoadRotation(src.Read())
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	a, b, c, d := r.Sets[0], r.Sets[1], r.Sets[2], r.Sets[3]
	switch {
	case r.PerHour != 3 || !r.FromPolicy || !a.General || b.General || c.General || r.Conjur.Login != "host/rotates" || r.Owner != "host/rotates" || r.Interval != 5*time.Second:
		t.Errorf("the rotation is %+v", r)
	case a.Every != 30*day || a.Keep != day || a.Confirm.Wait != 3*time.Minute || a.Publish["a-plain"].Text != "key" || a.Publish["a-public"].Parts[0] != "key" || a.Adopt["key"] != "old":
		t.Errorf("the set a is %+v", a)
	case b.Every != 0 || b.Keep != 36*time.Hour || b.Confirm.Wait != 0 || b.Generate.Password == nil:
		t.Errorf("the set b is %+v", b)
	case c.Before != 3*day || c.Generate.X509.Days != 10:
		t.Errorf("the set c is %+v", c)
	case len(d.Confirm.Ask) != 1 || len(d.Confirm.Restarted) != 1 || d.Confirm.Wait != 0:
		t.Errorf("the set d is %+v", d)
	}
}

// TestAllFaultsOfSetsAreReported at once, each with its place.
func TestAllFaultsOfSetsAreReported(t *testing.T) {
	_, _, err := config.LoadRotation(fileSources(t, `
rotation:
  identity: nobody
  perHour: 0
  fromPolice: true
  sets:
  - {set: a, generate: {random: 8}}
  - {set: a, generate: {random: 32, uuid: true}}
  - {set: b, generate: {uuid: true}, every: soon}
  - {set: c, generate: {uuid: true}, every: 1d, cron: "* *"}
  - {set: d, generate: {uuid: true}, before: 1d, grace: 1m, migrate: job/x}
  - {set: e}
  - {set: f, generate: {uuid: true}, publish: {f: uuid, g: {parts: []}}, confirm: {ask: "::"}}
`, nil, connection).Read())
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	text := err.Error()
	for _, want := range []string{
		"rotation.identity: no item of identities", "rotation.perHour: 0 is less than 1", "rotation.fromPolice: not a setting",
		"rotation.sets[0].generate.random: 8 is less than 16", "rotation.sets[1].generate: generate names 2 kinds", `rotation.sets[1].set: the set "a" is listed twice`,
		"rotation.sets[2].every:", "rotation.sets[3].cron: the set also has every", "rotation.sets[4].before: only certificates expire",
		"rotation.sets[4].grace: keys have keep", "rotation.sets[4].migrate:", "rotation.sets[5].set: the set has neither generate nor an actuator",
		`rotation.sets[6].publish.f: "f" is the set f`, "rotation.sets[6].publish.g: the list is empty", "rotation.sets[6].confirm.ask:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestAdoptedPartsHaveNamesOfParts: a set with another name could not be read again.
func TestAdoptedPartsHaveNamesOfParts(t *testing.T) {
	long := strings.Repeat("x", 63)
	for name, good := range map[string]bool{
		"a": true, long[1:]: true, long: true, long + "x": false, "a.b": false, "a/b": false, "primary": false, "-a": false, "": false,
	} {
		text := fmt.Sprintf("rotation: {sets: [{set: a, generate: {uuid: true}, adopt: {%q: x}}]}\n", name)
		_, _, refused := config.LoadRotation(fileSources(t, text, nil, connection).Read())
		doc := versions.New("us").Make("r1", map[string]secret.Value{name: secret.New([]byte("x"))}, false, versions.Entry{})
		_, err := doc.Encode()
		if (refused == nil) != good || (err == nil) != good {
			t.Errorf("the part %q, good: %t; the configuration says: %v; the writer: %v", name, good, refused, err)
		}
	}
}

// TestSetsShareNothing: each variable and each login is of one set.
func TestSetsShareNothing(t *testing.T) {
	database := "postgresql: {address: [db:5432/shop, standby:5432/shop], admin: admin, users: [u, v]}"
	for text, want := range map[string]string{
		"{set: a, generate: {uuid: true}, publish: {b: uuid}}, {set: b, generate: {uuid: true}}":                      `sets[0].publish.b: "b" is the set b`,
		"{set: a, generate: {uuid: true}, publish: {b/control: uuid}}, {set: b, generate: {uuid: true}}":              `sets[0].publish.b/control: "b/control" is the control variable of the set b`,
		"{set: a, generate: {uuid: true}, publish: {a/control: uuid}}":                                                `sets[0].publish.a/control: "a/control" is the control variable of the set a`,
		"{set: a, generate: {uuid: true}, publish: {x: uuid}}, {set: b, generate: {uuid: true}, publish: {x: uuid}}":  `sets[1].publish.x: "x" is published by the set a`,
		"{set: a, generate: {uuid: true}, adopt: {uuid: b}}, {set: b, generate: {uuid: true}}":                        `sets[0].adopt.uuid: "b" is the set b`,
		"{set: a, generate: {uuid: true}, adopt: {uuid: a/control}}":                                                  `sets[0].adopt.uuid: "a/control" is the control variable`,
		"{set: a, generate: {uuid: true}, adopt: {uuid: x}}, {set: b, generate: {uuid: true}, publish: {x: uuid}}":    `sets[0].adopt.uuid: "x" is published by the set b`,
		"{set: a, generate: {uuid: true}, adopt: {uuid: x}, publish: {x: uuid}}":                                      "",
		"{set: a, generate: {uuid: true}}, {set: a/control, generate: {uuid: true}}":                                  `sets[1].set: "a/control" is both the control variable of the set a and the set a/control`,
		"{set: a, generate: {x509: {subject: s, ca: b}}}, {set: b, generate: {uuid: true}}":                           `sets[0].generate.x509.ca: the set "b" generates no authority`,
		"{set: a, generate: {x509: {subject: s, ca: b}}}, {set: b, generate: {x509: {subject: s, authority: true}}}":  "",
		"{set: a, generate: {x509: {subject: s, ca: elsewhere}}}":                                                     "",
		"{set: a, generate: {x509: {ca: a}}}":                                                                         "sets[0].generate.x509.ca: the set cannot sign itself",
		"{set: a, generate: {x509: {ca: x}}}, {set: b, generate: {uuid: true}, publish: {x: uuid}}":                   `sets[0].generate.x509.ca: "x" is published by the set b`,
		"{set: a, generate: {x509: {ca: a/control}}}":                                                                 `sets[0].generate.x509.ca: "a/control" is the control variable`,
		"{set: a, " + database + "}, {set: b, postgresql: {address: standby:5432/x, admin: admin, users: [w, v]}}":    "sets[1].postgresql.users: the user v of standby:5432 is in the set a too",
		"{set: a, " + database + "}, {set: b, postgresql: {address: another:5432/shop, admin: admin, users: [u, v]}}": "",
		"{set: a, conjur: {hosts: [h, i]}}, {set: b, conjur: {hosts: [j, h]}}":                                        "sets[1].conjur.hosts: the host h is in the set a too",
	} {
		_, _, err := config.LoadRotation(fileSources(t, "rotation: {sets: ["+text+"]}\n", nil, connection).Read())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "rotation."+want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRotationInEffect is shown with what is filled in.
func TestRotationInEffect(t *testing.T) {
	src := fileSources(t, `
containerMode: standalone
secretsDestination: k8s_secrets
kubernetes: {namespace: ns, namespaces: [ns]}
rotation: {every: 30d, sets: [{set: a, generate: {random: 32}}]}
`, nil, connection)
	cfg, _, err := config.Load(src.Read())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config.NewEffective(cfg))
	if err != nil {
		t.Fatal(err)
	}
	const want = `"every":"30d","sets":[{"set":"a","generate":{"random":32},"confirm":{"wait":"3m0s"},"keep":"24h0m0s"}]`
	if !strings.Contains(string(text), want) || !strings.Contains(string(text), `"perHour":10`) {
		t.Errorf("in effect is %s", text)
	}
}
