package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/proctest"
)

// TestSecretHoldsAllVariables: the Secret also receives later variables, and loses those
// that are gone. A short list at the start of a process removes none. The chart's policy
// permits all writes.
func TestSecretHoldsAllVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.police(chartValues)
	w.Variables("app/user", "plain")
	p := w.start()
	w.secret("all", map[string]string{"*": "*"})
	w.awaitData("all", map[string]string{"app.user": w.Value["app/user"], "plain": w.Value["plain"]})
	w.Variables("app/late")
	w.awaitData("all", map[string]string{"app.user": w.Value["app/user"], "plain": w.Value["plain"], "app.late": w.Value["app/late"]})
	p.Stop()

	before := w.read("all").ResourceVersion
	var lists atomic.Int64
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/resources/") || r.URL.Query().Has("check") {
				next.ServeHTTP(rw, r)
				return
			}
			lists.Add(1)
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `[{"id":"%s:variable:plain"}]`, conjurdtest.Account)
		})
	})
	p = w.start()
	eventually(t, "short lists", func() bool { return lists.Load() >= 4 })
	if now := w.read("all").ResourceVersion; now != before {
		t.Error("the Secret was written though nothing had changed")
	}
	w.Deny("app/user")
	w.awaitData("all", map[string]string{"app.user": "", "plain": w.Value["plain"], "app.late": w.Value["app/late"]})
	eventually(t, "an Event that tells what was removed, and why", func() bool {
		return slices.ContainsFunc(w.events("all", "Removed"), func(message string) bool {
			return strings.Contains(message, "app.user") && strings.Contains(message, "Conjur has their values no longer")
		})
	})
	p.Stop()
}

// A data key keeps the variable that it has, also after a restart, and each
// process reports a collision once, with both variables.
func TestANewVariableTakesNoDataKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("apps/db/password")
	w.secret("all", map[string]string{"*": "*"})
	p := w.start()
	w.awaitData("all", map[string]string{"apps.db.password": w.Value["apps/db/password"]})
	w.Variables("apps.db.password")
	collision := func(p *proctest.Process) {
		t.Helper()
		eventually(t, "a report of both variables", func() bool {
			return len(p.Lines("no data key", `\"apps.db.password\" is left out`, `apps/db/password`)) == 1
		})
		eventually(t, "an Event of both variables", func() bool {
			return slices.ContainsFunc(w.events("all", "InvalidDefinition"), func(text string) bool {
				return strings.Contains(text, `"apps.db.password" is left out`) && strings.Contains(text, `"apps/db/password"`)
			})
		})
		w.polls(5)
		w.awaitData("all", map[string]string{"apps.db.password": w.Value["apps/db/password"]})
		w.Renew("apps.db.password")
		w.polls(5)
		w.Renew("apps/db/password")
		w.awaitData("all", map[string]string{"apps.db.password": w.Value["apps/db/password"]})
	}
	collision(p)
	p.Stop()
	p = w.start()
	collision(p)
	p.Stop()
}
