package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
)

func rotateBy(t testing.TB, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRotateCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRotateByHand(t *testing.T) {
	setFixture(t)
	step := func(args ...string) string {
		t.Helper()
		out, err := rotateBy(t, args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return strings.TrimSpace(out)
	}
	first := step("init", "unset", "--random", "32")
	second := step("add", "unset", "--random", "32")
	if _, err := rotateBy(t, "promote", "unset"); err == nil || !strings.Contains(err.Error(), "--force --reason") {
		t.Errorf("a promotion right after the version was added: %v", err)
	}
	step("promote", "unset", "--wait", "0s")
	if _, err := rotateBy(t, "retire", "unset", first); err == nil || !strings.Contains(err.Error(), "of 24h") {
		t.Errorf("a retirement right after the promotion: %v", err)
	}
	step("retire", "unset", first, "--force", "--reason", "it is a test")
	step("check", "unset")
	var reports []rotation.Report
	if err := json.Unmarshal([]byte(step("status", "unset", "--output", "json")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0].Primary != second || reports[0].Stage != "idle" {
		t.Errorf("the status is %+v", reports)
	}
	if text := step("status", "unset"); !strings.Contains(text, second+"  primary") || !strings.Contains(text, "[key]") {
		t.Errorf("the status is\n%s", text)
	}
}

func TestRotateStatusOfWhatIsNoSet(t *testing.T) {
	setFixture(t)
	out, err := rotateBy(t, "status", "a")
	if err == nil || !strings.Contains(out, "the value is not a set") || strings.Contains(out, "old-a") {
		t.Errorf("%v, and it prints %s", err, out)
	}
}

// TestThePolicyNamesTheSetOfEachHost that rotates, and can be loaded beside the hosts
// that there are.
func TestThePolicyNamesTheSetOfEachHost(t *testing.T) {
	server := conjurdtest.Start(t)
	server.Policy("- !policy { id: shop, body: [!host a, !host b] }\n")
	key := server.HostKey("shop/a")
	policy := policyOf(config.Rotation{Conjur: config.Conjur{Login: "host/rotates"}, Sets: []config.RotatedSet{
		{Set: "shop/keys", APIKeys: &config.APIKeys{Hosts: []string{"shop/a", "shop/b"}}},
	}})
	if want := "- !host { id: shop/a, annotations: { syncer/set: shop/keys } }\n"; !strings.Contains(policy, want) {
		t.Errorf("the policy has no %s: %s", want, policy)
	}
	server.Policy(policy)
	if server.HostKey("shop/a") != key {
		t.Error("the host was made anew")
	}
	server.HostKey("rotates")
}
