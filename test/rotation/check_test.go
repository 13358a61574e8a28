package rotation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/test/proctest"
)

// configured returns a Rotator for the sets of a configuration file. The listener may be
// nil.
func (s *shop) configured(listener rotation.Listener, text string) *rotation.Rotator {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "syncer.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	env := s.Env("rotates")
	c, warnings, err := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: func(name string) string { return env[name] }})
	if err != nil || len(warnings) > 0 {
		s.t.Fatal(err, warnings)
	}
	r, closing, err := rotators.Connect(c, rotators.Parts{Options: connect.Options{Log: zap.NewNop()}, Listener: listener})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(closing)
	return r
}

// TestCheckNamesWhatIsMissing: the check lists all missing grants at once, and each user
// that can log in with any password.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	r := s.configured(nil, fmt.Sprintf(`
rotation:
  sets:
  - set: shop/db
    postgresql: {address: %[1]s/postgres, admin: shop/admin, users: [%[2]s], plain: true}
  - set: shop/other
    postgresql: {address: %[4]s/postgres, admin: shop/nobody, users: [%[2]s], plain: true}
  - set: shop/url
    postgresql: {address: %[3]s/postgres, admin: shop/admin, users: [%[2]s], plain: true}
`, s.db.Addr, strings.Join(s.users, ", "), proctest.FreeAddress(t), strings.Replace(s.db.Addr, "127.0.0.1", "localhost", 1))) // the same users by another name
	if problems := r.Check(t.Context())["shop/db"]; len(problems) > 0 {
		t.Errorf("where all is well it says %q", problems)
	}
	a, b := s.users[0], s.users[1]
	s.db.Query(t, "postgres", fmt.Sprintf("ALTER ROLE %[1]s_admin NOCREATEROLE; ALTER ROLE %[2]s LOGIN; GRANT trusted TO %[2]s; ALTER ROLE %[3]s RESET role", s.name, a, b))
	found := r.Check(t.Context())
	for set, wants := range map[string][]string{
		"shop/db": {
			"does not refuse " + a + " with a wrong password",
			fmt.Sprintf("ALTER ROLE %q CREATEROLE", s.name+"_admin"),
			fmt.Sprintf("GRANT %q TO %q; ALTER ROLE", s.name+"_owner", b),
		},
		"shop/other": {`"shop/other" is not declared`, `"shop/other/control" is not declared`, "does not refuse " + a, `"shop/nobody" cannot be read`},
		"shop/url":   {`"shop/url/control" is not declared`, "user=" + a + " ", "user=" + s.name + "_admin"},
	} {
		if len(found[set]) != len(wants) {
			t.Errorf("of %s it says %q", set, found[set])
		}
		for _, want := range wants {
			n := 0
			for _, problem := range found[set] {
				if strings.Contains(problem, want) && !strings.Contains(problem, "\n") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("of %s %d lines say %s: %q", set, n, want, found[set])
			}
		}
	}
}
