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
  - !policy { id: sub, body: [ !host web, !variable ../up ] }
  - !webservice
- !group ops
- !user bob
`)
	want := []Record{
		{ID: "dev:policy:app", Owner: "dev:group:ops", OwnerGiven: true},
		{ID: "dev:variable:app/password", Owner: "dev:policy:app",
			Annotations: []Annotation{{"conjur/kind", "database password"}, {"team", "blue"}}},
		{ID: "dev:user:alice@app", Owner: "dev:policy:app"},
		{ID: "dev:policy:app/sub", Owner: "dev:policy:app"},
		{ID: "dev:host:app/sub/web", Owner: "dev:policy:app/sub"},
		{ID: "dev:variable:app/up", Owner: "dev:policy:app/sub"},
		{ID: "dev:webservice:app", Owner: "dev:policy:app"},
		{ID: "dev:group:ops", Owner: "dev:user:admin"},
		{ID: "dev:user:bob", Owner: "dev:user:admin"},
	}
	if !reflect.DeepEqual(st.Records, want) {
		t.Errorf("records are\n%+v instead of\n%+v", st.Records, want)
	}
}

func TestResolveUsers(t *testing.T) {
	for _, c := range []struct{ branch, id, want string }{
		{"root", "bob", "dev:user:bob"},
		{"root", "bob@ops", "dev:user:bob@ops"},
		{"root", "ops/db/bob", "dev:user:bob@ops-db"},
		{"ops/db", "bob", "dev:user:bob@ops-db"},
		{"ops/db", "../bob", "dev:user:bob@ops"},
		{"ops/db", "../../bob", "dev:user:bob"},
		{"ops/db", "/bob", "dev:user:bob"},
		{"ops/db", "/bob@hr", "dev:user:bob@hr"},
		{"ops", "../../../bob", "dev:user:bob"},
	} {
		if got := NewNamespace("dev", c.branch).Resolve("user", c.id); string(got) != c.want {
			t.Errorf("user %q in %s is %s instead of %s", c.id, c.branch, got, c.want)
		}
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

func TestParseEmptyTexts(t *testing.T) {
	for _, text := range []string{"[]", "---\n", "# nothing\n", "--- []\n"} {
		if st := parse(t, "root", text); len(st.Records) != 0 || st.Deleting() {
			t.Errorf("%q gives %+v", text, st)
		}
	}
}

func TestParseKeepsTextsOfScalars(t *testing.T) {
	st := parse(t, "root", "- !variable { id: 007, annotations: { on: yes, n: 1.50, date: 2020-01-01 } }\n")
	if st.Records[0].ID != "dev:variable:007" {
		t.Errorf("id is %s", st.Records[0].ID)
	}
	if want := []Annotation{{"on", "yes"}, {"n", "1.50"}, {"date", "2020-01-01"}}; !reflect.DeepEqual(st.Records[0].Annotations, want) {
		t.Errorf("annotations are %+v", st.Records[0].Annotations)
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
		{"unknown tag, flow", "- !policy { id: p, body: [ !nosuch x ] }\n", 1, 27, "Unrecognized data type"},
		{"no tag", "- x\n", 1, 0, "no tag"},
		{"mapping without a tag", "- id: x\n", 1, 0, "no tag"},
		{"not a list", "!variable x\n", 1, 0, "list of statements"},
		{"no id", "- !variable\n", 1, 0, "has no id"},
		{"no id in a mapping", "- !host { annotations: { a: b } }\n", 1, 0, "has no id"},
		{"user without an id in a policy", "- !policy\n  id: p\n  body:\n  - !user\n", 4, 2, "has no id"},
		{"unknown attribute", "- !variable\n  id: x\n  owned: y\n", 3, 2, "no attribute 'owned'"},
		{"attribute of another kind", "- !group\n  id: x\n  mime_type: y\n", 3, 2, "no attribute 'mime_type'"},
		{"attribute twice", "- !variable\n  id: x\n  id: y\n", 3, 2, "given twice"},
		{"declared twice", "- !variable x\n- !variable x\n", 2, 0, "declared more than once"},
		{"id as a list", "- !variable\n  id: [x]\n", 2, 6, "single value"},
		{"owner without a tag", "- !variable\n  id: x\n  owner: y\n", 3, 9, "tagged id"},
		{"owner is no role", "- !variable\n  id: x\n  owner: !variable y\n", 3, 9, "not a role"},
		{"body is no list", "- !policy\n  id: x\n  body: { a: b }\n", 3, 8, "list of statements"},
		{"annotations are no mapping", "- !variable\n  id: x\n  annotations: [a]\n", 3, 15, "needs attributes"},
		{"bad network", "- !host\n  id: x\n  restricted_to: [ 10.0.0.0/8, nonsense ]\n", 3, 17, "Invalid IP address or CIDR range 'nonsense'"},
		{"grant without a member", "- !grant { role: !group x }\n", 1, 0, "needs 'role' and 'member'"},
		{"grant of a variable", "- !grant { role: !variable x, member: !user y }\n", 1, 17, "not a role"},
		{"grant to a variable", "- !grant { role: !group x, member: !variable y }\n", 1, 35, "not a role"},
		{"unknown attribute of a grant", "- !grant { role: !group x, member: !user y, why: z }\n", 1, 44, "no attribute 'why'"},
		{"permit without privileges", "- !permit { role: !group x, resource: !variable y }\n", 1, 0, "needs 'role', 'privileges' and 'resource'"},
		{"empty privilege", "- !permit { role: !group x, privileges: [ '' ], resource: !variable y }\n", 1, 0, "empty privilege"},
		{"unknown attribute of a permit", "- !permit { role: !group x, z: 1, resource: !variable y }\n", 1, 28, "no attribute 'z'"},
		{"member without a role", "- !grant { role: !group x, member: !member { admin: true } }\n", 1, 35, "needs 'role'"},
		{"delete of nothing", "- !delete { }\n", 1, 0, "needs 'record'"},
		{"delete without a tag", "- !delete { record: x }\n", 1, 20, "tagged id"},
		{"scalar for a statement", "- !grant x\n", 1, 0, "needs attributes"},
		{"host factory", "- !host-factory x\n", 1, 0, "not supported"},
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
	if _, err = Parse(NewNamespace("dev", "root"), []byte("- \xff\n")); !errors.As(err, &bad) || !bad.Syntax {
		t.Errorf("invalid UTF-8 gives %v", err)
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
		if !errors.As(err, &bad) || bad.Syntax {
			t.Errorf("%s: %v", name, err)
		}
	}
}
