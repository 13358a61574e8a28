//go:build long

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/logintest"
)

// TestTheSetOfMariaDBOnItsPage: what docs/howto/rotate-other-logins.md shows works with
// "rotate run", with one user and with two.
func TestTheSetOfMariaDBOnItsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/rotate-other-logins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## MariaDB and MySQL")
	block := func(kind string) string {
		found := regexp.MustCompile("(?s)   ```" + kind + "\n(.*?)   ```\n").FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the page has no %s", kind)
		}
		return strings.ReplaceAll("\n"+found[1], "\n   ", "\n")
	}
	db := logintest.StartMariaDB(t)
	db.Query(t, strings.ReplaceAll(block("sql"), "'…'", "'pw'")+"CREATE USER shop_a@'%' ACCOUNT LOCK; CREATE USER shop_b@'%' ACCOUNT LOCK")
	for name, users := range map[string]string{"one user": "[shop]", "two users": "[shop_a, shop_b]"} {
		t.Run(name, func(t *testing.T) {
			server := conjurdtest.Start(t)
			t.Setenv("CONJUR_APPLIANCE_URL", server.URL)
			t.Setenv("CONJUR_ACCOUNT", server.Account)
			t.Setenv("CONJUR_SSL_CERTIFICATE", string(server.CA))
			key, file := filepath.Join(t.TempDir(), "api-key"), filepath.Join(t.TempDir(), "syncer.yaml")
			config := "identities:\n- {name: rotates, conjur: {login: host/rotates, apiKeyFile: " + key + "}}\n" +
				strings.NewReplacer("db.shop:3306", db.Addr, "/etc/syncer/db-ca/ca.crt", db.CA, "[shop]", users, "{restarted: deployment/shop}", "{wait: 0s}", "rotation:\n", "rotation:\n  identity: rotates\n").Replace(block("yaml"))
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			do := func(args ...string) string {
				t.Helper()
				out, said, err := told(t, "", args...)
				if err != nil {
					t.Fatalf("%q: %v: %s%s", args, err, out, said)
				}
				return out
			}
			server.Policy(do("rotate", "init", "--config", file))
			server.Set("apps/shop/db-admin", `{"username":"syncer","password":"pw"}`)
			if err := os.WriteFile(key, []byte(server.HostKey("rotates")), 0o600); err != nil {
				t.Fatal(err)
			}
			do("rotate", "check", "--config", file)
			do("rotate", "run", "--once", "--config", file)
			if status := do("rotate", "status", "--config", file); !strings.Contains(status, "idle") {
				t.Errorf("after the first rotation: %s", status)
			}
		})
	}
}
