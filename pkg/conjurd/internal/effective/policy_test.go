package effective

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// show loads a text into the root policy of a new account and gives what a
// policy amounts to, as YAML and as JSON.
func show(t *testing.T, text, branch string, depth int) (string, string) {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "data"), store.Options{Key: bytes.Repeat([]byte{1}, store.KeySize), Create: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var asYAML, asJSON []byte
	err = s.Update(func(tx *store.Tx) error {
		if err := load.Account(tx, "dev", nil, time.Now()); err != nil {
			return err
		}
		st, err := policy.Parse(policy.NewNamespace("dev", "root"), []byte(text))
		if err != nil {
			return err
		}
		if _, err := load.Apply(tx, load.Request{Account: "dev", Branch: "root", Text: []byte(text), Role: "dev:user:admin"}, st); err != nil {
			return err
		}
		list, err := Of(tx, tx.RolesOf("dev:user:admin"), "dev", branch, depth)
		if err != nil {
			return err
		}
		if asYAML, err = YAML(list); err != nil {
			return err
		}
		asJSON, err = json.Marshal(list)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(asYAML), string(asJSON)
}

const sample = `
- !group consumers
- !policy
  id: app
  owner: !group /consumers
  annotations: { team: blue, on: "yes" }
  body:
  - !variable { id: v, kind: text, mime_type: text/plain, annotations: { a: b } }
  - !variable "123"
  - !variable "odd: # id"
  - !user bob
  - !host { id: h, restricted_to: [ 10.0.0.0/8, 1.2.3.4 ] }
  - !policy { id: sub, body: [ !group g, !group lone ] }
  - !layer front
  - !host-factory { id: hf, layers: [ !layer front ] }
  - !grant { role: !layer front, member: !host h }
  - !grant { role: !group sub/g, members: [ !host h, !user bob ] }
  - !permit { role: !group /consumers, privileges: [ read, execute ], resource: !variable v }
  - !permit { role: !user bob, privileges: [ execute ], resource: !variable v }
`

func TestYAML(t *testing.T) {
	want := `---
- !policy
  id: app
  owner: !group /consumers
  annotations:
    team: blue
    "on": "yes"
  body:
  - !user bob
  - !policy
    id: sub
    body:
    - !group g
    - !group lone
    - !grant
      role: !group g
      members:
      - !host /app/h
      - !user /app/bob
  - !variable 123
  - !variable 'odd: # id'
  - !variable
    id: v
    kind: text
    mime_type: text/plain
    annotations:
      a: b
  - !host
    id: h
    restricted_to: [10.0.0.0/8, 1.2.3.4/32]
  - !layer front
  - !host-factory
    id: hf
    layers:
    - !layer front
  - !grant
    role: !layer front
    members:
    - !host /app/h
  - !permit
    role: !group /consumers
    privileges: [execute, read]
    resource: !variable v
  - !permit
    role: !user bob
    privileges: [execute]
    resource: !variable v
`
	if got, _ := show(t, sample, "app", 64); got != want {
		t.Errorf("shown is\n%s", got)
	}
}

func TestEmptyAndShallow(t *testing.T) {
	if got, _ := show(t, "- !policy sand\n", "sand", 64); got != "---\n- !policy\n  id: sand\n  body: []\n" {
		t.Errorf("an empty policy is\n%s", got)
	}
	if got, _ := show(t, "- !policy { id: a, body: [ !policy { id: b, body: [ !policy c ] }, !group g ] }\n", "root", 1); got != "---\n- !policy\n  id: a\n  body:\n  - !group g\n" {
		t.Errorf("with a depth of one it is\n%s", got)
	}
}

func TestJSON(t *testing.T) {
	_, got := show(t, `
- !policy
  id: conjur/test
  body:
  - !group apps
  - !variable { id: issuer, annotations: { a: b } }
`, "conjur/test", 64)
	want := `[{"policy":{"id":"test","owner":{"user":"/admin"},"body":[{"variable":{"id":"issuer","annotations":{"a":"b"}}},{"group":{"id":"apps"}}]}}]`
	if got != want {
		t.Errorf("shown is\n%s", got)
	}
}

// odd has texts that are something else without quotes, and names that only
// look like paths.
const odd = `
- !variable { id: "0b1", annotations: { a: "1,000", b: "0b1", c: "1e+3", d: "on", e: "~", f: "", g: "2020-01-01", h: "007", i: "x: y", j: "1_0", k: ".5" } }
- !policy
  id: dots
  body:
  - !variable ../up
  - !variable
  - !host a/
`

// What is shown of the root policy says the same when it is loaded.
func TestShownTextIsTheSamePolicy(t *testing.T) {
	first, _ := show(t, sample+odd, "root", 64)
	again, _ := show(t, first, "root", 64)
	if first != again {
		t.Errorf("shown is\n%s\nand after loading that\n%s", first, again)
	}
}
