package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
)

// inCluster is a connection in a Pod of the namespace ns.
var inCluster = connection.with(dict{"MY_POD_NAMESPACE": "ns"})

// job is the annotations of a Job that fills Kubernetes Secrets.
var job = dict{"secrets-destination": "k8s_secrets", "container-mode": "application"}

// standalone is the annotations of a Deployment for two namespaces.
var standalone = dict{"secrets-destination": "k8s_secrets", "container-mode": "standalone", "namespace-allowlist": "a, b"}

// names are the names of the Secrets that are listed.
func names(cfg *config.Config) string {
	var all []string
	for _, def := range cfg.Kubernetes.Definitions {
		all = append(all, def.Namespace+"/"+def.Name)
	}
	return strings.Join(all, " ")
}

func TestKubernetesSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env dict
		want             string
	}{
		"by label":        {nil, nil, ""},
		"list":            {dict{"k8s-secrets": "- s2\n- s1\n"}, nil, "ns/s1 ns/s2"},
		"CRLF":            {dict{"k8s-secrets": "- s1\r\n- s2\r\n"}, nil, "ns/s1 ns/s2"},
		"quotes, flow":    {dict{"k8s-secrets": `["s1", s2] # both`}, nil, "ns/s1 ns/s2"},
		"environment":     {nil, dict{"K8S_SECRETS": "s1, s2 ,,s3"}, "ns/s1 ns/s2 ns/s3"},
		"annotation wins": {dict{"k8s-secrets": "- s1"}, dict{"K8S_SECRETS": "s2"}, "ns/s1"},
		"dots":            {dict{"k8s-secrets": "- a.b-c.1"}, nil, "ns/a.b-c.1"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings := load(t, sources(t, job.with(c.annotations), inCluster.with(c.env)))
			k := cfg.Kubernetes
			if len(warnings) > 0 || names(cfg) != c.want || k.Namespace != "ns" || !slices.Equal(k.Namespaces, []string{"ns"}) {
				t.Errorf("got %+v, %v", k, warnings)
			}
			if k.ByLabel() != (c.want == "") || k.LeaderElection.Enabled || len(cfg.Targets) > 0 {
				t.Errorf("by label: %v, election %v, targets %v", k.ByLabel(), k.LeaderElection, cfg.Targets)
			}
			for _, def := range k.Definitions {
				if !def.Named || def.Configured != nil || def.Account != "acct" {
					t.Errorf("got %+v", def)
				}
			}
		})
	}
	annotations := job.with(nil)
	annotations["k8s-secrets"] = ""
	if cfg, _ := load(t, sources(t, annotations, inCluster)); !cfg.Kubernetes.ByLabel() {
		t.Error("an empty annotation is a list")
	}
}

func TestStandalone(t *testing.T) {
	for list, want := range map[string]string{" * ": "[*]", "a, b": "[a b]", "a": "[a]"} {
		cfg, warnings := load(t, sources(t, standalone.with(dict{"namespace-allowlist": list}), inCluster))
		if len(warnings) > 0 || fmt.Sprint(cfg.Kubernetes.Namespaces) != want || cfg.Retry.Limit != -1 || cfg.Server.Address != ":8080" {
			t.Errorf("%q: got %+v, retry %v, server %v, %v", list, cfg.Kubernetes, cfg.Retry, cfg.Server, warnings)
		}
	}
	cfg, _ := load(t, sources(t, standalone, inCluster))
	if want := (config.LeaderElection{Enabled: true, Namespace: "ns", Lease: "syncer", Duration: 15 * time.Second}); cfg.Kubernetes.LeaderElection != want {
		t.Errorf("got %+v", cfg.Kubernetes.LeaderElection)
	}
	if want := (config.Restarts{QuietPeriod: 10 * time.Second, PerHour: 60}); cfg.Kubernetes.Restarts != want {
		t.Errorf("got %+v", cfg.Kubernetes.Restarts)
	}
	cfg, _ = load(t, sources(t, dict{}, inCluster.with(dict{"SECRETS_DESTINATION": "k8s_secrets", "CONTAINER_MODE": "standalone", "NAMESPACE_ALLOWLIST": "x,y"})))
	if cfg.Mode != config.ModeStandalone || fmt.Sprint(cfg.Kubernetes.Namespaces) != "[x y]" {
		t.Errorf("from the environment: %+v", cfg.Kubernetes)
	}
}

func TestKubernetesRefuses(t *testing.T) {
	long := strings.Repeat("x", 64)
	alone := dict{"container-mode": "standalone"}
	for name, c := range map[string]struct {
		annotations dict
		env         dict
		key, want   string
	}{
		"no namespace":       {nil, dict{"MY_POD_NAMESPACE": ""}, "MY_POD_NAMESPACE", "metadata.namespace"},
		"bad namespace":      {nil, dict{"MY_POD_NAMESPACE": "n.s"}, "MY_POD_NAMESPACE", `"n.s" is not a name`},
		"blank list":         {dict{"k8s-secrets": "- \n"}, nil, "conjur.org/k8s-secrets", "list is empty"},
		"not a list":         {dict{"k8s-secrets": "s1"}, nil, "conjur.org/k8s-secrets", "not a YAML list"},
		"nested list":        {dict{"k8s-secrets": "- a\n- - b"}, nil, "conjur.org/k8s-secrets", "line 2"},
		"commas only":        {nil, dict{"K8S_SECRETS": " , "}, "K8S_SECRETS", "list is empty"},
		"not a name":         {dict{"k8s-secrets": "- a\n- B_c"}, nil, "conjur.org/k8s-secrets", `"B_c"`},
		"a name too long":    {nil, dict{"K8S_SECRETS": strings.Repeat("x", 254)}, "K8S_SECRETS", "longer than 253"},
		"no allow-list":      {alone, nil, "conjur.org/namespace-allowlist", "not set"},
		"blank allow-list":   {alone.with(dict{"namespace-allowlist": " , "}), nil, "conjur.org/namespace-allowlist", "list is empty"},
		"all and one":        {alone.with(dict{"namespace-allowlist": "*,a"}), nil, "conjur.org/namespace-allowlist", "the list has * and names"},
		"no namespace there": {alone.with(dict{"namespace-allowlist": "a,b.c"}), nil, "conjur.org/namespace-allowlist", `"b.c" is not a name`},
		"a long namespace":   {alone, dict{"NAMESPACE_ALLOWLIST": long}, "NAMESPACE_ALLOWLIST", "at most 63"},
		"a list":             {alone.with(dict{"namespace-allowlist": "*", "k8s-secrets": "- a"}), nil, "conjur.org/k8s-secrets", "by label"},
		"files":              {alone.with(dict{"secrets-destination": "file", "conjur-secrets.g": "- a", "namespace-allowlist": "*"}), nil, "conjur.org/secrets-destination", "cannot have the destination file"},
		"an interval":        {dict{"secrets-refresh-interval": "5m"}, nil, "conjur.org/secrets-refresh-interval", "mode application"},
	} {
		t.Run(name, func(t *testing.T) {
			assertOne(t, problems(t, sources(t, job.with(c.annotations), inCluster.with(c.env))), c.key, c.want)
		})
	}
}

// divided is the configuration of a Deployment with a selector, and more settings of the
// cluster.
func divided(more string) string {
	return "secretsDestination: k8s_secrets\ncontainerMode: standalone\nkubernetes: {namespace: ns, namespaceSelector: \"team in (a, b), !legacy\"" + more + "}\n"
}

func TestNamespaceSelector(t *testing.T) {
	cfg, warnings := load(t, fileSources(t, divided(""), nil, connection))
	if k := cfg.Kubernetes; len(warnings) > 0 || k.NamespaceSelector != "team in (a, b), !legacy" || k.Namespaces != nil || len(k.Watched()) > 0 {
		t.Errorf("got %+v, %v", k, warnings)
	}
	for name, c := range map[string]struct{ yaml, want string }{
		"bad selector": {strings.Replace(divided(""), "!legacy", "legacy=a b", 1), "is not a label selector"},
		"and a list":   {divided(", namespaces: [a]"), "remove one of the two"},
		"and all":      {divided(", namespaces: ['*']"), "remove one of the two"},
		"and Secrets":  {divided(", secrets: [{name: s, namespace: a, map: {k: v}}]"), "names their namespaces"},
		"and sets":     {divided("") + "rotation: {sets: [{set: s, generate: {random: 32}}]}", "without a selector"},
		"no election":  {divided("") + "leaderElection: {enabled: false}", "needs leader election"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, fileSources(t, c.yaml, nil, connection))
			if len(got) != 1 || !strings.HasSuffix(got[0].Key, ": kubernetes.namespaceSelector") || !strings.Contains(got[0].Message, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, warnings = load(t, fileSources(t, strings.Replace(divided(""), "standalone", "application", 1), nil, connection))
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "standalone only") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestAllOfAClusterAtOnce(t *testing.T) {
	src := sources(t, dict{"secrets-destination": "k8s_secrets", "container-mode": "standalone", "namespace-allowlist": "A,b.c,*",
		"k8s-secrets": "- x", "removal-confirmations": "0"}, connection.with(dict{"SERVER_ADDRESS": "8080"}))
	var keys []string
	for _, p := range problems(t, src) {
		keys = append(keys, strings.TrimPrefix(p.Key, "conjur.org/"))
	}
	if got := strings.Join(keys, " "); got != "removal-confirmations SERVER_ADDRESS MY_POD_NAMESPACE namespace-allowlist k8s-secrets" {
		t.Errorf("got %s", got)
	}
}

func TestKubernetesWarns(t *testing.T) {
	_, warnings := load(t, sources(t, job.with(dict{"k8s-secrets": "[a, a]"}), inCluster))
	assertOne(t, warnings, "conjur.org/k8s-secrets", `"a" is written twice`)
	_, warnings = load(t, sources(t, job, inCluster.with(dict{"K8S_SECRETS": "a, b c"})))
	assertOne(t, warnings, "K8S_SECRETS", `"b c" is read as the one name "bc"`)
	_, warnings = load(t, sources(t, job.with(dict{"container-mode": "standalone", "namespace-allowlist": "a b"}), inCluster))
	assertOne(t, warnings, "conjur.org/namespace-allowlist", `"a b" is read as the one name "ab"`)
	_, warnings = load(t, sources(t, job.with(dict{"namespace-allowlist": "a"}), inCluster))
	assertOne(t, warnings, "conjur.org/namespace-allowlist", "standalone only")
}

// TestKubernetesDeprecatesTheEnvironment counts what is warned of: all that has
// an annotation, once, but not how Conjur is reached.
func TestKubernetesDeprecatesTheEnvironment(t *testing.T) {
	set := dict{"SECRETS_DESTINATION": "k8s_secrets", "K8S_SECRETS": "a", "RETRY_COUNT_LIMIT": "3", "LOG_LEVEL": "warn", "DEBUG": "true"}
	for mode, want := range map[string]string{
		"init":        "SECRETS_DESTINATION RETRY_COUNT_LIMIT LOG_LEVEL K8S_SECRETS DEBUG",
		"sidecar":     "SECRETS_DESTINATION RETRY_COUNT_LIMIT LOG_LEVEL K8S_SECRETS DEBUG",
		"application": "DEBUG",
	} {
		_, warnings := load(t, sources(t, dict{"container-mode": mode}, inCluster.with(set)))
		var keys []string
		for _, w := range warnings {
			keys = append(keys, w.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: %q, want %s", mode, warnings, want)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	const yaml = "secretsDestination: k8s_secrets\nkubernetes: {namespace: ns, kubeconfig: /some/file}"
	src := fileSources(t, yaml, nil, connection)
	if cfg, _ := load(t, src); cfg.Kubernetes.Kubeconfig != "/some/file" {
		t.Errorf("got %+v", cfg.Kubernetes)
	}
	src.Kubeconfig = "/of/a/flag"
	if cfg, _ := load(t, src); cfg.Kubernetes.Kubeconfig != "/of/a/flag" {
		t.Errorf("got %+v", cfg.Kubernetes)
	}
}

// TestFilesMayNeedTheCluster keeps what templates in ConfigMaps need.
func TestFilesMayNeedTheCluster(t *testing.T) {
	annotations := group.with(dict{"secret-file-format.g": "template", "secret-file-template-configmap.g": "tpl/app.conf"})
	src := sources(t, annotations, inCluster)
	src.Kubeconfig = "/k"
	cfg, _ := load(t, src)
	want := targets.Template{ConfigMap: targets.ConfigMapKey{Namespace: "ns", Name: "tpl", Key: "app.conf"}}
	if cfg.Targets[0].Template != want || cfg.Kubernetes.Kubeconfig != "/k" || cfg.Kubernetes.Namespace != "ns" {
		t.Errorf("got %+v, %+v", cfg.Targets[0].Template, cfg.Kubernetes)
	}
	cfg, _ = load(t, sources(t, annotations, connection))
	if got := cfg.Targets[0].Template.ConfigMap; got.Namespace != "" || got.Name != "tpl" {
		t.Errorf("without a namespace: %+v", got)
	}
}

func TestEnvironmentIsDeprecatedForKubernetes(t *testing.T) {
	env := inCluster.with(dict{"SECRETS_DESTINATION": "k8s_secrets", "K8S_SECRETS": "s"})
	for mode, want := range map[string]int{"init": 2, "sidecar": 2, "application": 0} {
		_, warnings := load(t, sources(t, dict{"container-mode": mode}, env))
		if len(warnings) != want {
			t.Errorf("%s: warnings %v", mode, warnings)
		}
	}
	_, warnings := load(t, sources(t, dict{"container-mode": "init"}, env.with(dict{"K8S_SECRETS": ""})))
	assertOne(t, warnings, "SECRETS_DESTINATION", "use the annotation conjur.org/secrets-destination")
	_, warnings = load(t, sources(t, dict{"container-mode": "init", "secrets-destination": "k8s_secrets", "k8s-secrets": "- s"}, inCluster))
	if len(warnings) > 0 {
		t.Errorf("warnings without a variable: %v", warnings)
	}
}
