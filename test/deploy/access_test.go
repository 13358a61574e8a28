package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/secretsync/syncer/test/deploy"
)

// written writes rules as "resource verb verb [name name]", sorted.
func written(rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, r := range rules {
		for i, group := range r.APIGroups {
			if group != "" {
				r.Resources[i] += "." + group
			}
		}
		line := fmt.Sprint(strings.Join(r.Resources, ","), " ", strings.Join(r.Verbs, " "))
		if r.ResourceNames != nil {
			line += fmt.Sprint(" ", r.ResourceNames)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

const leases = "leases.coordination.k8s.io "

// TestRights: what the service account may do follows from the configuration,
// and is no more than that needs.
func TestRights(t *testing.T) {
	for what, c := range map[string]struct {
		values string
		want   map[string][]string // by namespace; "" is the cluster
	}{
		"by label": {connection, map[string][]string{
			"syncer": {"events create patch", leases + "create", leases + "get update [syncer]", "secrets get list watch patch"},
		}},
		"without election": {conjurWith("leaderElection: {enabled: false}") + "replicas: 1", map[string][]string{
			"syncer": {"events create patch", "secrets get list watch patch"},
		}},
		"in other namespaces": {conjurWith("kubernetes: {namespaces: [shop, billing]}"), map[string][]string{
			"shop":    {"events create patch", "secrets get list watch patch"},
			"billing": {"events create patch", "secrets get list watch patch"},
			"syncer":  {leases + "create", leases + "get update [syncer]"},
		}},
		"everywhere": {conjurWith(`kubernetes: {namespaces: ["*"]}`), map[string][]string{
			"":       {"events create patch", "secrets get list watch patch"},
			"syncer": {leases + "create", leases + "get update [syncer]"},
		}},
		"divided": {conjurWith("kubernetes: {namespaceSelector: team=shop}"), map[string][]string{
			"":       {"events create patch", "namespaces get list watch", "secrets get list watch patch"},
			"syncer": {leases + "create", leases + "get update [syncer]", leases + "list"},
		}},
		"listed": {conjurWith("kubernetes: {secrets: [b, a, {name: c, create: true, restart: [deployment/shop, StatefulSet/db], groups: {g: {secrets: [x], templateConfigMap: templates/t}}}]}"), map[string][]string{
			"syncer": {
				"configmaps get list watch [templates]", "deployments.apps get patch [shop]", "events create patch",
				leases + "create", leases + "get update [syncer]",
				"pods list", "secrets create [c]", "secrets get list watch patch [a b c]", "statefulsets.apps get patch [db]",
			},
		}},
		"listed elsewhere": {conjurWith("kubernetes: {secrets: [a, {name: b, namespace: shop, restart: [daemonset/x], pullSecretFor: [default]}]}"), map[string][]string{
			"syncer": {"events create patch", leases + "create", leases + "get update [syncer]", "secrets get list watch patch [a]"},
			"shop":   {"daemonsets.apps get patch [x]", "events create patch", "pods list", "secrets get list watch patch [b]", "serviceaccounts get patch [default]"},
		}},
		"asked for by annotations": {connection + "access: {configMaps: [templates], workloads: [deployment/shop], serviceAccounts: [builder]}", map[string][]string{
			"syncer": {
				"configmaps get list watch [templates]", "deployments.apps get patch [shop]", "events create patch",
				leases + "create", leases + "get update [syncer]", "pods list", "secrets get list watch patch", "serviceaccounts get patch [builder]",
			},
		}},
		"all that annotations may ask for": {connection + `access: {configMaps: ["*"], workloads: ["*"], serviceAccounts: ["*"]}`, map[string][]string{
			"syncer": {
				"configmaps get list watch", "daemonsets.apps get patch", "deployments.apps get patch", "events create patch",
				leases + "create", leases + "get update [syncer]", "pods list", "secrets get list watch patch", "serviceaccounts get patch", "statefulsets.apps get patch",
			},
		}},
		"sets that are asked for": {conjurWith("rotation: {sets: [" +
			"{set: a, generate: {random: 32}, migrate: cronjob/m, confirm: {ask: [Deployment/shop:8080/keys, http://x/keys], restarted: statefulset/db}}, " +
			"{set: b, generate: {random: 32}, confirm: {wait: 5m, ask: http://y/keys}}]}"), map[string][]string{
			"syncer": {
				"cronjobs.batch get [m]", "deployments.apps get [shop]", "events create patch", "jobs.batch create get",
				leases + "create", leases + "get update [syncer]", "pods list", "secrets get list watch patch", "statefulsets.apps get [db]",
			},
		}},
		"sets that are not": {conjurWith("rotation: {sets: [{set: b, generate: {random: 32}, confirm: {ask: http://y/keys}}]}"), map[string][]string{
			"syncer": {"events create patch", leases + "create", leases + "get update [syncer]", "secrets get list watch patch"},
		}},
		"job by label": {connection + "shape: job", map[string][]string{
			"syncer": {"events create patch", "secrets get list patch"},
		}},
		"job with a list": {conjurWith("kubernetes: {secrets: [a, {name: b, create: true, type: kubernetes.io/dockerconfigjson, pullSecretFor: [default], groups: {g: {secrets: [x], templateConfigMap: templates}}}]}") + "shape: job", map[string][]string{
			"syncer": {"configmaps get [templates]", "events create patch", "secrets create [b]", "secrets get patch [a b]"},
		}},
		"none of them": {connection + "rbac: {create: false}", map[string][]string{}},
		"sidecar":      {connection + "shape: example", map[string][]string{}},
	} {
		t.Run(what, func(t *testing.T) {
			objects := deploy.Release{Values: c.values}.Objects(t)
			for _, namespace := range []string{"", "syncer", "shop", "billing"} {
				if got := written(deploy.Rules(t, objects, namespace)); !slices.Equal(got, c.want[namespace]) {
					t.Errorf("in namespace %q\n%s\nwant\n%s", namespace, strings.Join(got, "\n"), strings.Join(c.want[namespace], "\n"))
				}
			}
		})
	}
}

func TestRolesAreBoundToTheServiceAccount(t *testing.T) {
	objects := deploy.Connect(t, cluster.Config())
	ns, other := cluster.Namespace(t), cluster.Namespace(t)
	objects.Install(t, deploy.Release{Name: "a", Namespace: ns, Values: conjurWith("kubernetes: {secrets: [mine, {name: theirs, namespace: " + other + ", create: true}]}")})
	config := cluster.ConfigFor(cluster.Token(t, ns, "a"))
	for _, c := range []struct {
		namespace, verb, resource, name string
		want                            bool
	}{
		{ns, "patch", "secrets", "mine", true},
		{ns, "create", "secrets", "mine", false},
		{ns, "patch", "secrets", "theirs", false},
		{other, "watch", "secrets", "theirs", true},
		{other, "create", "secrets", "theirs", true},
		{other, "patch", "secrets", "mine", false},
		{other, "list", "secrets", "", false},
		{ns, "delete", "secrets", "mine", false},
		{ns, "update", "leases", "a", true},
		{ns, "update", "leases", "b", false},
		{other, "get", "leases", "a", false},
		{other, "create", "events", "", true},
	} {
		eventuallyMay(t, config, c.namespace, c.verb, c.resource, c.name, c.want)
	}
}
