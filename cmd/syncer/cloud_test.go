package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/clouds"
)

// TestTheExampleOfCloudCredentials: the policy loads, each rule of it is for what the
// file names, the three commands of the docs work, each set is in a Secret, and the alerts
// ask for what is measured.
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
	aws, gcp, azure := clouds.NewAWS(t, "ingress", nil), clouds.NewGCP(t, "backup@acme.iam.gserviceaccount.com", nil), clouds.NewAzure(t, nil)
	server := conjurdtest.Start(t)
	server.Policy(read("policy.yml"))
	own := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(own+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return own + "/" + name
	}
	file := write("syncer.yaml", strings.NewReplacer(
		"/etc/syncer/rotates/api-key", write("key", server.HostKey("syncer-rotates")),
		"{user:", "{endpoint: "+aws.URL+", user:", "{account:", "{endpoint: "+gcp.URL+", account:", "{application:", "{endpoint: "+azure.URL+", application:",
	).Replace(read("syncer.yaml")))
	for name, value := range server.Env("syncer") {
		t.Setenv(name, value)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": aws.Admin.ID, "AWS_SECRET_ACCESS_KEY": aws.Admin.Secret, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": own + "/none", "AWS_SHARED_CREDENTIALS_FILE": own + "/none",
		"AZURE_FEDERATED_TOKEN_FILE": write("token", "federated"), "AZURE_CLIENT_ID": "syncer", "AZURE_TENANT_ID": azure.Tenant,
	} {
		t.Setenv(name, value)
	}
	c, warnings, err := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv})
	if err != nil || len(warnings) > 0 || len(c.Sets) != 3 || c.Sets[0].Every != 30*24*time.Hour {
		t.Fatalf("%v %v: %+v", err, warnings, c.Sets)
	}
	// The three commands of docs/cloud-credentials.md.
	policy, remarks, err := told(t, "", "rotate", "init", "--config", file)
	for _, needs := range []string{"arn:aws:iam::*:user/ingress", "iam.serviceAccountKeys.create", "Application.ReadWrite.OwnedBy"} {
		if err != nil || !strings.Contains(remarks, needs) || strings.Contains(policy, needs) {
			t.Errorf("init does not print %s (%v): %s", needs, err, remarks)
		}
	}
	_, rest, _ := strings.Cut(remarks, "{")
	if iam := map[string]any{}; json.NewDecoder(strings.NewReader("{"+rest)).Decode(&iam) != nil || iam["Version"] != "2012-10-17" {
		t.Errorf("the policy of AWS cannot be pasted: %s", remarks)
	}
	server.Policy(policy)
	if out, err := rotateBy(t, "check", "--config", file); err != nil || len(aws.Keys())+len(gcp.Keys())+len(azure.Keys()) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	for range 2 {
		if out, err := rotateBy(t, "run", "--once", "--config", file); err != nil || len(aws.Keys()) != 1 || len(gcp.Keys()) != 1 || len(azure.Keys()) != 1 {
			t.Errorf("%v: %s", err, out)
		} else if strings.Contains(out, aws.Keys()[0].Secret) || strings.Contains(out, azure.Keys()[0].Secret) || strings.Contains(out, "PRIVATE KEY") {
			t.Error("the output contains a secret")
		}
	}
	keys := func() (ids []string) {
		for _, k := range slices.Concat(aws.Keys(), gcp.Keys(), azure.Keys()) {
			ids = append(ids, fmt.Sprint(k.ID, k.Active))
		}
		return ids
	}
	before := keys()
	if out, err := rotateBy(t, "check", "--config", file); err != nil || !slices.Equal(keys(), before) {
		t.Errorf("the keys are %q instead of %q (%v): %s", keys(), before, err, out)
	}
	for _, set := range c.Sets {
		if n := strings.Count(read("secrets.yaml"), "{credential: "+set.Set+"}"); n != 1 {
			t.Errorf("%d Secrets show the set %s", n, set.Set)
		}
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
	metrics, err := os.ReadFile("../../pkg/health/metrics.go")
	for _, rule := range alerts.Groups[0].Rules {
		for _, name := range regexp.MustCompile(`syncer_[a-z_]+`).FindAllString(rule.Expr, -1) {
			if err != nil || !strings.Contains(string(metrics), `"`+name+`"`) {
				t.Errorf("there is no metric %s (%v)", name, err)
			}
		}
	}
}
