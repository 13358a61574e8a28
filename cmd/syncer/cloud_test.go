package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// TestTheExampleOfCloudCredentials: the policy loads, each rule of it is for what the
// file names, all Secrets show the set, and the alert asks for what is measured.
func TestTheExampleOfCloudCredentials(t *testing.T) {
	const dir = "../../deploy/examples/cloud-credentials/"
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	server := conjurdtest.Start(t)
	server.Policy(read("policy.yml"))
	server.Set("cloud/webhook-key", "a key of the tests")
	key := t.TempDir() + "/key"
	if err := os.WriteFile(key, []byte(server.HostKey("syncer-rotates")), 0o600); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/syncer.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(read("syncer.yaml"), "/etc/syncer/rotates/api-key", key)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range server.Env("syncer") {
		t.Setenv(name, value)
	}
	c, warnings, err := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv})
	if err != nil || len(warnings) > 0 || len(c.Sets) != 1 || c.Sets[0].Every != 30*24*time.Hour {
		t.Fatalf("%v %v: %+v", err, warnings, c.Sets)
	}
	if out, err := rotateBy(t, "check", "--config", file); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if n := strings.Count(read("secrets.yaml"), "{credential: "+c.Sets[0].Set+"}"); n != 2 {
		t.Errorf("%d Secrets show the set", n)
	}
	if _, said, err := told(t, "", "validate", "-f", dir+"secrets.yaml"); err != nil || said != "" {
		t.Errorf("%v: %s", err, said)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read("alerts.yaml")), &alerts); err != nil || len(alerts.Groups) != 1 {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("../../pkg/health/sets.go")
	for _, name := range regexp.MustCompile(`syncer_[a-z_]+`).FindAllString(alerts.Groups[0].Rules[0].Expr, -1) {
		if err != nil || !strings.Contains(string(metrics), `"`+name+`"`) {
			t.Errorf("there is no metric %s (%v)", name, err)
		}
	}
}
