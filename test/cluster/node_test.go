package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/proctest"
)

const nodeAgent = "../../deploy/examples/node-agent/"

// nodes is the example of an agent on every node: its policy, and its DaemonSet.
type nodes struct {
	*world
	agent *appsv1.DaemonSet
}

func newNodes(t *testing.T) *nodes {
	t.Helper()
	w := newWorld(t)
	plane.AllowAnonymousDiscovery(t)
	text, err := os.ReadFile(nodeAgent + "policy.yml")
	if err != nil {
		t.Fatal(err)
	}
	w.server.Policy(strings.ReplaceAll(string(text), "namespace: agents", "namespace: "+w.namespace))
	for name, value := range map[string]string{
		"jwks-uri": plane.JWKSURL(), "ca-cert": string(plane.CA()), "issuer": plane.URL(), "audience": "conjur",
		"token-app-property": "kubernetes.io/node/name", "identity-path": "nodes",
	} {
		w.server.Set("conjur/authn-jwt/nodes/"+name, value)
	}
	w.renew("agent/key")
	w.renew("agent/collector")
	n := &nodes{world: w}
	manifest, err := os.ReadFile(nodeAgent + "daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(manifest, []byte("\n---\n"))
	if err := yaml.UnmarshalStrict(documents[1], &n.agent); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"agent", "other"} {
		plane.Token(t, w.namespace, account) // makes it
	}
	return n
}

// pod makes the agent's Pod of a node, as the controller of the DaemonSet would,
// and returns the token that the kubelet would project into it.
func (n *nodes) pod(node, account string) (token string) {
	n.t.Helper()
	ctx := n.t.Context()
	name := n.namespace + "-" + node // nodes are everybody's
	_, err := n.core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err == nil {
		n.t.Cleanup(func() {
			_ = n.core.Nodes().Delete(context.WithoutCancel(ctx), node, metav1.DeleteOptions{})
		})
	}
	spec := *n.agent.Spec.Template.Spec.DeepCopy()
	spec.NodeName, spec.ServiceAccountName = node, account
	spec.Containers[0].SecurityContext = nil // this API server allows none to be privileged
	pod, err := n.core.Pods(n.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + account, Annotations: n.agent.Spec.Template.Annotations}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return n.boundToken(pod, "conjur")
}

// boundToken returns a token as the kubelet would project it into a Pod; without
// audiences it is for the API server. No log may hold it.
func (w *world) boundToken(pod *corev1.Pod, audiences ...string) string {
	w.t.Helper()
	answer, err := w.core.ServiceAccounts(pod.Namespace).CreateToken(w.t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      audiences,
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.values = append(w.values, answer.Status.Token)
	return answer.Status.Token
}

// sidecar is the one of a node's Pod.
type sidecar struct {
	*proctest.Process
	dir string
}

// sidecar starts the container of the example, told that it is on the node.
func (n *nodes) sidecar(node, token string) *sidecar {
	n.t.Helper()
	dir := n.t.TempDir()
	annotations := maps.Clone(n.agent.Spec.Template.Annotations)
	annotations["conjur.org/secrets-refresh-interval"], annotations["conjur.org/removal-grace"] = "1s", "0s"
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "%s=%q\n", key, annotations[key])
	}
	for name, content := range map[string]string{"annotations": text.String(), "token": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	for _, folder := range []string{"secrets", "status"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			n.t.Fatal(err)
		}
	}
	p := spawn(n.t, []string{
		"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "MY_NODE_NAME=" + node, "JWT_TOKEN_PATH=" + filepath.Join(dir, "token"),
		"CONJUR_APPLIANCE_URL=" + n.server.URL, "CONJUR_ACCOUNT=" + n.env["CONJUR_ACCOUNT"], "CONJUR_SSL_CERTIFICATE=" + string(n.server.CA),
		"CONJUR_AUTHN_URL=" + n.server.URL + "/authn-jwt/nodes",
	}, "run", "--annotations", filepath.Join(dir, "annotations"), "--secrets-dir", filepath.Join(dir, "secrets"), "--status-dir", filepath.Join(dir, "status"))
	n.t.Cleanup(func() { n.silent(p) })
	return &sidecar{p, dir}
}

// await waits until a file of the Pod has a value.
func (n *nodes) await(s *sidecar, file, id string) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("the value of %s in %s", id, file), func() bool {
		text, _ := os.ReadFile(filepath.Join(s.dir, "secrets", file))
		return strings.Contains(string(text), n.value[id])
	})
}

// policy loads what syncer node policy prints.
func (n *nodes) policy(flags ...string) {
	n.t.Helper()
	p := spawn(n.t, nil, append([]string{"node", "policy"}, flags...)...)
	p.Exit(0)
	n.server.Policy(p.Log())
}

// TestSecretsOfThreeNodes: each Pod logs in by a token that the API server bound
// to it, and so to its node.
func TestSecretsOfThreeNodes(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	n.policy("--node", "n1", "agent/key")
	n.renew("node/n1/agent/key")
	pods := map[string]*sidecar{}
	for _, node := range []string{"n1", "n2", "n3"} {
		pods[node] = n.sidecar(node, n.pod(node, "agent"))
	}

	// Some nodes have their own, and one Pod has both kinds.
	n.await(pods["n1"], "agent.yaml", "node/n1/agent/key")
	n.await(pods["n2"], "agent.yaml", "agent/key")
	n.await(pods["n3"], "agent.yaml", "agent/key")
	n.await(pods["n1"], "collector.yaml", "agent/collector")

	// Another one gets its own later, in a batch.
	n.policy("--node", "n2", "agent/key")
	n.renew("node/n2/agent/key")
	n.await(pods["n2"], "agent.yaml", "node/n2/agent/key")
	n.await(pods["n3"], "agent.yaml", "agent/key")

	// And one goes.
	n.policy("--remove", "--node", "n1", "agent/key")
	n.await(pods["n1"], "agent.yaml", "agent/key")
	n.await(pods["n2"], "agent.yaml", "node/n2/agent/key")
	for _, pod := range pods {
		pod.Stop()
	}
}

// TestWhoMayReadTheSecretsOfANode: the name only chooses, and the token decides.
func TestWhoMayReadTheSecretsOfANode(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	n.policy("--node", "n1", "agent/key")
	n.renew("node/n1/agent/key")
	token := n.pod("n2", "agent")

	p := n.sidecar("n1", token) // a Pod of another node says that it is on n1
	p.Exit(1)
	if len(p.Lines("MY_NODE_NAME", "token in", "one of the node", "n2")) == 0 {
		t.Errorf("it does not say what is wrong:\n%s", p.Log())
	}
	p = n.sidecar("n1", n.pod("n1", "other")) // another Pod of the node itself
	eventually(t, "a refusal", func() bool { return len(p.Lines("Failing", "401")) > 0 })
	p.Stop()
	p = n.sidecar("n2", token)
	n.await(p, "agent.yaml", "agent/key")
	p.Stop()
}
