package cluster

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/kubetest"
)

// chartValues are those of a release that fills labelled Secrets, whose Secrets
// may refer to templates and workloads.
const chartValues = `
config: {conjur: {applianceUrl: "https://conjur.test", account: cluster, authnUrl: "https://conjur.test/authn-jwt/cluster"}}
access: {configMaps: ["*"], workloads: ["*"]}
`

// rights are the rules that the chart gives the service account, and all that
// the processes of these tests have.
var rights = func() func(testing.TB) []rbacv1.PolicyRule {
	var once sync.Once
	var rules []rbacv1.PolicyRule
	return func(t testing.TB) []rbacv1.PolicyRule {
		t.Helper()
		once.Do(func() { rules = deploy.Release{Values: chartValues}.Rules(t, "syncer") })
		if len(rules) == 0 {
			t.Fatal("the chart grants nothing")
		}
		return rules
	}
}()

// TestUsedRights comes after all tests with processes: what none of them has
// used is a right too much.
func TestUsedRights(t *testing.T) {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return // only what all tests use together says anything
	}
	used := plane.Calls(t, func(c kubetest.Call) bool { return strings.HasSuffix(c.User, ":syncer") && c.Code < 400 })
	for _, rule := range rights(t) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !slices.ContainsFunc(used, func(c kubetest.Call) bool {
					return c.Verb == verb && c.Resource == resource && slices.Contains(rule.APIGroups, c.Group)
				}) {
					t.Errorf("the chart grants %s of %s, and nothing uses it", verb, resource)
				}
			}
		}
	}
}
