package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestNamespacesHaveIdentitiesOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	other := w.join()
	w.server.Policy("- !host other\n")
	w.variables("ours")
	w.server.Policy("- !variable theirs\n- !permit {role: !host other, privileges: [read, execute], resource: !variable theirs}\n")
	theirs := w.renew("theirs")
	key := filepath.Join(w.dir, "key")
	if err := os.WriteFile(key, []byte(w.server.HostKey("other")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + other
	w.settings = append(w.settings, fmt.Sprintf("identities: [{name: other, namespaces: [%s], conjur: {login: host/other, apiKeyFile: %q}}]", other, key))
	p := w.start()

	w.secret("mine", map[string]string{"v": "ours", "stolen": "theirs"})
	w.secret("own", map[string]string{"v": "ours"})
	w.secretIn(other, "db", map[string]string{"v": "theirs"})
	w.awaitData("own", map[string]string{"v": w.value["ours"]})
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
