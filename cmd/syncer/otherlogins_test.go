//go:build long

package main

import (
	"os"
	"strings"
	"testing"

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
	block := func(kind string) string { return findBlock(t, text, kind) }
	db := logintest.StartMariaDB(t)
	db.Query(t, strings.ReplaceAll(block("sql"), "'…'", "'pw'")+"CREATE USER shop_a@'%' ACCOUNT LOCK; CREATE USER shop_b@'%' ACCOUNT LOCK")
	for name, users := range map[string]string{"one user": "[shop]", "two users": "[shop_a, shop_b]"} {
		t.Run(name, func(t *testing.T) {
			rotateAsShown(t, func(key string) string {
				return "identities:\n- {name: rotates, conjur: {login: host/rotates, apiKeyFile: " + key + "}}\n" +
					strings.NewReplacer("db.shop:3306", db.Addr, "/etc/syncer/db-ca/ca.crt", db.CA, "[shop]", users, "{restarted: deployment/shop}", "{wait: 0s}", "rotation:\n", "rotation:\n  identity: rotates\n").Replace(block("yaml"))
			})
		})
	}
}
