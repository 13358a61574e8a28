package cluster

import (
	"slices"
	"strings"
	"testing"
)

// TestSecretHoldsAllVariables: those that come later too, and none that went.
func TestSecretHoldsAllVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.variables("app/user", "plain")
	p := w.start()
	w.secret("all", map[string]string{"*": "*"})
	w.awaitData("all", map[string]string{"app.user": w.value["app/user"], "plain": w.value["plain"]})
	w.variables("app/late")
	w.awaitData("all", map[string]string{"app.user": w.value["app/user"], "plain": w.value["plain"], "app.late": w.value["app/late"]})
	w.revoke("app/user")
	w.awaitData("all", map[string]string{"app.user": "", "plain": w.value["plain"], "app.late": w.value["app/late"]})
	eventually(t, "an Event that tells what was removed, and why", func() bool {
		return slices.ContainsFunc(w.events("all", "Removed"), func(message string) bool {
			return strings.Contains(message, "app.user") && strings.Contains(message, "Conjur has their values no longer")
		})
	})
	p.Stop()
}
