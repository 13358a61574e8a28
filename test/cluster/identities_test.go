package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// identity returns an identity of the configuration: an existing host, and the namespaces
// that it serves.
func (w *world) identity(host string, namespaces ...string) string {
	w.Helper()
	key := filepath.Join(w.dir, "key-of-"+host)
	if err := os.WriteFile(key, []byte(w.Server.HostKey(host)), 0o600); err != nil {
		w.Fatal(err)
	}
	return fmt.Sprintf("{name: %s, namespaces: [%s], conjur: {login: host/%s, apiKeyFile: %q}}", host, strings.Join(namespaces, ", "), host, key)
}

func TestNamespacesHaveIdentitiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.join()
	w.Server.Policy("- !host other\n")
	w.Variables("ours")
	w.Server.Policy("- !variable theirs\n- !permit {role: !host other, privileges: [read, execute], resource: !variable theirs}\n")
	theirs := w.Renew("theirs")
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + other
	w.settings = append(w.settings, fmt.Sprintf("identities: [%s]", w.identity("other", other)))
	p := w.start()

	w.secret("mine", map[string]string{"v": "ours", "stolen": "theirs"})
	w.secret("own", map[string]string{"v": "ours"})
	w.secretIn(other, "db", map[string]string{"v": "theirs"})
	w.awaitData("own", map[string]string{"v": w.Value["ours"]})
	eventually(t, "the other namespace's value by its own identity", func() bool {
		s := w.readIn(other, "db")
		return s != nil && string(s.Data["v"]) == theirs
	})
	eventually(t, "an Event about the variable of another identity", func() bool { return len(w.events("mine", "SyncFailed")) > 0 })
	if s := w.read("mine"); s.Data["stolen"] != nil {
		t.Error("a Secret got a value that its namespace's identity may not read")
	}
	p.Stop()
}

// TestSecretThatNoIdentityServes: a process whose identities do not cover a namespace leaves
// it alone, reports it, and continues. As soon as an identity serves the namespace, its
// Secrets are filled.
func TestSecretThatNoIdentityServes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.join()
	w.Variables("ours")
	delete(w.Env, "CONJUR_AUTHN_LOGIN")
	delete(w.Env, "CONJUR_AUTHN_API_KEY")
	delete(w.Env, "NAMESPACE_ALLOWLIST")
	common := w.settings
	serve := func(namespaces string, identities ...string) {
		w.settings = append(slices.Clone(common), fmt.Sprintf("kubernetes: {namespaces: [%s]}", namespaces), fmt.Sprintf("identities: [%s]", strings.Join(identities, ", ")))
	}
	serve(w.namespace, w.identity("app", w.namespace))
	w.secret("db", map[string]string{"v": "ours"})
	w.secretIn(other, "db", map[string]string{"v": "ours"})
	p := w.start()
	w.awaitData("db", map[string]string{"v": w.Value["ours"]})

	serve(w.namespace+", "+other, w.identity("app", w.namespace))
	w.configure()
	eventually(t, "a word about the namespace", func() bool {
		return len(p.Lines("no identity serves the namespace", other)) > 0
	})
	w.awaitData("db", map[string]string{"v": w.Renew("ours")})
	if s := w.readIn(other, "db"); s.Data["v"] != nil {
		t.Error("a Secret was filled that no identity serves")
	}

	serve(w.namespace+", "+other, w.identity("app", w.namespace, other))
	w.configure()
	eventually(t, "the Secret of the other namespace", func() bool { return string(w.readIn(other, "db").Data["v"]) == w.Value["ours"] })
	p.Stop()
}

// TestFailingPollIsNamedByItsIdentity: so is its recovery, and the poll of another identity
// is not named.
func TestFailingPollIsNamedByItsIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.join()
	w.Server.Policy("- !host other\n")
	w.Variables("ours")
	w.Server.Policy("- !permit {role: !host other, privileges: [read, execute], resource: !variable ours}\n")
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + other
	w.settings = append(w.settings, fmt.Sprintf("identities: [%s]", w.identity("other", other)))
	w.secret("db", map[string]string{"v": "ours"})
	w.secretIn(other, "db", map[string]string{"v": "ours"})
	p := w.start()
	w.awaitData("db", map[string]string{"v": w.Value["ours"]})
	eventually(t, "the other Secret", func() bool { return string(w.readIn(other, "db").Data["v"]) == w.Value["ours"] })

	w.Server.Policy("- !delete {record: !host other}\n")
	eventually(t, "a word about the poll of the identity", func() bool { return len(p.Lines("Failing", `"poll as other"`)) > 0 })
	w.awaitData("db", map[string]string{"v": w.Renew("ours")})
	w.Server.Policy("- !host other\n- !permit {role: !host other, privileges: [read, execute], resource: !variable ours}\n")
	w.identity("other", other) // has another key
	eventually(t, "its recovery", func() bool { return len(p.Lines("Recovered", `"poll as other"`)) > 0 })
	if lines := p.Lines(`"poll"`); len(lines) > 0 {
		t.Errorf("the poll of the process's own identity is blamed: %s", lines[0])
	}
	p.Stop()
}
