package actuators

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fakeMySQL is not a MySQL. It keeps the password and the old password of one account as
// MySQL's manual says, because no MySQL can be had for the tests.
type fakeMySQL struct{ password, old string }

var setsPassword = regexp.MustCompile(`^ALTER USER 'shop'@'%' IDENTIFIED BY '([^']+)'( RETAIN CURRENT PASSWORD)?$`)

func (f fakeMySQL) run(t *testing.T, statement string) fakeMySQL {
	t.Helper()
	if statement == "ALTER USER 'shop'@'%' DISCARD OLD PASSWORD" {
		return fakeMySQL{f.password, ""}
	}
	found := setsPassword.FindStringSubmatch(statement)
	if found == nil {
		t.Fatalf("the fake does not know %s", statement)
	}
	if found[2] != "" {
		f.old = f.password
	}
	return fakeMySQL{found[1], f.old}
}

func (f fakeMySQL) accepts(password string) bool { return f.password == password || f.old == password }

// TestRetainedKeepsEachPasswordThatStays at each point of each change, from each state. It
// uses a fake.
func TestRetainedKeepsEachPasswordThatStays(t *testing.T) {
	changes := 0
	for _, f := range []fakeMySQL{{"a", ""}, {"b", ""}, {"a", "b"}, {"b", "a"}, {"unknown", ""}, {"unknown", "a"}, {"a", "unknown"}, {"a", "a"}} {
		others := 0
		if f.accepts("unknown") {
			others = 1
		}
		for _, change := range []string{"a", "b"} {
			var stay, add []string
			for _, password := range []string{"a", "b"} {
				switch {
				case f.accepts(password) && password != change:
					stay = append(stay, password)
				case !f.accepts(password) && password == change:
					add = append(add, password)
				}
			}
			if len(stay)+len(add)+others > 2 {
				continue
			}
			statements, err := retained("'shop'@'%'", stay, add, others)
			if err != nil {
				if others == 0 || len(add) > 0 || !strings.Contains(err.Error(), "remove one yourself") {
					t.Errorf("%v, change of %s: %v", f, change, err)
				}
				continue
			}
			changes++
			is := f
			for _, statement := range statements {
				is = is.run(t, statement)
				for _, password := range stay {
					if !is.accepts(password) {
						t.Errorf("%v loses %s: %s", f, password, statement)
					}
				}
				if others > 0 && !is.accepts("unknown") {
					t.Errorf("%v loses the unknown password: %s", f, statement)
				}
			}
			for _, password := range []string{"a", "b"} {
				if wanted := slices.Contains(slices.Concat(stay, add), password); is.accepts(password) != wanted {
					t.Errorf("%v, change of %s: %q made it %v", f, change, statements, is)
				}
			}
		}
	}
	if changes < 9 {
		t.Error(fmt.Sprint("only ", changes, " changes"))
	}
}
