package deploy_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
)

// TestBadValuesAreRefused: the message names the place.
func TestBadValuesAreRefused(t *testing.T) {
	for what, c := range map[string]struct{ values, want string }{
		"nothing":                   {"", "config.conjur.applianceUrl: not set"},
		"no account":                {"config: {conjur: {applianceUrl: https://conjur.example.com}}", "config.conjur.account: not set"},
		"no connection, sidecar":    {"shape: example", "applianceUrl and account are not set"},
		"unknown value":             {connection + "replica: 2", "'replica' not allowed"},
		"unknown nested value":      {connection + "image: {name: syncer}", "'name' not allowed"},
		"unknown setting":           {conjurWith("refersh: {interval: 1m}"), "'refersh' not allowed"},
		"setting of the chart":      {conjurWith("containerMode: sidecar"), "'containerMode' not allowed"},
		"shape":                     {connection + "shape: daemonset", "/shape"},
		"type":                      {connection + "replicas: two", "/replicas"},
		"no replica":                {connection + "replicas: 0", "/replicas"},
		"replicas without election": {conjurWith("leaderElection: {enabled: false}"), "replicas: more than one"},
		"interval":                  {conjurWith("refresh: {interval: soon}"), "/config/refresh/interval"},
		"name of a Secret":          {conjurWith("kubernetes: {secrets: [No]}"), "/config/kubernetes/secrets/0"},
		"workload":                  {connection + "access: {workloads: [pod/a]}", "/access/workloads/0"},
		"digest":                    {connection + `image: {digest: latest}`, "/image/digest"},
		"privileged port":           {connection + "port: 80", "/port"},
		"short-lived token":         {connection + "credentials: {token: {expirationSeconds: 60}}", "/credentials/token/expirationSeconds"},
		"policy for a shared account": {connection + "serviceAccount: {create: false}",
			"the policy needs a service account that nothing else uses"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := deploy.Release{Values: c.values}.Render()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("refused with %v, want %q in it", err, c.want)
			}
		})
	}
}
