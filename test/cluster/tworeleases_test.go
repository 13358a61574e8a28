package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// TestTwoReleasesShareANamespace: each with its own rights, policy, Lease and
// Secrets.
func TestTwoReleasesShareANamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	common := w.settings[0]
	for i, name := range []string{"one", "two"} {
		config := fmt.Sprintf("kubernetes: {secrets: [of-%s]}", name)
		values := `config: {conjur: {applianceUrl: "https://conjur.test", account: cluster, authnUrl: "https://conjur.test/authn-jwt/cluster"}, ` + config + "}"
		deploy.Connect(t, plane.Config()).Install(t, deploy.Release{Name: name, Namespace: w.namespace, Values: values})
		w.Env["KUBECONFIG"] = plane.KubeconfigFor(t, plane.Token(t, w.namespace, name))
		w.address = proctest.FreeAddress(t)
		w.settings = []string{common, fmt.Sprintf("server: {address: %q}", w.address), config, fmt.Sprintf("leaderElection: {leaseName: %s}", name)}
		w.secret("of-"+name, map[string]string{"key": "a"}, func(s *corev1.Secret) { s.Labels = nil })
		p := w.start()
		defer p.Stop()
		w.awaitData("of-"+name, map[string]string{"key": w.Value["a"]})
		eventually(t, "ready", w.ready)
		if leases := len(plane.Calls(t, func(c kubetest.Call) bool {
			return c.Namespace == w.namespace && c.Resource == "leases" && c.Verb == "create" && c.Code < 300
		})); leases != i+1 {
			t.Errorf("%d leases", leases)
		}
	}
	value := w.Renew("a")
	for _, name := range []string{"one", "two"} {
		w.awaitData("of-"+name, map[string]string{"key": value})
		for _, call := range plane.Calls(t, kubetest.ByUser(kubetest.UserName(w.namespace, name)), func(c kubetest.Call) bool { return c.Code == 403 || c.Code == 422 }) {
			t.Errorf("refused: %+v", call)
		}
	}
}
