//go:build node

package node

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKeysRotateWhenEachPodHasThem: a standalone asks the sidecars of two Pods.
// One answers for the files that it wrote; the other for what its application
// has noted, and holds the rotation up until that is the new key.
func TestKeysRotateWhenEachPodHasThem(t *testing.T) {
	t.Parallel()
	const steers = `
- !permit
  role: !host "apps/system:serviceaccount:VALUE_OF_NAMESPACE:syncer"
  privileges: [ update ]
  resources: [ !variable shop/jwt, !variable shop/jwt/control ]
`
	w := newWorldWith(t, policy(map[string]string{"shop/jwt": "", "shop/jwt/control": ""})+steers, nil)
	w.release(map[string]any{"config": map[string]any{"rotation": map[string]any{
		"interval": "1s", "sets": []any{map[string]any{
			"set": "shop/jwt", "namespace": w.namespace, "generate": map[string]any{"random": 32}, "keep": "1s",
			"confirm": map[string]any{"ask": "deployment/shop:8080/keys"},
		}},
	}}})
	pods := w.keyPods()
	quiet, notes := pods[0], pods[1]
	first := quiet.primary()
	note := func(ids, primary string) {
		t.Helper()
		text := fmt.Sprintf(`{"shop/jwt":{"ids":[%s],"primary":"%s"}}`, ids, primary)
		if out, err := notes.exec("app", "/bin/sh", "-c", "echo '"+text+"' >"+statusDir+".keys && mv "+statusDir+".keys "+statusDir+"KEYS_SEEN"); err != nil {
			t.Fatal(err, out)
		}
	}
	note(`"`+first+`"`, first)
	w.administrator()("rotate", "now", "shop/jwt")
	var second string
	w.eventually("a second key in each Pod", func() bool {
		second = quiet.secondary()
		return second != "" && notes.secondary() == second
	})
	standalone := w.podOf("app.kubernetes.io/name=syncer")
	standalone.awaitLog("syncer", "1 of 2 Pods of deployment/shop ("+notes.name+": does not have "+second)
	if primary := quiet.primary(); primary != first {
		t.Errorf("%s is the primary, which an application does not have", primary)
	}
	note(`"`+first+`","`+second+`"`, first)
	w.eventually("the second key is the primary", func() bool { return quiet.primary() == second && notes.primary() == second })
	standalone.awaitLog("syncer", "1 of 2 Pods of deployment/shop ("+notes.name+": still uses "+first)
	note(`"`+first+`","`+second+`"`, second)
	w.eventually("the first key is gone", func() bool { return quiet.secondary() == "" && notes.secondary() == "" })
	for _, p := range pods {
		if n := p.restarts("syncer"); n != 0 {
			t.Errorf("Syncer was restarted:\n%s", p.described(t.Context()))
		}
	}
}

// keyPods are two Pods of a Deployment, whose sidecars deliver the set shop/jwt
// and say what they have delivered.
func (w *world) keyPods() (pods []*pod) {
	w.t.Helper()
	p := w.documented(map[string]string{
		"conjur.org/secrets-destination": "file", "conjur.org/secrets-refresh-interval": "1s", "conjur.org/server-address": ":8080",
		"conjur.org/conjur-secrets.keys": `- "*": {keys: shop/jwt}`, "conjur.org/secret-file-format.keys": "directory",
	}, "run")
	withShell(p)
	p.Spec.Containers[0].SecurityContext.RunAsUser = new(int64(777)) // it writes to the status folder
	p.Labels = map[string]string{"app": "shop"}
	_, err := client.AppsV1().Deployments(w.namespace).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec},
		},
	}, metav1.CreateOptions{})
	w.check(err)
	w.eventually("two Pods", func() bool {
		list, err := client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=shop"})
		w.check(err)
		pods = nil
		for _, found := range list.Items {
			pods = append(pods, &pod{world: w, name: found.Name})
		}
		return len(pods) == 2
	})
	for _, p := range pods {
		p.ready()
	}
	return pods
}

// primary and secondary are the ids of the keys in a Pod's folder.
func (p *pod) primary() string   { return p.key(".key.primary") }
func (p *pod) secondary() string { return p.key(".key") }

func (p *pod) key(suffix string) string {
	p.t.Helper()
	out, err := p.exec("app", "/bin/ls", secretsDir+"keys")
	if err != nil {
		p.t.Fatal(err, out)
	}
	for _, name := range strings.Fields(out) {
		if id, found := strings.CutSuffix(name, suffix); found {
			return id
		}
	}
	return ""
}
