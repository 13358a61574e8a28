package actuators

import (
	"slices"
	"strings"
	"testing"
)

// said returns what Check says.
func said(t *testing.T, p *roles) (lines []string) {
	t.Helper()
	for _, problem := range p.Check(t.Context(), setAtEnd) {
		lines = append(lines, problem.Error())
	}
	return lines
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	p := database(t)
	if got := said(t, p); len(got) > 0 {
		t.Fatalf("with all rights it says %q", got)
	}
	a, b := identifier(p.Users[0]), identifier(p.Users[1])
	prefix := strings.TrimSuffix(p.Users[0], " a")
	admin, owner := identifier(prefix+" admin"), identifier(prefix+" owner")
	p.EndSessions = true
	server.Query(t, "postgres", "ALTER ROLE "+admin+" NOCREATEROLE; ALTER ROLE "+a+" RESET role; REVOKE "+owner+" FROM "+b+
		"; GRANT trusted TO "+b)
	got := said(t, p)
	want := []string{
		"does not refuse " + p.Users[1] + " with a wrong password",
		": ALTER ROLE " + admin + " CREATEROLE",
		": GRANT pg_signal_backend TO " + admin,
		": GRANT " + owner + " TO " + a + "; ALTER ROLE " + a + " SET role TO " + owner,
		": GRANT " + owner + " TO " + b,
	}
	if len(got) != len(want) || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(strings.Join(got, "\n"), w) }) {
		t.Errorf("it says %q,\nand should say %q", got, want)
	}
	// Where no password is asked for, a login is not taken for one.
	users := p.Users
	p.Users = p.Users[1:]
	server.Query(t, "postgres", "ALTER ROLE "+b+" LOGIN")
	if err := p.Verify(t.Context(), p.version(0, 1)); err == nil {
		t.Error("a login without a password is good enough")
	}
	p.Users = users
	server.Query(t, "postgres", "DROP ROLE "+b)
	if got := strings.Join(said(t, p), "\n"); !strings.Contains(got, "there is no user "+p.Users[1]+": CREATE ROLE "+b) {
		t.Errorf("it says %s", got)
	}
}

// A connection that fails in TLS says nothing about passwords.
func TestCheckSaysHowToConnect(t *testing.T) {
	p := database(t)
	for name, c := range map[string]struct{ address, ca, want string }{
		"no TLS":     {server.Bouncer(t, ""), p.CA, `the server has no TLS: enable it there and name its CA in "ca", or set "plain: true"`},
		"unknown CA": {server.Addr, "", `name the file with its CA certificate in "ca"`},
	} {
		p.Addresses, p.CA = []string{c.address + "/postgres"}, c.ca
		got := said(t, p)
		for _, line := range got {
			if !strings.Contains(line, c.want) || strings.Contains(line, "pg_hba.conf") {
				t.Errorf("%s: it says %s", name, line)
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: it says nothing", name)
		}
	}
}

// From PostgreSQL 16 on CREATEROLE alone does not do.
func TestCheckWantsTheAdminOption(t *testing.T) {
	r := rights{admin: "syncer", version: 160000, createRole: true, users: []roleRights{
		{name: "shop_a", exists: true, role: "shop", member: true, admin: true},
		{name: "shop_b", exists: true, role: "shop", member: true},
	}}
	const want = `syncer may not change shop_b: GRANT "shop_b" TO "syncer" WITH ADMIN OPTION`
	if problems := r.missing(false); len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("it says %q", problems)
	}
	for _, r.version = range []int{159999, 90624} {
		if problems := r.missing(false); len(problems) != 0 {
			t.Errorf("of version %d it says %q", r.version, problems)
		}
	}
}
