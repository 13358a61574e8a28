//go:build linux && long

package samples

import (
	"encoding/base64"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
	shared "github.com/secretsync/syncer/test/world"
)

// The images on the node, by the names in the migrated manifests.
const (
	syncerImage = "example/syncer:1"
	appImage    = "example/app:1"
)

// provider is the name of the container that Syncer is put into.
const provider = "cyberark-secrets-provider-for-k8s"

// world is a Conjur server and a namespace, as an operator would prepare them.
type world struct {
	*shared.Conjur
	namespace string
	image     *image
	address   string // of the probes
	node      *pod
}

func newWorld(t testing.TB) *world {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	plane.AllowAnonymousDiscovery(t)
	w := &world{namespace: plane.Namespace(t), image: built.open(t), address: proctest.FreeAddress(t)}
	w.node = &pod{world: w, dir: t.TempDir(), made: map[string]*container{}}
	w.Conjur = shared.New(t, conjurdtest.With(func(o *conjurd.Options) { o.Kubernetes = w.node }))
	w.Server.Policy(w.filled("policy.yml", ""))
	ca, err := conjurd.NewCA()
	w.check(err)
	for id, value := range map[string]string{
		"conjur/authn-k8s/prod/ca/cert": string(ca.Cert), "conjur/authn-k8s/prod/ca/key": string(ca.Key),
		"conjur/authn-jwt/cluster/jwks-uri": plane.JWKSURL(), "conjur/authn-jwt/cluster/ca-cert": string(plane.CA()),
		"conjur/authn-jwt/cluster/issuer": plane.URL(), "conjur/authn-jwt/cluster/audience": "conjur",
		"conjur/authn-jwt/cluster/token-app-property": "sub", "conjur/authn-jwt/cluster/identity-path": "apps",
	} {
		w.Server.Set(id, value)
	}
	w.Renew("shop/db/url", "shop/db/username", "shop/db/password", "shop/tls/key")
	w.Server.Set("shop/tls/key", base64.StdEncoding.EncodeToString([]byte(w.Value["shop/tls/key"])))
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connect returns the settings for the authenticator at the path.
func (w *world) connect(path string) map[string]string {
	return map[string]string{
		"CONJUR_ACCOUNT": conjurdtest.Account, "CONJUR_APPLIANCE_URL": w.Server.URL,
		"CONJUR_AUTHN_URL": w.Server.URL + path, "CONJUR_SSL_CERTIFICATE": string(w.Server.CA),
	}
}

// filled returns a file of testdata whose placeholders are replaced by the values of this
// world.
func (w *world) filled(name, authn string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	w.check(err)
	_, port, err := net.SplitHostPort(w.address)
	w.check(err)
	pairs := []string{"VALUE_OF_NAMESPACE", w.namespace, "SERVER_ADDRESS", w.address, "SERVER_PORT", port}
	for key, value := range w.connect(authn) {
		pairs = append(pairs, "VALUE_OF_"+key, quoted(value))
	}
	return strings.NewReplacer(pairs...).Replace(string(text))
}

// quoted is a text of several lines on one line of YAML.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

// tool runs a command of Syncer outside the cluster.
func (w *world) tool(stdin string, args ...string) (stdout, stderr string, status int) {
	w.Helper()
	cmd := exec.Command(w.image.binary, args...)
	var out, messages strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &messages
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return out.String(), messages.String(), cmd.ProcessState.ExitCode()
}

// manifest returns a sample after migrate.
func (w *world) manifest(sample string) string {
	w.Helper()
	text, messages, status := w.tool(w.filled(sample+".yaml", authenticator(sample)), "migrate", "-f", "-", "--image", syncerImage)
	if status != 0 {
		w.Fatalf("migrate: status %d\n%s", status, messages)
	}
	return text
}

// authenticator is the path of the one that a sample is for.
func authenticator(sample string) string {
	if strings.HasSuffix(sample, "-k8s") {
		return "/authn-k8s/prod"
	}
	return "/authn-jwt/cluster"
}

// deploy creates a manifest's objects, and returns the Pod that a controller
// would make of its workload.
func (w *world) deploy(sample, manifest string) *pod {
	w.Helper()
	_, err := plane.Core.ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "conjur-connect"}, Data: w.connect(authenticator(sample)),
	}, metav1.CreateOptions{})
	w.check(err)
	objects := deploy.Decode(w.TB, []byte(manifest))
	cluster := deploy.Connect(w.TB, plane.Config())
	p := w.node
	for _, o := range objects {
		_, err := cluster.Create(w.Context(), w.namespace, o, false)
		w.check(err)
	}
	plane.Await(w.TB, w.namespace, "shop", deploy.Rules(w.TB, objects, "")...)
	for _, o := range objects {
		template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
		w.check(err)
		if !found {
			continue
		}
		var of corev1.PodTemplateSpec
		w.check(runtime.DefaultUnstructuredConverter.FromUnstructured(template, &of))
		made, err := plane.Core.Pods(w.namespace).Create(w.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-1", Labels: of.Labels, Annotations: of.Annotations}, Spec: of.Spec,
		}, metav1.CreateOptions{})
		w.check(err)
		p.name, p.annotations, p.spec = made.Name, made.Annotations, made.Spec
		p.owners = []string{strings.ToLower(o.GetKind()) + "/" + o.GetName()}
	}
	return p
}

// readSecret returns the data of a Secret.
func (w *world) readSecret(name string) map[string][]byte {
	w.Helper()
	s, err := plane.Core.Secrets(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.check(err)
	return maps.Clone(s.Data)
}
