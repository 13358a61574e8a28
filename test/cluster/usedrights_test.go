package cluster

import (
	"errors"
	"flag"
	"fmt"
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
access: {configMaps: ["*"], workloads: ["*"], serviceAccounts: ["*"]}
`

var granted struct {
	once  sync.Once
	rules []rbacv1.PolicyRule
}

// rights are the rules that the chart gives the service account, and all that
// the processes of these tests have.
func rights(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	granted.once.Do(func() { granted.rules = deploy.Release{Values: chartValues}.Rules(t, "syncer") })
	if len(granted.rules) == 0 {
		t.Fatal("the chart grants nothing")
	}
	return granted.rules
}

// usedRights reports the rights that no test has used, and that are therefore superfluous.
func usedRights(calls []kubetest.Call) (err error) {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return nil // only what all tests use together says anything
	}
	used := slices.DeleteFunc(calls, func(c kubetest.Call) bool { return !strings.HasSuffix(c.User, ":syncer") || c.Code >= 400 })
	for _, rule := range granted.rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !slices.ContainsFunc(used, func(c kubetest.Call) bool {
					return c.Verb == verb && c.Resource == resource && slices.Contains(rule.APIGroups, c.Group)
				}) {
					err = errors.Join(err, fmt.Errorf("the chart grants %s of %s, and no test uses it", verb, resource))
				}
			}
		}
	}
	return err
}
