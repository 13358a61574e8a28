//go:build node

package node

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/proctest"
)

var growsOld = flag.Bool("token-grows-old", false, "have the kubelet renew a token when it wants to, after eight minutes, instead of starting the kubelet again")

// TestTokenIsRenewed: the kubelet renews the token in its volume, and the running Syncer
// logs in with the new one, because Conjur accepts no other. The kubelet renews a token
// after most of its life, which is at least ten minutes. It also does so after its own
// restart, because it stores tokens in memory. The test runs alone.
func TestTokenIsRenewed(t *testing.T) {
	w := newWorldWith(t, policy(shop()), shop(), "--host-token-ttl", "8s", "--audit", "/data/audit")
	spec := w.documented(files("secrets-refresh-interval", "1s"), "watch", dbFile)
	spec.Spec.Volumes[len(spec.Spec.Volumes)-1].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds = new(int64(600))
	p := w.start("shop", spec)
	p.ready()
	read := p.reader("syncer", "/var/run/secrets/conjur/token")
	old := claimsOf(t, read())
	if *growsOld {
		proctest.EventuallyWithin(t, 10*time.Minute, "token that the kubelet has renewed", func() bool { return claimsOf(t, read()) != old })
	} else {
		restartKubelet(t)
		p.eventually("token from a kubelet that was started again", func() bool { return claimsOf(t, read()) != old })
	}
	renewed := claimsOf(t, read())
	if renewed.Expires <= old.Expires {
		t.Errorf("the token expires at %d, and the one before at %d", renewed.Expires, old.Expires)
	}
	w.load(fmt.Sprintf(`
- !policy
  id: apps
  body:
  - !host
    id: %[2]s
    annotations: { authn-jwt/cluster/sub: "system:serviceaccount:%[1]s:app" }
- !grant { role: !group conjur/authn-jwt/cluster/apps, member: !host "apps/%[2]s" }
- !permit { role: !host "apps/%[2]s", privileges: [ read, execute ], resources: [ !variable shop/user, !variable shop/password ] }
`, w.namespace, renewed.ID))
	w.set(map[string]string{"conjur/authn-jwt/cluster/token-app-property": "jti"}) // each token has another host
	p.eventually("login with the renewed token", func() bool {
		return strings.Contains(w.conjur.file(conjurData, "audit"), `"operation":"authenticate-jwt","role":"`+account+":host:apps/"+renewed.ID+`","allowed":true`)
	})
	w.set(map[string]string{"shop/password": "second"})
	p.awaitFile(dbFile, db("second"))
	if found := p.get(); container(found, "syncer").RestartCount+container(found, "app").RestartCount != 0 {
		t.Errorf("restarts:\n%s", p.described(t.Context()))
	}
	if log := p.log("app"); strings.Contains(log, "torn") {
		t.Errorf("the application said\n%s", log)
	}
}

// claims are the claims that distinguish two tokens.
type claims struct {
	ID      string `json:"jti"`
	Expires int64  `json:"exp"`
}

func claimsOf(t *testing.T, token string) (c claims) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token, but %d bytes", len(token))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.ID == "" {
		t.Fatalf("a token without an id: %v", err)
	}
	return c
}

// restartKubelet ends the kubelet as a service manager does; the node then
// starts it again.
func restartKubelet(t *testing.T) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		command, _ := os.ReadFile(process)
		if strings.HasPrefix(string(command), "kubelet\x00") && strings.Contains(string(command), testDir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(process)))
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGTERM)
			}
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no kubelet runs")
}
