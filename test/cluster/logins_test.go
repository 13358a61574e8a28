package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

// turn is the time between two logins. A login costs both sides thousands of hashes, which
// must not occupy the processor.
const turn = 50 * time.Millisecond

// TestALoginInFiftySecrets: programs log in with the login in their Secrets, and no login
// fails during a rotation. Meanwhile the Secrets contain the old login beside the new one,
// and a published variable follows.
func TestALoginInFiftySecrets(t *testing.T) {
	t.Parallel()
	db, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
	db.Query(t, "postgres", "CREATE ROLE shop; CREATE ROLE shop_admin LOGIN CREATEROLE PASSWORD 'admin'")
	for _, user := range []string{"shop_a", "shop_b"} {
		db.Query(t, "postgres", fmt.Sprintf("CREATE ROLE %[1]s NOLOGIN IN ROLE shop; ALTER ROLE %[1]s SET role TO shop", user))
	}
	w := newWorld(t)
	w.Server.Policy(`
- !policy { id: shop, body: [ !variable db, !variable db/control, !variable admin, !variable url ] }
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable shop/db, !variable shop/db/control, !variable shop/url] }
- !permit { role: !host rotates, privileges: [read, execute], resource: !variable shop/admin }
- !permit { role: !host app, privileges: [read, execute], resources: [!variable shop/db, !variable shop/url] }
`)
	w.Server.Set("shop/admin", `{"username":"shop_admin","password":"admin"}`)
	keyFile := w.dir + "/key"
	if err := os.WriteFile(keyFile, []byte(w.Server.HostKey("rotates")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings = append(w.settings, "leaderElection: {enabled: false}", fmt.Sprintf(`
identities: [{name: rotates, conjur: {login: host/rotates, apiKeyFile: %q}}]
rotation:
  identity: rotates
  interval: 1s
  sets:
  - set: shop/db
    postgresql: {address: %s/postgres, admin: shop/admin, users: [shop_a, shop_b], plain: true}
    confirm: {wait: 1s}
    grace: 3s
    publish: {shop/url: "postgres://{{.username}}:{{.password}}@db/shop"}`, keyFile, db.Addr))
	const n = 50
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("login%d", i))
		w.secret(names[i], nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("\"*\": {credential: shop/db}\nurl: shop/url") })
	}
	syncer := w.start()
	all := func(right func(data map[string][]byte) bool) {
		t.Helper()
		w.awaitAll([]string{w.namespace}, func(data map[string][]byte, _ string) bool { return right(data) })
	}
	all(func(data map[string][]byte) bool { return len(data["password"]) > 0 && len(data["url"]) > 0 })

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var logins atomic.Int64
	turns := time.NewTicker(turn)
	defer turns.Stop()
	for client := range 5 {
		running.Go(func() {
			for i := client; ; i += 5 {
				select {
				case <-turns.C:
				case <-ctx.Done():
					return
				}
				s, err := plane.Core.Secrets(w.namespace).Get(context.Background(), names[i%n], metav1.GetOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				conn, err := pgconn.Connect(context.Background(), fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", s.Data["username"], s.Data["password"], db.Addr))
				if err != nil {
					t.Errorf("after %d logins: %v", logins.Load(), err)
					return
				}
				_ = conn.Close(context.Background())
				logins.Add(1)
			}
		})
	}
	defer running.Wait()
	defer cancel()
	for range 3 {
		old := w.read(names[0]).Data
		begin, spent := time.Now(), syncer.CPU()
		w.rotate("now", "shop/db").Exit(0)
		all(func(data map[string][]byte) bool {
			return string(data["username.old"]) == string(old["username"]) && string(data["password.old"]) == string(old["password"]) &&
				string(data["username"]) != string(old["username"])
		})
		all(func(data map[string][]byte) bool {
			_, still := data["password.old"]
			return !still && string(data["url"]) == fmt.Sprintf("postgres://%s:%s@db/shop", data["username"], data["password"])
		})
		took, worked := time.Since(begin), syncer.CPU()-spent
		writes := plane.Calls(t, kubetest.ByUser(w.user()), kubetest.Since(begin), func(c kubetest.Call) bool { return c.Resource == "secrets" && c.Verb == "patch" })
		if len(writes) > n*6 {
			t.Errorf("a rotation costs %d writes of %d Secrets", len(writes), n)
		}
		t.Logf("a rotation took %v, %v of a CPU and %d writes", took, worked, len(writes))
	}
	cancel()
	running.Wait()
	proctest.Eventually(t, "one user that may log in", func() bool { // it is refused after no Secret has it
		return len(db.Query(t, "postgres", "SELECT rolname FROM pg_roles WHERE rolname IN ('shop_a', 'shop_b') AND rolcanlogin")) == 1
	})
	t.Logf("%d logins", logins.Load())
}
