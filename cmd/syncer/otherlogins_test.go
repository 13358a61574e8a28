//go:build long

package main

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/logintest"
)

// rotateSection follows a section of docs/howto/rotate-other-logins.md with "rotate run".
// Its statements were run. The set is that of the page, with some words replaced.
func rotateSection(t *testing.T, title string, replace ...string) {
	t.Helper()
	rotateAsShown(t, func(key string) string {
		return "identities:\n- {name: rotates, conjur: {login: host/rotates, apiKeyFile: " + key + "}}\n" +
			strings.NewReplacer(append(replace, "{restarted: deployment/shop}", "{wait: 0s}", "rotation:\n", "rotation:\n  identity: rotates\n")...).Replace(findBlock(t, title, "yaml"))
	})
}

// TestTheSetOfMariaDBOnItsPage works with one user and with two.
func TestTheSetOfMariaDBOnItsPage(t *testing.T) {
	const title = "## MariaDB and MySQL"
	db := logintest.StartMariaDB(t)
	db.Query(t, strings.ReplaceAll(findBlock(t, title, "sql"), "'…'", "'pw'")+"CREATE USER shop_a@'%' ACCOUNT LOCK; CREATE USER shop_b@'%' ACCOUNT LOCK")
	for name, users := range map[string]string{"one user": "[shop]", "two users": "[shop_a, shop_b]"} {
		t.Run(name, func(t *testing.T) {
			rotateSection(t, title, "db.shop:3306", db.Addr, "/etc/syncer/db-ca/ca.crt", db.CA, "[shop]", users)
		})
	}
}

func TestTheSetOfRabbitMQOnItsPage(t *testing.T) {
	const title = "## RabbitMQ"
	mq := logintest.StartRabbitMQ(t)
	mq.Run(t, strings.ReplaceAll(findBlock(t, title, "sh"), "'…'", "pw"))
	rotateSection(t, title, "mq.shop:5671", mq.TLSAddr, "https://mq.shop:15671", mq.API, "/etc/syncer/mq-ca/ca.crt", mq.CA, "mq-admin", "db-admin")
}

func TestTheSetOfRedisOnItsPage(t *testing.T) {
	const title = "## Redis and Valkey"
	cache := logintest.StartRedis(t)
	cache.Paste(t, strings.ReplaceAll(findBlock(t, title, "sh"), ">…", ">pw"))
	rotateSection(t, title, "cache-0.shop:6379, cache-1.shop:6379", cache.TLSAddr, "/etc/syncer/cache-ca/ca.crt", cache.CA, "cache-admin", "db-admin")
}
