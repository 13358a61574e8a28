package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
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
	w.Server.Policy(strings.ReplaceAll(string(text), "namespace: agents", "namespace: "+w.namespace))
	for name, value := range map[string]string{
		"jwks-uri": plane.JWKSURL(), "ca-cert": string(plane.CA()), "issuer": plane.URL(), "audience": "conjur",
		"token-app-property": "kubernetes.io/node/name", "identity-path": "nodes",
	} {
		w.Server.Set("conjur/authn-jwt/nodes/"+name, value)
	}
	w.Renew("agent/key")
	w.Renew("agent/collector")
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
	n.Helper()
	ctx := n.Context()
	name := n.namespace + "-" + node // nodes are everybody's
	_, err := plane.Core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err == nil {
		n.Cleanup(func() {
			_ = plane.Core.Nodes().Delete(context.WithoutCancel(ctx), node, metav1.DeleteOptions{})
		})
	}
	spec := *n.agent.Spec.Template.Spec.DeepCopy()
	spec.NodeName, spec.ServiceAccountName = node, account
	spec.Containers[0].SecurityContext = nil // this API server allows none to be privileged
	pod, err := plane.Core.Pods(n.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + account, Annotations: n.agent.Spec.Template.Annotations}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return n.boundToken(pod, "conjur")
}

// boundToken returns a token as the kubelet would project it into a Pod; without
// audiences it is for the API server. No log may hold it.
func (w *world) boundToken(pod *corev1.Pod, audiences ...string) string {
	w.Helper()
	answer, err := plane.Core.ServiceAccounts(pod.Namespace).CreateToken(w.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      audiences,
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Canaries = append(w.Canaries, answer.Status.Token)
	return answer.Status.Token
}

// sidecar is the one of a node's Pod.
type sidecar struct {
	*proctest.Process
	*shared.Pod
}

// sidecar starts the container of the example, told that it is on the node.
func (n *nodes) sidecar(node, token string) *sidecar {
	n.Helper()
	annotations := map[string]string{}
	for key, value := range n.agent.Spec.Template.Annotations {
		annotations[strings.TrimPrefix(key, "conjur.org/")] = value
	}
	annotations["secrets-refresh-interval"], annotations["removal-grace"] = "1s", "0s"
	pod := n.Pod(annotations)
	pod.Annotate()
	shared.Replace(n, pod.Path("token"), token)
	p := n.Spawn(binary, []string{
		"TMPDIR=" + pod.Path("tmp"), "PATH=" + os.Getenv("PATH"), "MY_NODE_NAME=" + node, "JWT_TOKEN_PATH=" + pod.Path("token"),
		"CONJUR_APPLIANCE_URL=" + n.Server.URL, "CONJUR_ACCOUNT=" + n.Server.Account, "CONJUR_SSL_CERTIFICATE=" + string(n.Server.CA),
		"CONJUR_AUTHN_URL=" + n.Server.URL + "/authn-jwt/nodes",
	}, append([]string{"run"}, pod.Flags()...)...)
	return &sidecar{p, pod}
}

// await waits until a file of the Pod has a value.
func (n *nodes) await(s *sidecar, file, id string) {
	n.Helper()
	eventually(n, fmt.Sprintf("the value of %s in %s", id, file), func() bool {
		text, _ := os.ReadFile(filepath.Join(s.Dir, "secrets", file))
		return strings.Contains(string(text), n.Value[id])
	})
}

// policy loads what syncer node policy prints.
func (n *nodes) policy(flags ...string) {
	n.Helper()
	p := proctest.Spawn(n, binary, nil, append([]string{"node", "policy"}, flags...)...)
	p.Exit(0)
	n.Server.Policy(p.Log())
}

// TestSecretsOfThreeNodes: each Pod logs in by a token that the API server bound
// to it, and so to its node.
func TestSecretsOfThreeNodes(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	n.policy("--node", "n1", "agent/key")
	n.Renew("node/n1/agent/key")
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
	n.Renew("node/n2/agent/key")
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
	n.Renew("node/n1/agent/key")
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
