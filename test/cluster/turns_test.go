package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/kubetest"
)

// TestMissingAccountsDelayNoOtherNamespace: mallory's Secrets name thousands of missing
// service accounts. Alice's accounts take turns with them instead of waiting for all of
// them.
func TestMissingAccountsDelayNoOtherNamespace(t *testing.T) {
	t.Parallel()
	const secrets, each = 160, 50 // the most that one Secret may name
	w := newWorld(t)
	w.Variables("registry")
	w.Server.Set("registry", dockerConfig)
	mallory := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + mallory
	pulls := func(namespace, name, prefix string, n int) {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("%s-%d", prefix, i))
		}
		w.secretIn(namespace, name, map[string]string{".dockerconfigjson": "registry"}, func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeDockerConfigJson
			s.Annotations["conjur.org/pull-secret-for"] = strings.Join(names, ",")
			s.Data[corev1.DockerConfigJsonKey] = []byte("{}")
		})
	}
	for i := range secrets {
		pulls(mallory, fmt.Sprintf("bad-%d", i), fmt.Sprintf("absent-%d", i), each)
	}
	pulls(mallory, "beyond", "beyond", 20_000)
	looks := func() []kubetest.Call {
		return plane.Calls(t, kubetest.ByUser(w.user()), func(c kubetest.Call) bool { return c.Resource == "serviceaccounts" && c.Verb == "get" })
	}
	p := w.start()
	w.awaitAll([]string{mallory}, func(data map[string][]byte, name string) bool { // so that each account is due
		return name == "beyond" || string(data[corev1.DockerConfigJsonKey]) == dockerConfig
	})
	pulls(w.namespace, "alice", "builder", each)
	var all []kubetest.Call
	ofAlice := func(c kubetest.Call) bool { return c.Namespace == w.namespace }
	eventually(t, "a look at each of alice's accounts", func() bool {
		all = looks()
		n := 0
		for _, c := range all {
			if ofAlice(c) {
				n++
			}
		}
		return n >= each
	})
	eventually(t, "an Event that names the limit", func() bool { return w.said(mallory, "may list 50") })
	p.Stop()

	first := slices.IndexFunc(all, ofAlice)
	last := first
	before := map[string]bool{} // of mallory's
	for i, c := range all {
		if ofAlice(c) {
			last = i
		}
	}
	for _, c := range all[:last] {
		if !ofAlice(c) {
			before[c.Name] = true
		}
	}
	t.Logf("%d of mallory's %d accounts were looked at before the last of alice's %d; %d looks from her first to her last", len(before), secrets*each, each, last-first+1)
	if len(before) == secrets*each {
		t.Error("alice's accounts came after mallory's")
	}
	if last-first > 3*each {
		t.Errorf("%d looks from the first to the last of alice's %d", last-first+1, each)
	}
	if before["beyond-0"] {
		t.Error("a Secret beyond the limit is not refused")
	}
}

// said reports whether an Event in a namespace holds a text.
func (w *world) said(namespace, text string) bool {
	w.Helper()
	list, err := plane.Core.Events(namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, text) })
}
