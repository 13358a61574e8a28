package deploy_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/test/deploy"
)

// TestBadValuesAreRefused: the message names the place.
func TestBadValuesAreRefused(t *testing.T) {
	for what, c := range map[string]struct{ values, want string }{
		"nothing":                       {"", "config.conjur.applianceUrl: not set"},
		"no account":                    {"config: {conjur: {applianceUrl: https://conjur.example.com}}", "config.conjur.account: not set"},
		"no connection, sidecar":        {"shape: example", "applianceUrl and account are not set"},
		"unknown value":                 {connection + "replica: 2", "'replica' not allowed"},
		"unknown nested value":          {connection + "image: {name: syncer}", "'name' not allowed"},
		"unknown setting":               {conjurWith("refersh: {interval: 1m}"), "'refersh' not allowed"},
		"setting of the chart":          {conjurWith("containerMode: sidecar"), "'containerMode' not allowed"},
		"shape":                         {connection + "shape: daemonset", "/shape"},
		"type":                          {connection + "replicas: two", "/replicas"},
		"no replica":                    {connection + "replicas: 0", "/replicas"},
		"replicas without election":     {conjurWith("leaderElection: {enabled: false}"), "replicas: more than one"},
		"interval":                      {conjurWith("refresh: {interval: soon}"), "/config/refresh/interval"},
		"name of a Secret":              {conjurWith("kubernetes: {secrets: [No]}"), "/config/kubernetes/secrets/0"},
		"workload":                      {connection + "access: {workloads: [pod/a]}", "/access/workloads/0"},
		"digest":                        {connection + `image: {digest: latest}`, "/image/digest"},
		"privileged port":               {connection + "port: 80", "/port"},
		"short-lived token":             {connection + "credentials: {token: {expirationSeconds: 60}}", "/credentials/token/expirationSeconds"},
		"restarts by an init container": {connection + "shape: example\nsidecar: {mode: init, restartInPlace: true}", "sidecar.restartInPlace: an init container ends before"},
		"restarts without a rule": {connection + "shape: example\nexample: {annotations: {conjur.org/restart-app-in-place: \"true\"}}",
			"conjur.org/restart-app-in-place needs a rule at the container; set sidecar.restartInPlace to true instead"},
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

// borders are values that are just valid, and just invalid, by their place.
var borders = map[string]struct{ valid, invalid []any }{
	"/config/conjur/applianceUrl": {
		[]any{"https://conjur", "https://[2001:db8::1]:8443/path/", "http://127.0.0.1:8080", "http://localhost/x", "http://[::1]:1", "https://conjur\n"},
		[]any{"conjur.example.com", "http://conjur.example.com", "https://", "ftp://conjur", "https://user@conjur", "https://conjur?a=b", "https://con jur", "http://localhost.example.com"},
	},
	"/config/conjur/authnUrl": {
		[]any{"https://conjur/authn-jwt/a", "https://conjur/x/authn-iam/a/b", "http://localhost/authn-azure/a"},
		[]any{"conjur/authn-jwt/a", "http://conjur/authn-jwt/a", "https://conjur/authn-jwt", "https://conjur/authn-jwt/", "https://conjur", "https://conjur/authn-ldap/a", "https://conjur/authn/a", "http://localhost/authn-k8s/a"},
	},
	"/config/conjur/metadataUrl":                   {[]any{"http://169.254.169.254", "https://metadata:1/"}, []any{"169.254.169.254", "http://metadata/path", "http://a@b"}},
	"/config/conjur/account":                       {[]any{"a b", "a\n"}, []any{"a\tb", "a\nb"}},
	"/config/conjur/login":                         {[]any{"host/a"}, []any{"host\x00a"}},
	"/config/kubernetes/secrets/1/restart/0":       {[]any{"deployment/a", "StatefulSet/a, daemonset/b.c"}, []any{"pod/a", "deployment/A", "deployment", "a"}},
	"/config/kubernetes/secrets/1/pullSecretFor/0": {[]any{"a", "a, b.c"}, []any{"A", "a/b"}},
	"/config/rotation/sets/0/migrate":              {[]any{"cronjob/a"}, []any{"cronjob", "job/a", "cronjob/A"}},
	"/config/conjur/httpTimeoutSeconds":            {[]any{1, 600}, []any{0, 601, "60"}},
	"/config/refresh/interval":                     {[]any{"1s", "1000ms", "0m1s", "0.5m", "1.5s"}, []any{"999ms", "0s", "0.9s", "0", "1", "-1s", "0h"}},
	"/config/leaderElection/leaseDuration":         {[]any{"3s", "0h3s", "13s"}, []any{"2s", "2.9s", "900ms"}},
	"/config/kubernetes/namespaces/0":              {[]any{"a", "*", strings.Repeat("a", 63)}, []any{"A", "a.b", "-a", strings.Repeat("a", 64)}},
	"/config/kubernetes/namespaceSelector":         {[]any{"team=shop", "team=", "!a.b/c, d in (e, f), g", "a>1"}, []any{"team=a b", "=shop", "a b", "a=b c", "a in"}},
	"/config/kubernetes/secrets/0":                 {[]any{"a.b", strings.Repeat("a.", 126) + "a"}, []any{"A", "a..b", strings.Repeat("a.", 126) + "aa"}},
	"/config/identities/0/namespaces/0":            {[]any{"a"}, []any{"*", "A"}},
	"/config/identities/0/secrets/0":               {[]any{"a/b.c"}, []any{"b", "a/B", "a.b/c"}},
	"/config/identities/0/conjur/authnUrl":         {[]any{"https://conjur/authn-jwt/a"}, []any{"conjur/authn-jwt/a"}},
	"/config/removal/brake":                        {[]any{0, 100, "off", "7%"}, []any{-1, 101, "half"}},
	"/config/restarts/perHour":                     {[]any{1}, []any{0}},
	"/config/rotation/sets/0/http/url":             {[]any{"https://a/b?c=d", "http://127.1.2.3"}, []any{"a", "http://a", "https://u:p@a"}},
	"/config/rotation/sets/1/aws/endpoint":         {[]any{"https://a", "http://localhost:1"}, []any{"a", "http://a"}},
	"/config/rotation/sets/2/postgresql/users":     {[]any{[]any{"a", "b"}}, []any{"a", []any{"a"}, []any{"a", "a"}}},
	"/config/rotation/sets/2/postgresql/address":   {[]any{"a:5432/b", "/run/x:5432/b", []any{"[::1]:1/b"}}, []any{"a/b", "a:5432", "u@a:5432/b", "a:x/b", "a:1/b?c"}},
	"/config/rotation/sets/2/postgresql/pooler":    {[]any{"a:6432"}, []any{"a", "a:6432/b"}},
	"/config/rotation/sets/0/cron":                 {[]any{"0 3 * * 0", "*/5 1-2,3 ? JAN MON", "@daily", "@every 1h"}, []any{"0 3 * *", "daily", "TZ=UTC 0 3 * * 0", "0 3 * * 0 0"}},
	"/config/rotation/sets/3/gcp/account":          {[]any{"a@b"}, []any{"a"}},
	"/config/rotation/sets/4/exec/command":         {[]any{"a", []any{"a", "b"}}, []any{"", []any{}}},
	"/config/rotation/sets/5/conjur/hosts":         {[]any{[]any{"a", "b"}}, []any{"a", []any{"a"}}},
	"/image/repository":                            {[]any{"syncer", "localhost:5000/a/b", "registry.example.com/a_b/c-d", "[::1]:5000/a"}, []any{"", "a b", " a", "a ", "a:1", "A", "https://a/b", "a//b"}},
	"/image/tag":                                   {[]any{"", "1.2_3-A", strings.Repeat("a", 128)}, []any{"a b", ":a", "-a", strings.Repeat("a", 129)}},
	"/example/image":                               {[]any{"busybox", "a:5000/b:1@sha256:" + strings.Repeat("0", 64)}, []any{"", "busy box", "a:b:c"}},
	"/resources/limits/memory":                     {[]any{"12Gi", "1.5M", "1e3", "100m", 7, ".5"}, []any{"12Q", "12 Mi", "Mi", "", "12gi", "-1", -1, "12MB"}},
	"/resources/requests/cpu":                      {[]any{"1", "20m", 0.5}, []any{"1 core", "20mc", true}},
	"/sidecar/resources/limits/cpu":                {[]any{"20m"}, []any{"20q"}},
	"/credentials/apiKey/key":                      {[]any{"api-key", "A_b.c"}, []any{"", "a b", "a/b"}},
	"/credentials/apiKey/secretName":               {[]any{"", "a.b"}, []any{"a..b", "A", "a b"}},
	"/podLabels/a":                                 {[]any{"", "a.B", strings.Repeat("a", 63)}, []any{"a b", "-a", strings.Repeat("a", 64)}},
}

// TestBordersOfValues: Helm refuses each invalid value, and no valid one, at its place. In
// config, these are the values that Syncer refuses.
func TestBordersOfValues(t *testing.T) {
	for round := range 9 {
		for _, valid := range []bool{true, false} {
			values, given := completed(), map[string]any{}
			for place, of := range borders {
				list := of.invalid
				if valid {
					list = of.valid
				}
				if round < len(list) {
					given[place] = list[round]
					values = put(values, place, given[place]).(map[string]any)
				}
			}
			text, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			_, refusal := deploy.Release{Values: string(text)}.Render()
			for place, value := range given {
				refused := refusal != nil && (strings.Contains(refusal.Error(), "'"+place+"'") || strings.Contains(refusal.Error(), "'"+place+"/"))
				if refused == valid {
					t.Errorf("%s: %v is valid: %v; Helm says %v", place, value, valid, refusal)
				}
				if strings.HasPrefix(place, "/config/") {
					checkLoad(t, place, value, valid)
				}
			}
		}
	}
}

// completed returns values that need nothing but the value at one of the borders.
func completed() map[string]any {
	var values any = map[string]any{}
	for _, given := range []struct {
		place string
		value any
	}{
		{"/config/conjur", map[string]any{"applianceUrl": "https://conjur", "account": "a", "authnUrl": "https://conjur/authn-jwt/a", "login": "host/a"}},
		{"/config/identities", []any{map[string]any{"name": "a", "namespaces": []any{"a"}, "conjur": map[string]any{}}}},
		{"/config/kubernetes/secrets", []any{map[string]any{"name": "b.c", "namespace": "a"}, map[string]any{"name": "b", "type": "kubernetes.io/dockerconfigjson"}}},
		{"/config/rotation/identity", "a"},
		{"/config/rotation/sets", []any{
			map[string]any{"set": "a", "generate": map[string]any{"random": 32}, "http": map[string]any{"url": "https://a", "key": "k"}},
			map[string]any{"set": "b", "aws": map[string]any{"user": "u"}},
			map[string]any{"set": "c", "postgresql": map[string]any{"address": "a:1/b", "admin": "d", "users": []any{"a", "b"}}},
			map[string]any{"set": "f", "gcp": map[string]any{"account": "a@b"}},
			map[string]any{"set": "g", "generate": map[string]any{"random": 32}, "exec": map[string]any{"command": "a"}},
			map[string]any{"set": "e", "conjur": map[string]any{"hosts": []any{"a", "b"}}},
		}},
	} {
		values = put(values, given.place, given.value)
	}
	return values.(map[string]any)
}

// put returns an object or list with a value at a place below it.
func put(in any, place string, value any) any {
	if place == "" {
		return value
	}
	name, rest, more := strings.Cut(place[1:], "/")
	if more {
		rest = "/" + rest
	}
	i, err := strconv.Atoi(name)
	if list, _ := in.([]any); err == nil {
		list = append(slices.Clone(list), nil)[:max(i+1, len(list))]
		list[i] = put(list[i], rest, value)
		return list
	}
	object, _ := in.(map[string]any)
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	object[name] = put(object[name], rest, value)
	return object
}

// checkLoad checks that Syncer accepts a configuration file with the value, or refuses it at
// its place.
func checkLoad(t *testing.T, place string, value any, valid bool) {
	t.Helper()
	values := completed()
	switch place {
	case "/config/kubernetes/namespaceSelector": // which excludes sets
		values = put(values, "/config", map[string]any{"conjur": map[string]any{}}).(map[string]any)
	case "/config/conjur/metadataUrl": // which the other authenticators do not use
		values = put(values, "/config/conjur/authnUrl", "https://conjur/authn-gcp").(map[string]any)
	}
	file := put(put(values, place, value).(map[string]any)["config"], "/containerMode", "standalone")
	text, err := json.Marshal(put(file, "/secretsDestination", "k8s_secrets"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = config.Load(config.Sources{
		ConfigFile: config.File{Name: "values", Text: text},
		Assume:     config.Assumptions{Connection: true, Namespace: true, Files: true, Node: true},
	})
	setting := regexp.MustCompile(`/([0-9]+)`).ReplaceAllString(strings.TrimPrefix(place, "/config/"), "[$1]")
	setting = strings.ReplaceAll(setting, "/", ".")
	refused := slices.ContainsFunc(config.NewValidation(nil, err).Errors, func(p config.Problem) bool {
		_, at, _ := strings.Cut(p.Key, ": ")
		return at != "" && (strings.HasPrefix(setting, at) || strings.HasPrefix(at, setting))
	})
	if refused == valid {
		t.Errorf("%s: %v is valid: %v; Syncer says %v", place, value, valid, err)
	}
}
