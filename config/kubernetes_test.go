package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kubernetesOf runs the part of Load that the version does not let through.
func kubernetesOf(annotations, env map[string]string) (*Config, report) {
	l := &loader{src: Sources{SecretsDir: DefaultSecretsDir, Offline: true}, values: newValues()}
	lines := map[string]annotation{}
	for name, text := range annotations {
		lines[domain+name] = annotation{value: text}
	}
	l.addAnnotations(lines, &l.report)
	l.addEnvironment(func(name string) string { return env[name] }, &l.report)
	l.src.Offline = false
	cfg := &Config{
		Mode:        Mode(l.text(nameMode, string(ModeInit))),
		Destination: Destination(l.text(nameDestination, "")),
	}
	l.checkDestination(cfg)
	cfg.Retry = l.retry(cfg.Mode)
	cfg.Kubernetes = l.kubernetes(cfg)
	return cfg, l.report
}

func TestKubernetesSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env map[string]string
		want             []string
	}{
		"by label":        {nil, nil, nil},
		"empty":           {map[string]string{"k8s-secrets": ""}, nil, nil},
		"list":            {map[string]string{"k8s-secrets": "- s1\n- s2\n"}, nil, []string{"s1", "s2"}},
		"CRLF":            {map[string]string{"k8s-secrets": "- s1\r\n- s2\r\n"}, nil, []string{"s1", "s2"}},
		"quotes, flow":    {map[string]string{"k8s-secrets": `["s1", s2] # both`}, nil, []string{"s1", "s2"}},
		"environment":     {nil, map[string]string{"K8S_SECRETS": "s1, s2 ,,s3"}, []string{"s1", "s2", "s3"}},
		"annotation wins": {map[string]string{"k8s-secrets": "- s1"}, map[string]string{"K8S_SECRETS": "s2"}, []string{"s1"}},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"secrets-destination": "k8s_secrets", "container-mode": "application"}
			for k, v := range c.annotations {
				annotations[k] = v
			}
			env := map[string]string{"MY_POD_NAMESPACE": "ns"}
			for k, v := range c.env {
				env[k] = v
			}
			cfg, r := kubernetesOf(annotations, env)
			if len(r.problems)+len(r.warnings) > 0 || !slices.Equal(cfg.Kubernetes.Secrets, c.want) || cfg.Kubernetes.Namespace != "ns" {
				t.Errorf("got %v, %v, %v", cfg.Kubernetes, r.problems, r.warnings)
			}
		})
	}
}

func TestStandalone(t *testing.T) {
	cfg, r := kubernetesOf(map[string]string{"secrets-destination": "k8s_secrets", "container-mode": "standalone", "namespace-allowlist": " * "},
		map[string]string{"MY_POD_NAMESPACE": "ns"})
	if len(r.problems) > 0 || fmt.Sprint(cfg.Kubernetes.Namespaces) != "[*]" || cfg.Retry.Limit != -1 {
		t.Errorf("got %v, retry %v, %v", cfg.Kubernetes, cfg.Retry, r.problems)
	}
	cfg, r = kubernetesOf(map[string]string{"secrets-destination": "k8s_secrets", "container-mode": "standalone", "namespace-allowlist": "a, b"},
		map[string]string{"MY_POD_NAMESPACE": "ns"})
	if len(r.problems) > 0 || fmt.Sprint(cfg.Kubernetes.Namespaces) != "[a b]" {
		t.Errorf("got %v, %v", cfg.Kubernetes, r.problems)
	}
}

func TestKubernetesRefuses(t *testing.T) {
	namespace := map[string]string{"MY_POD_NAMESPACE": "ns"}
	for name, c := range map[string]struct {
		annotations map[string]string
		env         map[string]string
		key, want   string
	}{
		"no namespace":       {map[string]string{}, nil, "MY_POD_NAMESPACE", "k8s_secrets needs it"},
		"blank list":         {map[string]string{"k8s-secrets": "- \n"}, namespace, "conjur.org/k8s-secrets", "names nothing"},
		"not a list":         {map[string]string{"k8s-secrets": "s1"}, namespace, "conjur.org/k8s-secrets", "not a YAML list"},
		"nested list":        {map[string]string{"k8s-secrets": "- a\n- - b"}, namespace, "conjur.org/k8s-secrets", "line 2"},
		"commas only":        {map[string]string{}, map[string]string{"MY_POD_NAMESPACE": "ns", "K8S_SECRETS": " , "}, "K8S_SECRETS", "names nothing"},
		"no allow-list":      {map[string]string{"container-mode": "standalone"}, namespace, "conjur.org/namespace-allowlist", "not set"},
		"blank allow-list":   {map[string]string{"container-mode": "standalone", "namespace-allowlist": " , "}, namespace, "conjur.org/namespace-allowlist", "names nothing"},
		"all and one":        {map[string]string{"container-mode": "standalone", "namespace-allowlist": "*,a"}, namespace, "conjur.org/namespace-allowlist", "* beside names"},
		"list in standalone": {map[string]string{"container-mode": "standalone", "namespace-allowlist": "*", "k8s-secrets": "- a"}, namespace, "conjur.org/k8s-secrets", "by their label"},
		"file in standalone": {map[string]string{"container-mode": "standalone", "secrets-destination": "file", "k8s-secrets": "- "}, namespace, "conjur.org/secrets-destination", "cannot have the destination file"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"secrets-destination": "k8s_secrets", "container-mode": "application"}
			for k, v := range c.annotations {
				annotations[k] = v
			}
			_, r := kubernetesOf(annotations, c.env)
			if len(r.problems) != 1 || r.problems[0].Key != c.key || !strings.Contains(r.problems[0].Message, c.want) {
				t.Errorf("got %v, want one of %s with %q", r.problems, c.key, c.want)
			}
		})
	}
}

func TestEnvironmentIsDeprecatedForKubernetes(t *testing.T) {
	env := map[string]string{"MY_POD_NAMESPACE": "ns", "SECRETS_DESTINATION": "k8s_secrets", "K8S_SECRETS": "s", "CONJUR_ACCOUNT": "a"}
	for mode, want := range map[string]int{"init": 2, "sidecar": 2, "application": 0} {
		_, r := kubernetesOf(map[string]string{"container-mode": mode}, env)
		if len(r.warnings) != want || len(r.problems) > 0 {
			t.Errorf("%s: warnings %v, problems %v", mode, r.warnings, r.problems)
		}
	}
	_, r := kubernetesOf(map[string]string{"secrets-destination": "k8s_secrets", "k8s-secrets": "- s"}, map[string]string{"MY_POD_NAMESPACE": "ns"})
	if len(r.warnings) > 0 {
		t.Errorf("warnings without a variable: %v", r.warnings)
	}
}

func TestUnsupported(t *testing.T) {
	l := &loader{values: newValues()}
	l.process[nameMode] = value{text: "sidecar", set: true}
	l.process[nameDestination] = value{text: "file", set: true}
	l.unsupported(&Config{Conjur: Conjur{AuthnType: AuthnJWT}})
	if len(l.problems) > 0 {
		t.Errorf("got %q", l.problems)
	}
	l.process[nameMode] = value{text: "standalone", set: true, key: "CONTAINER_MODE"}
	l.process[nameDestination] = value{text: "k8s_secrets", set: true, key: "SECRETS_DESTINATION"}
	l.unsupported(&Config{Conjur: Conjur{AuthnType: "authn-k8s"}})
	var keys []string
	for _, p := range l.problems {
		keys = append(keys, p.Key)
	}
	if got := strings.Join(keys, " "); got != "CONTAINER_MODE SECRETS_DESTINATION CONJUR_AUTHN_URL" {
		t.Errorf("got %s", got)
	}
}
