package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

const examples = "../../deploy/examples/"

var (
	// policyLine is a line of the policy in the first comment of an example, as the README
	// takes it out.
	policyLine = regexp.MustCompile(`(?m)^#   ([- ] .*\n)`)
	accountOf  = regexp.MustCompile(`(?m)^#     id: (system:serviceaccount:\S+)$`)
	variableOf = regexp.MustCompile(`apps/shop/[a-z-]+`)
)

// TestTheExamplesAreComplete: each is a valid manifest, its policy loads, and the host of
// its service account may read each variable that it names.
func TestTheExamplesAreComplete(t *testing.T) {
	files, err := filepath.Glob(examples + "*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	readme, err := os.ReadFile(examples + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(readme), "("+name+")") {
				t.Error("the README does not name it")
			}
			if _, said, err := told(t, "", "validate", "-f", file); err != nil || said != "" {
				t.Errorf("%v: %s", err, said)
			}
			objects, policy := string(text), ""
			for _, m := range policyLine.FindAllStringSubmatch(objects, -1) {
				policy += m[1]
			}
			_, objects, _ = strings.Cut(objects, "\napiVersion:")
			server := exampleServer(t, policy)
			account := accountOf.FindStringSubmatch(string(text))
			if account == nil {
				t.Fatal("the policy has no host of a service account")
			}
			for name, value := range server.Env(account[1]) {
				t.Setenv(name, value)
			}
			var delivered []string
			for _, id := range variableOf.FindAllString(objects, -1) {
				server.Set(id, "a value") // fails, if the policy lacks it
				if !strings.HasSuffix(id, "-admin") {
					delivered = append(delivered, id)
				}
			}
			mayRead(t, delivered)
			exampleConfig(t, text, server)
		})
	}
}

// exampleServer is a Conjur with the policies of the authenticator and of an example.
func exampleServer(t *testing.T, policy string) *conjurdtest.Server {
	t.Helper()
	authenticator, err := os.ReadFile(examples + "authn-jwt.yml")
	if err != nil {
		t.Fatal(err)
	}
	server := conjurdtest.Start(t)
	server.Policy(string(authenticator))
	server.Policy(policy)
	return server
}

// mayRead fails the test unless the identity of the environment may read the variables.
func mayRead(t *testing.T, ids []string) {
	t.Helper()
	if len(ids) == 0 {
		t.Error("the example delivers nothing")
	}
	err := withConjur(func(client *conjur.Client) error {
		known, err := variables.New(client, variables.Config{})
		if err != nil {
			return err
		}
		for id, answer := range known.Fetch(t.Context(), ids, nil) {
			if answer.Err != nil {
				t.Errorf("%s: %v", id, answer.Err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// exampleConfig checks the configuration file in an example's ConfigMap. The host that
// rotates exists, and the policy has what "rotate init" prints.
func exampleConfig(t *testing.T, text []byte, server *conjurdtest.Server) {
	t.Helper()
	for _, document := range strings.Split(string(text), "\n---\n") {
		var m corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &m); err != nil || m.Data["syncer.yaml"] == "" {
			continue
		}
		file := filepath.Join(t.TempDir(), "syncer.yaml")
		if err := os.WriteFile(file, []byte(m.Data["syncer.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		src := config.Sources{ConfigFile: config.ReadFile(file), Getenv: func(string) string { return "" }, Assume: config.Assumptions{Connection: true, Namespace: true, Files: true, Node: true}}
		cfg, warnings, err := config.Load(src)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("the configuration: %v, %v", err, warnings)
		}
		if len(cfg.Rotation.Sets) > 0 {
			server.HostKey("rotates")
			for _, line := range strings.Split(policyOf(cfg.Rotation), "\n") {
				if id, ok := strings.CutPrefix(line, "- !variable "); ok && !strings.Contains(string(text), "- !variable "+id+"\n") {
					t.Errorf("the policy lacks the variable %s", id)
				}
			}
		}
	}
}
