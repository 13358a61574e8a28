//go:build node

package node

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
)

// TestAgentOfANode runs the documented example: the token names the node, which is the host.
// A node-specific key replaces the general one while it exists. Another service account on
// the node cannot log in.
func TestAgentOfANode(t *testing.T) {
	t.Parallel()
	const example, nodes = "../../deploy/examples/node-agent/", "conjur/authn-jwt/nodes/"
	text, err := os.ReadFile(example + "policy.yml")
	if err != nil {
		t.Fatal(err)
	}
	hosts := strings.NewReplacer("namespace: agents", "namespace: VALUE_OF_NAMESPACE", "n1", "node").Replace(string(text))
	w := newWorldWith(t, policy(shop())+hosts, map[string]string{
		"agent/key": "general", "agent/collector": "https://collector.example",
		nodes + "jwks-uri": "https://10.0.0.1/openid/v1/jwks", nodes + "ca-cert": string(plane.CA()), nodes + "issuer": plane.URL(),
		nodes + "audience": "conjur", nodes + "token-app-property": "kubernetes.io/node/name", nodes + "identity-path": "nodes",
	})
	if text, err = os.ReadFile(example + "daemonset.yaml"); err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer("namespace: agents", "namespace: "+w.namespace, "registry.example.com/agent:1.0", appImage,
		`"https://conjur.example.com"`, w.address, `"https://conjur.example.com/authn-jwt/nodes"`, w.address+"/authn-jwt/nodes",
		"value: prod}", "value: "+account+"}\n        - {name: CONJUR_SSL_CERTIFICATE, value: "+strconv.Quote(w.ca)+"}", "interval: 30s", "interval: 1s",
	).Replace(string(text))
	cluster := deploy.Connect(t, plane.Config())
	for _, o := range deploy.Decode(t, []byte(manifest)) {
		_, err := cluster.Create(t.Context(), w.namespace, o, false)
		w.check(err)
	}
	p := w.podOf("app=agent")
	p.ready()
	awaitKey := func(want string) {
		t.Helper()
		p.eventually("key "+want, func() bool { return p.rootFile("agent", secretsDir+"agent.yaml") == `"key": "`+want+`"` })
	}
	awaitKey("general")
	administrator := w.administrator()
	w.load(administrator("node", "policy", "--node", "node", "agent/key"))
	w.set(map[string]string{"node/node/agent/key": "own"})
	awaitKey("own")
	w.load(administrator("node", "policy", "--remove", "--node", "node", "agent/key"))
	awaitKey("general")

	stranger := w.documented(files("conjur-secrets.db", "- agent/key"), "run")
	asInitContainer(stranger)
	set(&stranger.Spec.InitContainers[0], "CONJUR_AUTHN_URL", w.address+"/authn-jwt/nodes")
	w.start("stranger", stranger).awaitDescription("401")
}
