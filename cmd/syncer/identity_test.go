package main

import (
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// TestDeletedHostKeepsItsFiles deletes the identity while its token lives: the
// files stay, the log says what it is, Conjur is hardly asked, and when the host
// is back so is the refresh.
func TestDeletedHostKeepsItsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, conjurdtest.Strict())
	w.host = "apps/web"
	w.server.Policy("- !host apps/web\n")
	w.group("one", "json", "db/user", "db/password")
	w.env["CONJUR_AUTHN_LOGIN"], w.env["CONJUR_AUTHN_API_KEY"] = "host/apps/web", ""
	key := w.path("key")
	w.write(key, w.server.HostKey("apps/web"))
	w.env["CONJUR_AUTHN_API_KEY_FILE"] = key
	p := w.start()
	w.settle()
	before := w.look()

	w.server.Policy("- !delete { record: !host apps/web }\n")
	eventually(t, "a word about the identity", func() bool { return len(p.Lines("Failing", `"poll"`, "identity seems to be deleted")) > 0 })
	w.server.ResetCounts()
	for range 8 {
		w.beat()
	}
	n := w.server.Counts()
	if asked := n.Data + n.Checks + n.WhoAmI + n.Other; asked > 0 || n.Authentications > 8 {
		t.Errorf("in 8 polls: %+v, want a few logins only", n)
	}
	w.untouched(before)

	w.server.Policy("- !host apps/web\n")
	w.permit("db/user")
	w.permit("db/password")
	w.write(key, w.server.HostKey("apps/web"))
	w.await("one.json", w.renew("db/password"))
	p.Stop()
}
