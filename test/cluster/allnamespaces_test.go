package cluster

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/kubetest"
)

// everywhereValues are those of a release that serves all namespaces.
const everywhereValues = `
config:
  conjur: {applianceUrl: "https://conjur.test", account: cluster, authnUrl: "https://conjur.test/authn-jwt/cluster"}
  kubernetes: {namespaces: ["*"]}
access: {configMaps: ["*"], workloads: ["*"]}
`

// TestAllNamespacesAreServed: also those that come later, under what the chart
// grants, and its policy.
func TestAllNamespacesAreServed(t *testing.T) {
	w := newWorld(t)
	release := deploy.Release{Name: "everywhere", Namespace: w.namespace, Values: everywhereValues}
	deploy.Connect(t, plane.Config()).Install(t, release)
	w.Env["KUBECONFIG"] = plane.KubeconfigFor(t, plane.Token(t, w.namespace, "everywhere"))
	w.Env["NAMESPACE_ALLOWLIST"] = "*"
	w.settings = append(w.settings, "leaderElection: {leaseName: everywhere}")
	id := "everywhere/" + w.namespace // no other test's
	w.Variables(id)
	w.secret("db", map[string]string{"v": id})
	p := w.start()
	w.awaitData("db", map[string]string{"v": w.Value[id]})
	later := plane.Namespace(t)
	w.secretIn(later, "db", map[string]string{"v": id})
	eventually(t, "the Secret of a later namespace", func() bool { return string(w.readIn(later, "db").Data["v"]) == w.Value[id] })
	w.Renew(id)
	w.awaitData("db", map[string]string{"v": w.Value[id]})
	eventually(t, "the new value there", func() bool { return string(w.readIn(later, "db").Data["v"]) == w.Value[id] })
	eventually(t, "an Event there", func() bool {
		return len(plane.Calls(t, kubetest.ByUser(kubetest.UserName(w.namespace, "everywhere")), func(c kubetest.Call) bool {
			return c.Resource == "events" && c.Namespace == later && c.Code < 300
		})) > 0
	})
	eventually(t, "ready", w.ready)
	if refused := p.Lines("forbidden"); len(refused) > 0 {
		t.Errorf("something was refused:\n%s", strings.Join(refused, ""))
	}
	p.Stop()
}
