//go:build long

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/world"
)

// chartValues are those of a release whose Secrets may refer to templates.
const chartValues = `
config: {conjur: {applianceUrl: "https://conjur.test", account: soak, authnUrl: "https://conjur.test/authn-jwt/soak"}}
access: {configMaps: ["*"]}
`

// cluster is a namespace with labeled Secrets, which a standalone process fills. Each Secret
// also has a key that belongs to its owner.
type cluster struct {
	*conjur
	namespace string
	secrets   map[string][]place // by the Secret's name; a place is a key of its data
}

const (
	theirs = "theirs" // a key of each Secret that Syncer has nothing to do with
	layout = "layout" // the ConfigMap of the templates
)

func newCluster(t testing.TB, c *conjur) *cluster {
	t.Helper()
	k := &cluster{conjur: c, namespace: plane.Namespace(t), secrets: map[string][]place{
		"guest": {{"guest", []string{"guest/one"}, "%s", true}, {"token", []string{"token"}, "%s", true}},
		"url":   {{"url", []string{"db/user", "db/password"}, "EDIT db://%s:%s@EDIT", true}},
		"mixed": {{"user", []string{"db/user"}, "%s", true}, {"two", []string{"guest/two"}, "%s", true}},
	}}
	c.add("db/user", "db/password", "token", "guest/one", "guest/two")
	for i := range 5 {
		id := fmt.Sprintf("plain/%d", i)
		k.add(id)
		k.secrets[fmt.Sprintf("plain%d", i)] = []place{{"value", []string{id}, "%s", true}, {"token", []string{"token"}, "%s", true}}
	}
	plane.Bind(t, k.namespace, "syncer", deploy.Release{Values: chartValues}.Rules(t, "syncer")...)
	k.template()
	for _, name := range slices.Sorted(maps.Keys(k.secrets)) {
		k.create(name)
	}
	return k
}

// start starts the process.
func (k *cluster) start(address string, life time.Duration) *proctest.Process {
	k.Helper()
	world.Replace(k, k.Path("config.yaml"), fmt.Sprintf("refresh: {interval: 1s}\nremoval: {grace: 1s}\nserver: {address: %q}\n", address))
	maps.Copy(k.Env, map[string]string{
		"MY_POD_NAMESPACE": k.namespace, "KUBECONFIG": plane.KubeconfigFor(k, k.token(life+time.Hour)),
		"SECRETS_DESTINATION": "k8s_secrets", "CONTAINER_MODE": "standalone", "NAMESPACE_ALLOWLIST": k.namespace,
	})
	return k.Spawn(binary, k.Environ(), append([]string{"run", "--config", k.Path("config.yaml")}, k.Flags()...)...)
}

// token returns a token of the process's service account. It is valid for the life of the
// process, because the process reads its file once.
func (k *cluster) token(life time.Duration) string {
	k.Helper()
	plane.Token(k.TB, k.namespace, "syncer") // makes the account
	seconds := int64(life / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := plane.Core.ServiceAccounts(k.namespace).CreateToken(k.Context(), "syncer", request, metav1.CreateOptions{})
	if err != nil {
		k.Fatal(err)
	}
	return answer.Status.Token
}

// template edits the template of the Secret "url".
func (k *cluster) template() {
	k.Helper()
	text := strings.ReplaceAll(`EDIT db://{{ secret "user" }}:{{ secret "password" }}@EDIT`, editMark, strconv.Itoa(k.edit()))
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: layout}, Data: map[string]string{"url": text}}
	maps := plane.Core.ConfigMaps(k.namespace)
	_, err := maps.Update(k.Context(), m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(k.Context(), m, metav1.CreateOptions{})
	}
	if err != nil {
		k.Fatal(err)
	}
}

// create makes a Secret that asks to be filled; it may be there already.
func (k *cluster) create(name string) {
	k.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"conjur.org/managed-by-provider": "true"}, Annotations: map[string]string{}},
		Data:       map[string][]byte{theirs: []byte(theirs)},
	}
	var conjurMap strings.Builder
	for _, p := range k.secrets[name] {
		if len(p.ids) == 1 {
			fmt.Fprintf(&conjurMap, "%q: %q\n", p.name, p.ids[0])
			continue
		}
		s.Annotations["conjur.org/conjur-secrets."+p.name] = fmt.Sprintf("- user: %q\n- password: %q\n", p.ids[0], p.ids[1])
		s.Annotations["conjur.org/secret-file-template-configmap."+p.name] = layout + "/url"
	}
	if conjurMap.Len() > 0 {
		s.Data["conjur-map"] = []byte(conjurMap.String())
	}
	if _, err := plane.Core.Secrets(k.namespace).Create(k.Context(), s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		k.Fatal(err)
	}
}

// remove deletes a Secret.
func (k *cluster) remove(name string) {
	k.Helper()
	if err := plane.Core.Secrets(k.namespace).Delete(k.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		k.Fatal(err)
	}
}

// strip takes a key out of a Secret, as somebody with kubectl would.
func (k *cluster) strip(name string) {
	k.Helper()
	patch := fmt.Appendf(nil, `{"data":{%q:null}}`, pick(k.random, k.secrets[name]).name)
	_, err := plane.Core.Secrets(k.namespace).Patch(k.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		k.Fatal(err)
	}
}

// some is the name of a Secret.
func (k *cluster) some() string { return pick(k.random, slices.Sorted(maps.Keys(k.secrets))) }

// settle ends all faults, and waits until each Secret matches Conjur. Sometimes the API
// server stops and starts before that.
func (k *cluster) settle(season int) {
	k.Helper()
	if season%4 == 0 {
		plane.StopAPIServer(k.TB)
		k.rotate(k.any())
		plane.StartAPIServer(k.TB)
	}
	k.template()
	for _, name := range slices.Sorted(maps.Keys(k.secrets)) {
		k.create(name)
	}
	k.revoke("guest/one", false)
	proctest.EventuallyNoError(k.TB, "what was revoked removed", func() error {
		all, err := k.list()
		if _, ok := all["guest"]["guest"]; ok {
			return fmt.Errorf("the Secret %q has the key %q", "guest", "guest")
		}
		return err
	})
	k.restore(guests...)
	proctest.EventuallyNoError(k.TB, "each Secret as Conjur has it", k.current)
}

// list gives the data of all Secrets, by their names.
func (k *cluster) list() (map[string]map[string][]byte, error) {
	list, err := plane.Core.Secrets(k.namespace).List(context.WithoutCancel(k.Context()), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]map[string][]byte{}
	for _, s := range list.Items {
		all[s.Name] = s.Data
	}
	return all, nil
}

// current returns an error that names a Secret that differs from Conjur.
func (k *cluster) current() error {
	all, err := k.list()
	if err != nil {
		return err
	}
	for name, places := range k.secrets {
		data := all[name]
		delete(data, "conjur-map")
		if len(data) != len(places)+1 || string(data[theirs]) != theirs {
			return fmt.Errorf("the Secret %s has the keys %q", name, slices.Sorted(maps.Keys(data)))
		}
		for _, p := range places {
			if string(data[p.name]) != k.due(p) {
				return fmt.Errorf("the key %q of the Secret %s is not up to date", p.name, name)
			}
		}
	}
	if len(all) != len(k.secrets) {
		return fmt.Errorf("there are %d Secrets, want %d", len(all), len(k.secrets))
	}
	return nil
}

// read reads the Secrets continuously until the returned function is called. It fails the
// test if a Secret contains a value that Conjur never had.
func (k *cluster) read() (end func()) {
	stopping := make(chan struct{})
	var reads int
	var ended sync.WaitGroup
	ended.Go(func() {
		looks := time.NewTicker(300 * time.Millisecond)
		defer looks.Stop()
		for {
			select {
			case <-stopping:
				return
			case <-looks.C:
			}
			all, err := k.list()
			if err != nil {
				continue // the API server is away
			}
			reads++
			if err := k.look(all); err != nil {
				k.Error(err)
				return
			}
		}
	})
	end = sync.OnceFunc(func() { close(stopping); ended.Wait(); k.Logf("%d reads", reads) })
	k.Cleanup(end)
	return end
}

func (k *cluster) look(all map[string]map[string][]byte) error {
	for name, places := range k.secrets {
		for _, p := range places {
			if content, ok := all[name][p.name]; ok {
				if err := k.reader(p).check(string(content)); err != nil {
					return fmt.Errorf("secret %s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	d, random := length(t), seeded(t)
	k, address := newCluster(t, newConjur(t, random)), proctest.FreeAddress(t)
	process := k.start(address, d)
	proctest.EventuallyNoError(t, "the first delivery", k.current)
	samples, endReads := observe(t, process, address), k.read()

	s := &schedule{c: k.conjur, calm: k.settle}
	s.actions = []action{
		{"nothing", 40, func() {}},
		{"a value", 20, func() { k.rotate(k.any()) }},
		{"values together", 3, func() { k.rotate("db/user", "db/password") }},
		{"template edited", 5, k.template},
		// Seldom: what was said of a Secret in Events is kept, so that they can
		// be folded, up to client-go's bound of some thousand objects. A new
		// Secret of the name is another object, of 1.5 KiB there. The Secret with
		// a template stays, as the watch of its ConfigMap is ten goroutines.
		{"Secret deleted", 1, func() {
			if name := k.some(); name != "url" {
				k.remove(name)
			}
		}},
		{"Secret made", 8, func() { k.create(k.some()) }},
		{"key deleted", 5, func() { k.strip(k.some()) }},
		{"revoked", 4, func() { k.revoke(pick(random, guests), false) }},
		{"variable deleted", 2, func() { k.revoke(pick(random, guests), true) }},
		{"restored", 3, func() { k.restore(pick(random, guests)) }},
		{"outage", 5, s.breakDown},
	}
	s.run(d)
	samples.conclude(process, endReads, k.current)
}
