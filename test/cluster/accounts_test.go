package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// account makes a service account with a pull Secret of somebody else.
func (w *world) account(name string) {
	w.Helper()
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}
	if _, err := plane.Core.ServiceAccounts(w.namespace).Create(w.Context(), a, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// awaitPulls waits until a service account names these Secrets.
func (w *world) awaitPulls(account string, want ...string) {
	w.Helper()
	eventually(w, fmt.Sprintf("the pull Secrets %q on %s", want, account), func() bool {
		a, err := plane.Core.ServiceAccounts(w.namespace).Get(w.Context(), account, metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		var got []string
		for _, r := range a.ImagePullSecrets {
			got = append(got, r.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// pulls makes a labelled Secret for service accounts.
func (w *world) pulls(name, accounts string) {
	w.Helper()
	w.secret(name, map[string]string{".dockerconfigjson": "registry"}, func(s *corev1.Secret) {
		s.Type = corev1.SecretTypeDockerConfigJson
		s.Annotations["conjur.org/pull-secret-for"] = accounts
		s.Data[corev1.DockerConfigJsonKey] = []byte("{}")
	})
}

const dockerConfig = `{"auths":{"registry.test":{"auth":"dTpw"}}}`

func TestServiceAccountsNameTheirPullSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("registry")
	w.Server.Set("registry", dockerConfig)
	w.account("builder")
	w.account("runner")
	w.pulls("one", "builder, runner")
	w.pulls("two", "builder")
	p := w.start()
	w.awaitData("one", map[string]string{".dockerconfigjson": dockerConfig})
	w.awaitPulls("builder", "one", "theirs", "two")
	w.awaitPulls("runner", "one", "theirs")

	w.edit("one", func(s *corev1.Secret) { s.Annotations["conjur.org/pull-secret-for"] = "builder" })
	w.awaitPulls("runner", "theirs")
	w.label("one", "false")
	w.awaitPulls("builder", "theirs", "two")
	w.label("one", "true")
	w.awaitPulls("builder", "one", "theirs", "two")

	p.Stop() // a process that ends removes no entry, and the next one continues
	w.awaitPulls("builder", "one", "theirs", "two")
	w.moveAddress()
	w.edit("one", func(s *corev1.Secret) { delete(s.Annotations, "conjur.org/pull-secret-for") })
	w.start()
	w.awaitPulls("builder", "theirs", "two")
	if err := plane.Core.Secrets(w.namespace).Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitPulls("builder", "theirs")
}

func TestAListedSecretIsMadeForServiceAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grant(append(slices.Clone(rights(t)), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}))
	w.Variables("registry")
	w.Server.Set("registry", dockerConfig)
	w.account("builder")
	listed := "kubernetes: {secrets: [{name: registry, create: true, type: kubernetes.io/dockerconfigjson, map: {.dockerconfigjson: registry}%s}]}"
	w.settings = append(w.settings, fmt.Sprintf(listed, ", pullSecretFor: [builder, missing]"))
	w.start()
	w.awaitData("registry", map[string]string{".dockerconfigjson": dockerConfig})
	w.awaitPulls("builder", "registry", "theirs")
	eventually(t, "an Event that names the missing account", func() bool {
		return strings.Contains(strings.Join(w.events("registry", "PullSecretFailed"), "\n"), `no service account missing in`)
	})
	w.settings[len(w.settings)-1] = fmt.Sprintf(listed, "")
	w.configure()
	w.awaitPulls("builder", "theirs")
}

// TestPullSecretsThatCannotBe: each impossible entry is named, and all others are delivered.
func TestPullSecretsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as("less", slices.DeleteFunc(slices.Clone(rights(t)), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "serviceaccounts") }))
	w.Variables("registry")
	w.Server.Set("registry", dockerConfig)
	w.account("builder")
	w.pulls("denied", "builder")
	w.secret("opaque", map[string]string{"a": "registry"}, func(s *corev1.Secret) {
		s.Annotations["conjur.org/pull-secret-for"] = "builder, No_Name"
	})
	w.start()
	w.awaitData("denied", map[string]string{".dockerconfigjson": dockerConfig})
	w.awaitData("opaque", map[string]string{"a": dockerConfig})
	says := func(name, reason string, texts ...string) func() bool {
		return func() bool {
			all := strings.Join(w.events(name, reason), "\n")
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(all, text) })
		}
	}
	eventually(t, "an Event that names the right", says("denied", "PullSecretFailed", "must grant the verbs get and patch for serviceaccounts"))
	eventually(t, "an Event about the type and the name", says("opaque", "InvalidDefinition", `type "Opaque"`, `"No_Name" is not a service account`))
	w.awaitPulls("builder", "theirs")
}
