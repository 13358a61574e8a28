package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/pgtest"
)

// TestThePagesShowTheStatementsOfInit: what a page tells to run at a server is what "rotate
// init" prints for the page's set.
func TestThePagesShowTheStatementsOfInit(t *testing.T) {
	for section, kind := range map[string]string{"# Rotate a database login": "sql", "## MariaDB and MySQL": "sql", "## RabbitMQ": "sh", "## Redis and Valkey": "sh"} {
		file := filepath.Join(t.TempDir(), "syncer.yaml")
		if err := os.WriteFile(file, []byte(findBlock(t, section, "yaml")), 0o600); err != nil {
			t.Fatal(err)
		}
		policy, remarks, err := told(t, "", "rotate", "init", "--config", file)
		together := func(text string) string { return strings.Join(strings.Fields(text), "") } // lines break elsewhere
		if shown := together(findBlock(t, section, kind)); err != nil || !strings.HasSuffix(together(remarks), ":"+shown) || strings.Contains(policy, "CREATE") {
			t.Errorf("%s: %v: the page shows %s; init prints %s", section, err, shown, remarks)
		}
	}
}

// TestTheLoginPageWithoutACluster: what docs/howto/rotate-login.md shows works with "rotate
// run", after the replacements that it names.
func TestTheLoginPageWithoutACluster(t *testing.T) {
	block := func(kind string) string { return findBlock(t, "# Rotate a database login", kind) }
	db, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Stop() })
	db.Query(t, "postgres", strings.ReplaceAll(block("sql"), "'…'", "'pw'"))
	rotateAsShown(t, func(key string) string {
		text := strings.NewReplacer("/etc/syncer/rotates/api-key", key, "db.shop:5432/shop", db.Addr+"/postgres", "/etc/syncer/db-ca/ca.crt", db.CA).Replace(block("yaml"))
		return regexp.MustCompile(`(confirm: ).*# without a cluster: (.*)`).ReplaceAllString(text, "$1$2")
	})
}

// findBlock returns the first block of a kind below a title of the pages about logins.
func findBlock(t *testing.T, title, kind string) string {
	t.Helper()
	var pages string
	for _, name := range []string{"rotate-login.md", "rotate-other-logins.md"} {
		page, err := os.ReadFile("../../docs/howto/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	_, section, _ := strings.Cut(pages, title+"\n")
	found := regexp.MustCompile("(?s)   ```" + kind + "\n(.*?)   ```\n").FindStringSubmatch(section)
	if found == nil {
		t.Fatalf("%s has no %s", title, kind)
	}
	return strings.ReplaceAll("\n"+found[1], "\n   ", "\n")
}

// rotateAsShown follows the pages about logins with a configuration, until the set is idle. The administrator "syncer" has the password "pw". key is the file of an API key.
func rotateAsShown(t *testing.T, config func(key string) string) {
	t.Helper()
	server := conjurdtest.Start(t)
	t.Setenv("CONJUR_APPLIANCE_URL", server.URL)
	t.Setenv("CONJUR_ACCOUNT", server.Account)
	t.Setenv("CONJUR_SSL_CERTIFICATE", string(server.CA))
	key, file := filepath.Join(t.TempDir(), "api-key"), filepath.Join(t.TempDir(), "syncer.yaml")
	if err := os.WriteFile(file, []byte(config(key)), 0o600); err != nil {
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
}
