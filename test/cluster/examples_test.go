package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/deploy"
	shared "github.com/secretsync/syncer/test/world"
)

// policyLine is a line of the policy in the first comment of an example, as the README of
// the examples takes it out.
var policyLine = regexp.MustCompile(`(?m)^#   ([- ] .*\n)`)

// TestExamplesDeliver takes examples as they are, with their policies, rights and
// authn-jwt. Only the namespace, the addresses and the folders are those of the test.
func TestExamplesDeliver(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"job.yaml", "sidecar.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := &world{Conjur: shared.New(t, conjurdtest.With(func(o *conjurd.Options) { o.Account = "example" })), namespace: plane.Namespace(t)}
			pod, p := w.example(file)
			w.Renew("apps/shop/db-user", "apps/shop/db-password")
			syncer := append(pod.Spec.InitContainers, pod.Spec.Containers...)[0]
			process := p.Spawn(binary, w.containerEnv(p, pod.Spec.ServiceAccountName, syncer), p.Flags()...)
			user, password := w.Value["apps/shop/db-user"], w.Value["apps/shop/db-password"]
			if syncer.RestartPolicy == nil {
				process.Exit(0)
				w.awaitData("database", map[string]string{"user": user, "password": password})
				return
			}
			eventually(t, "the file", func() bool {
				text, _ := os.ReadFile(p.Path("secrets", "db.yaml"))
				return string(text) == "\"user\": \""+user+"\"\n\"password\": \""+password+"\""
			})
			process.Stop()
		})
	}
}

// example loads the policies of an example, creates its objects, and returns the Pod of its
// workload, and the folders of that.
func (w *world) example(file string) (*corev1.Pod, *shared.Pod) {
	w.Helper()
	plane.AllowAnonymousDiscovery(w)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../deploy/examples", name))
		if err != nil {
			w.Fatal(err)
		}
		return strings.NewReplacer("namespace: shop", "namespace: "+w.namespace, "serviceaccount:shop:", "serviceaccount:"+w.namespace+":").Replace(string(text))
	}
	w.Server.Policy(read("authn-jwt.yml") + "  - !variable ca-cert\n") // that of the issuer is private
	for name, value := range map[string]string{"jwks-uri": plane.JWKSURL(), "ca-cert": string(plane.CA()), "issuer": plane.URL(), "audience": "conjur", "token-app-property": "sub"} {
		w.Server.Set("conjur/authn-jwt/my-cluster/"+name, value)
	}
	text, policy := read(file), ""
	for _, m := range policyLine.FindAllStringSubmatch(text, -1) {
		policy += m[1]
	}
	w.Server.Policy(policy)
	objects, pod := deploy.Connect(w, plane.Config()), &corev1.Pod{}
	for _, o := range deploy.Decode(w, []byte(text)) {
		made, err := objects.Create(w.Context(), "", o, false)
		if err != nil {
			w.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if spec, ok := made.Object["spec"].(map[string]any); ok && spec["template"] != nil {
			template, _ := json.Marshal(spec["template"])
			if err := json.Unmarshal(template, pod); err != nil {
				w.Fatal(err)
			}
		}
	}
	p := w.Pod(map[string]string{})
	for key, value := range pod.Annotations {
		p.Annotations[strings.TrimPrefix(key, "conjur.org/")] = value
	}
	p.Annotate()
	return pod, p
}

// containerEnv writes what the volumes of a container hold, and returns its environment.
func (w *world) containerEnv(p *shared.Pod, account string, c corev1.Container) []string {
	w.Helper()
	shared.Replace(w, p.Path("token"), plane.Token(w, w.namespace, account, "conjur"))
	shared.Replace(w, p.Path("ca.crt"), string(w.Server.CA))
	there := strings.NewReplacer("https://conjur.example.com", w.Server.URL, "/var/run/secrets/conjur/token", p.Path("token"), "/etc/conjur/ssl/ca.crt", p.Path("ca.crt"))
	w.Env = map[string]string{"KUBECONFIG": plane.KubeconfigFor(w, plane.Token(w, w.namespace, account))}
	for _, e := range c.Env {
		w.Env[e.Name] = there.Replace(e.Value)
		if e.ValueFrom != nil {
			w.Env[e.Name] = w.namespace
		}
	}
	return w.Environ()
}
