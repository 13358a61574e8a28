package policy

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse looks for texts that break the parser, and checks what must hold
// for whatever it accepts.
func FuzzParse(f *testing.F) {
	f.Add("root", "- !variable a\n- !host { id: h, restricted_to: 10.0.0.1 }\n")
	f.Add("app", "- !policy\n  id: p\n  body:\n  - &v [ !variable a ]\n  - !permit { role: !user /u, privileges: [read], resources: *v }\n")
	f.Add("app/db", "- !grant { role: !group ../g, members: [ !member { role: !user u, admin: true } ] }\n- !delete { record: !variable x }\n")
	f.Add("root", "- !nosuch x\n")
	f.Add("root", "- !variable\n  id: [\n")
	f.Add("root", "- &a [ *a ]\n")
	f.Fuzz(func(t *testing.T, branch, text string) {
		if strings.ContainsRune(branch, 0) {
			return // a path with one is refused before
		}
		st, err := Parse(NewNamespace("dev", branch), []byte(text))
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || bad.Message == "" || bad.Line < 1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		seen := map[Ref]bool{}
		for _, r := range st.Records {
			account, kind, id, ok := r.ID.Split()
			if !ok || account != "dev" || id == "" || strings.ContainsRune(id, 0) || attributes[kind] == nil && kind != "layer" && kind != "webservice" {
				t.Errorf("record %q", r.ID)
			}
			if seen[r.ID] {
				t.Errorf("record %q twice", r.ID)
			}
			seen[r.ID] = true
			if r.Owner == "" || !IsRole(r.Owner.Kind()) {
				t.Errorf("owner %q", r.Owner)
			}
		}
	})
}
