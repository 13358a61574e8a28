package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func parse(t *testing.T, branch, text string) *Statements {
	t.Helper()
	st, err := Parse(NewNamespace("dev", branch), []byte(text))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return st
}

func TestParseResolvesIDs(t *testing.T) {
	st := parse(t, "root", `
- !policy
  id: app
  owner: !group /ops
  body:
  - !variable
    id: password
    kind: database password
    annotations: { team: blue }
  - !user alice
  - !policy { id: sub, body: [ !host web, !variable { id: ../up, owner: !group ../../ops } ] }
  - !webservice
- !group ops
- !user bob
`)
	want := []Record{
		{ID: "dev:policy:app", Owner: "dev:group:ops"},
		{ID: "dev:variable:app/password", Owner: "dev:policy:app",
			Annotations: []Annotation{{"conjur/kind", "database password"}, {"team", "blue"}}},
		{ID: "dev:user:alice@app", Owner: "dev:policy:app"},
		{ID: "dev:policy:app/sub", Owner: "dev:policy:app"},
		{ID: "dev:host:app/sub/web", Owner: "dev:policy:app/sub"},
		{ID: "dev:variable:app/sub/../up", Owner: "dev:group:ops"},
		{ID: "dev:webservice:app", Owner: "dev:policy:app"},
		{ID: "dev:group:ops", Owner: "dev:user:admin"},
		{ID: "dev:user:bob", Owner: "dev:user:admin"},
	}
	if !reflect.DeepEqual(st.Records, want) {
		t.Errorf("records are\n%+v instead of\n%+v", st.Records, want)
	}
}

// A role that becomes a member may be named from the root or from above.
func TestParseClimbs(t *testing.T) {
	for _, c := range []struct{ branch, role, want string }{
		{"root", "!user bob", "dev:user:bob"},
		{"root", "!user bob@ops", "dev:user:bob@ops"},
		{"root", "!user ops/db/bob", "dev:user:bob@ops-db"},
		{"ops/db", "!user bob", "dev:user:bob@ops-db"},
		{"ops/db", "!user ../bob", "dev:user:bob@ops"},
		{"ops/db", "!user ../../bob", "dev:user:bob"},
		{"ops/db", "!user /bob", "dev:user:bob"},
		{"ops/db", "!user /bob@hr", "dev:user:bob@hr"},
		{"ops/db", "!user", "dev:user:db@ops"},
		{"ops/db", "!host a/../b", "dev:host:ops/db/b"},
		{"ops/db", "!host a/", "dev:host:ops/db/a"},
		{"ops/db", "!host", "dev:host:ops/db"},
	} {
		st := parse(t, c.branch, "- !grant { role: !group g, member: "+c.role+" }\n")
		if got := st.Grants[0].Members[0].Role; string(got) != c.want {
			t.Errorf("%q in %s is %s instead of %s", c.role, c.branch, got, c.want)
		}
	}
	_, err := Parse(NewNamespace("dev", "ops"), []byte("- !grant { role: !group g, member: !user ../../bob }\n"))
	if err == nil || err.Error() != "Invalid relative reference: ops/../../bob" {
		t.Errorf("a member above the root: %v", err)
	}
}

func TestParseRelations(t *testing.T) {
	st := parse(t, "app", `
- &vars
  - !variable a
  - !variable { id: b }
- !host web
- !group readers
- !grant
  role: !group readers
  members:
  - !host web
  - !member { role: !user /alice, admin: true }
- !permit { role: !group readers, privileges: [ read, execute ], resources: *vars }
- !deny { roles: [ !group readers ], privilege: update, resource: !variable a }
- !revoke { role: !group readers, member: !host web }
- !delete { record: !variable old }
`)
	if want := []Grant{{[]Ref{"dev:group:app/readers"}, []Member{{Role: "dev:host:app/web"}, {Role: "dev:user:alice", Admin: true}}}}; !reflect.DeepEqual(st.Grants, want) {
		t.Errorf("grants are %+v", st.Grants)
	}
	if want := []Permit{{[]Ref{"dev:group:app/readers"}, []string{"read", "execute"}, []Ref{"dev:variable:app/a", "dev:variable:app/b"}}}; !reflect.DeepEqual(st.Permits, want) {
		t.Errorf("permits are %+v", st.Permits)
	}
	if want := []Permit{{[]Ref{"dev:group:app/readers"}, []string{"update"}, []Ref{"dev:variable:app/a"}}}; !reflect.DeepEqual(st.Denies, want) {
		t.Errorf("denies are %+v", st.Denies)
	}
	if want := []Grant{{[]Ref{"dev:group:app/readers"}, []Member{{Role: "dev:host:app/web"}}}}; !reflect.DeepEqual(st.Revokes, want) {
		t.Errorf("revokes are %+v", st.Revokes)
	}
	if want := []Ref{"dev:variable:app/old"}; !reflect.DeepEqual(st.Deletes, want) {
		t.Errorf("deletes are %+v", st.Deletes)
	}
	if !st.Deleting() {
		t.Error("the text is not taken for one that deletes")
	}
}

// What an alias leads to again is the same thing.
func TestParseTakesAnAliasForTheSame(t *testing.T) {
	st := parse(t, "root", `
- !policy
  id: app
  body:
  - &all [ !host web, &key !variable key ]
- *key
- !policy { id: other, body: *all }
- !permit { role: !host app/web, privileges: [ read ], resources: [ *key ] }
`)
	if len(st.Records) != 4 || st.Permits[0].Resources[0] != "dev:variable:app/key" {
		t.Errorf("the text is %+v", st)
	}
}

func TestParseEmptyTexts(t *testing.T) {
	for _, text := range []string{"[]", "# nothing\n", "--- []\n"} {
		if st := parse(t, "root", text); len(st.Records) != 0 || st.Deleting() {
			t.Errorf("%q gives %+v", text, st)
		}
	}
}

// Annotations have YAML's own types; ids are texts.
func TestParseTypesOfScalars(t *testing.T) {
	for in, want := range map[string]string{
		"yes": "true", "On": "true", "TRUE": "true", "no": "false", "OFF": "false", "tRue": "tRue", "y": "y",
		"null": "", "~": "", "''": "", "Null": "", "nULL": "nULL",
		"0": "0", "+7": "7", "-12": "-12", "1_000": "1000", "1,000": "1000", "0x10": "16", "010": "8", "0b101": "5", "08": "08",
		"99999999999999999999": "99999999999999999999",
		"1.50":                 "1.5", "2.0": "2.0", ".5": "0.5", "1.": "1.", "1e3": "1e3", "1e+3": "1000.0", "1e+20": "1.0e+20", "1.5e-7": "1.5e-07", "-.inf": "-Infinity",
		"2020-01-01": "2020-01-01", "2020-13-01": "2020-13-01", "1.2.3": "1.2.3", "e+5": "e+5", "_": "_", ".": ".",
		"'yes'": "yes", `"0x10"`: "0x10", "[1, yes, a, ~, [0x2]]": `[1, true, "a", nil, [2]]`, "[]": "[]",
		"../x": "x", "see ../x": "see ../x",
	} {
		st := parse(t, "root", "- !variable\n  id: v\n  annotations:\n    n: "+in+"\n")
		if got := st.Records[0].Annotations[0].Value; got != want {
			t.Errorf("%s is %q instead of %q", in, got, want)
		}
	}
	if st := parse(t, "root", "- !variable 007\n"); st.Records[0].ID != "dev:variable:007" {
		t.Errorf("id is %s", st.Records[0].ID)
	}
}

func TestParseWarnsOfAttributeNames(t *testing.T) {
	st := parse(t, "root", "- !variable { id: v, annotations: { kind: x, fine: y, mime_type: z } }\n")
	if len(st.Warnings) != 2 || !strings.Contains(st.Warnings[0], "'kind'") || !strings.Contains(st.Warnings[1], "'mime_type'") {
		t.Errorf("warnings are %q", st.Warnings)
	}
}

func TestParseErrorsNameTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		message      string
	}{
		{"unknown tag", "- !nosuch x\n", 1, 0, "Unrecognized data type '!nosuch'"},
		{"unknown tag, nested", "- !policy\n  id: p\n  body:\n  - !nosuch x\n", 4, 2, "Unrecognized data type"},
		{"unknown tag, flow", "- !policy { id: p, body: [ !nosuch x ] }\n", 1, 0, "Unrecognized data type"},
		{"no tag", "- x\n", 1, 0, "no tag"},
		{"mapping without a tag", "- !variable w\n- variable: x\n", 1, 11, "No type given or inferred for sequence entry"},
		{"not a list", "!variable x\n", 1, 0, "Unexpected scalar"},
		{"a word", "--- null\n", 1, 0, "Unexpected scalar"},
		{"a mapping", "a: b\n", 0, 2, "Unexpected mapping"},
		{"no id", "- !variable\n", 1, 0, "variable has a blank id"},
		{"no id in a mapping", "- !host { annotations: { a: b } }\n", 1, 0, "host has a blank id"},
		{"policy without an id in a policy", "- !policy\n  id: p\n  body:\n  - !policy\n", 4, 2, "declared more than once"},
		{"unknown attribute", "- !variable\n  id: x\n  owned: y\n", 3, 2, "No such attribute 'owned' on type Variable"},
		{"attribute of another kind", "- !group\n  id: x\n  mime_type: y\n", 3, 2, "No such attribute 'mime_type' on type Group"},
		{"attribute twice", "- !variable\n  id: x\n  id: y\n", 3, 2, "Duplicate attribute: id"},
		{"declared twice", "- !variable x\n- !variable x\n", 2, 0, "declared more than once"},
		{"id as a list", "- !variable\n  id: [x]\n", 2, 6, "single value"},
		{"owner without a tag", "- !variable\n  id: x\n  owner: y\n", 3, 9, "Expected a Role for field 'owner', got String"},
		{"owner is no role", "- !variable\n  id: x\n  owner: !variable y\n", 3, 9, "Expected a Role for field 'owner', got Variable"},
		{"body is no list", "- !policy\n  id: x\n  body: { a: b }\n", 3, 8, "list of statements"},
		{"annotations are no mapping", "- !variable\n  id: x\n  annotations: [a]\n", 3, 15, "Expected a hash for field 'annotations'"},
		{"bad network", "- !host\n  id: x\n  restricted_to: [ 10.0.0.0/8, nonsense ]\n", 3, 17, "Invalid IP address or CIDR range 'nonsense'"},
		{"grant of a variable", "- !grant { role: !variable x, member: !user y }\n", 1, 0, "Expected a Role for field 'role', got Variable"},
		{"grant to a variable", "- !grant { role: !group x, member: !variable y }\n", 1, 0, "Expected a Member for field 'member', got Variable"},
		{"unknown attribute of a grant", "- !grant { role: !group x, member: !user y, why: z }\n", 1, 0, "No such attribute 'why' on type Grant"},
		{"empty privilege", "- !permit { role: !group x, privileges: [ '' ], resource: !variable y }\n", 1, 0, "'privilege' has an empty item"},
		{"unknown attribute of a permit", "- !permit { role: !group x, z: 1, resource: !variable y }\n", 1, 0, "No such attribute 'z' on type Permit"},
		{"member without a role", "- !grant { role: !group x, member: !member { admin: true } }\n", 1, 0, "needs 'role'"},
		{"delete of nothing", "- !delete { }\n", 1, 0, "needs 'record'"},
		{"delete without a tag", "- !delete { record: x }\n", 1, 0, "Expected a Resource for field 'record', got String"},
		{"delete of a list", "- !delete { record: [ !user x ] }\n", 1, 0, "takes one record"},
		{"revoke with an option", "- !revoke { role: !group x, member: !member { role: !user y } }\n", 1, 0, "Expected a Role for field 'member', got Member"},
		{"number as an id", "- !variable\n  id: 7\n", 2, 6, "Expected a string for field 'id', got Integer"},
		{"admin is neither", "- !grant { role: !group x, member: !member { role: !user y, admin: maybe } }\n", 1, 0, "Expected a boolean for field 'admin', got String"},
		{"owner of each other", "- !group { id: x, owner: !group y }\n- !group { id: y, owner: !group x }\n", 2, 0, "own each other"},
		{"two documents", "- !variable x\n---\n[]\n", 1, 3, "Multiple YAML documents"},
		{"scalar for a statement", "- !grant x\n", 1, 0, "needs attributes"},
		{"host factory", "- !host-factory { id: x, layers: [ !group g ] }\n", 1, 0, "Layer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(NewNamespace("dev", "root"), []byte(c.text))
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("error is %v", err)
			}
			if bad.Line != c.line || bad.Column != c.column || !strings.Contains(bad.Message, c.message) {
				t.Errorf("line %d, column %d: %q", bad.Line, bad.Column, bad.Message)
			}
		})
	}
}

func TestParseErrorForm(t *testing.T) {
	_, err := Parse(NewNamespace("dev", "root"), []byte("- !nosuch x\n"))
	if want := "Error at line 1, column 0 in policy : Unrecognized data type '!nosuch'"; err == nil || err.Error() != want {
		t.Errorf("error is %q", err)
	}
	_, err = Parse(NewNamespace("dev", "root"), []byte("- !variable\n  id: [\n"))
	if want := "did not find expected node content while parsing a flow node"; err == nil || err.Error() != want {
		t.Errorf("error is %q", err)
	}
	var bad *Error
	for text, want := range map[string]string{"- caf\xe9 au lait\n": "invalid trailing UTF-8 octet", "- \xff\n": "invalid leading UTF-8 octet", "- caf\xe9": "incomplete UTF-8 octet sequence"} {
		if _, err = Parse(NewNamespace("dev", "root"), []byte(text)); !errors.As(err, &bad) || !bad.Bare || bad.Message != want {
			t.Errorf("%q gives %v", text, err)
		}
	}
	for _, text := range []string{"---\n", "--- \n...\n", "# a word\n"} {
		if st, err := Parse(NewNamespace("dev", "root"), []byte(text)); err != nil || len(st.Records) > 0 {
			t.Errorf("%q gives %v, %v", text, st, err)
		}
	}
}

// Regression: lists of aliases to empty lists take no room in the result, so
// only the visits can bound them.
func TestParseBoundsAliases(t *testing.T) {
	var lists []string
	for i := range 60 {
		list := "[]"
		if i > 0 {
			ref := fmt.Sprintf("*a%d", i-1)
			list = "[" + strings.Repeat(ref+" , ", 9) + ref + " ]"
		}
		lists = append(lists, fmt.Sprintf("&a%d %s", i, list))
	}
	for name, text := range map[string]string{
		"statements":       "- " + strings.Join(lists, "\n- ") + "\n",
		"privileges":       "- !permit\n  role: !user u\n  resource: !user u\n  privileges:\n  - " + strings.Join(lists, "\n  - ") + "\n",
		"a list in itself": "- &a [ *a ]\n",
	} {
		_, err := Parse(NewNamespace("dev", "root"), []byte(text))
		var bad *Error
		if !errors.As(err, &bad) || bad.Bare {
			t.Errorf("%s: %v", name, err)
		}
	}
}
