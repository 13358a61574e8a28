package deploy_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/proctest"
)

const managed = "conjur.org/managed-by-provider"

// policed is a namespace with a release whose service account was given every
// right to Secrets by somebody, so that only the policy is in its way.
type policed struct {
	name         string
	admin, asked corev1client.SecretInterface // the release's: asked
}

func police(t *testing.T, settings string) policed {
	t.Helper()
	return policeWith(t, conjurWith(settings))
}

// policeWith is police with all values.
func policeWith(t *testing.T, values string) policed {
	t.Helper()
	ns := cluster.Namespace(t)
	deploy.Connect(t, cluster.Config()).Install(t, deploy.Release{Name: "r", Namespace: ns, Values: values})
	cluster.Bind(t, ns, "r", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	secrets := map[string]corev1client.SecretInterface{}
	config := cluster.Config()
	for _, who := range []string{"admin", "release"} {
		client, err := corev1client.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		secrets[who] = client.Secrets(ns)
		config = cluster.ConfigFor(cluster.Token(t, ns, "r"))
	}
	p := policed{ns, secrets["admin"], secrets["release"]}
	p.create(t, "canary", nil)
	proctest.Eventually(t, "the policy is in force", func() bool {
		_, err := p.asked.Patch(t.Context(), "canary", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: []string{"All"}})
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
	return p
}

// create makes a Secret as an administrator.
func (p policed) create(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := p.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"team": "shop"}},
		Data:       map[string][]byte{"conjur-map": []byte("password: app/password"), "password": []byte("old")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// createToken makes a labelled Secret that is for a service account's token.
func (p policed) createToken(t *testing.T, name string) {
	t.Helper()
	_, err := p.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{managed: "true"},
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "r"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// apply is a server-side apply, as Syncer writes.
func (p policed) apply(ctx context.Context, name, body string) error {
	force := true
	body = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `"` + body + `}`
	_, err := p.asked.Patch(ctx, name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "syncer", Force: &force})
	return err
}

func (p policed) merge(ctx context.Context, name, body string) error {
	_, err := p.asked.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

// assertRefused: by the policy, with the words; "" is not refused at all.
func assertRefused(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v, want a refusal with %q", what, err, want)
	}
}

// revision is all that Syncer notes on a Secret.
const revision = `,"annotations":{"` + targets.RevisionAnnotation + `":"7","` + targets.RevisedAnnotation + `":"2026-01-01T00:00:00Z","` +
	targets.FilledAnnotation + `":"7","` + targets.MembersAnnotation + `":"x","` + targets.RotationAnnotation + `":"{}"}}`

func TestPolicyKeepsToLabelledSecrets(t *testing.T) {
	p := police(t, "refresh: {interval: 1m}")
	p.create(t, "labelled", map[string]string{managed: "true", "team": "shop"})
	p.create(t, "unlabelled", nil)
	p.create(t, "unmanaged", map[string]string{managed: "false"})
	p.createToken(t, "token")
	ctx := t.Context()
	if err := p.merge(ctx, "labelled", `{"type":"kubernetes.io/basic-auth"}`); err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("another type: %v, want that it cannot be changed", err)
	}
	for _, c := range []struct{ what, name, patch, want string }{
		{"data, by hand", "labelled", `{"data":{"password":"bmV3"}}`, ""},
		{"revision", "labelled", `{"metadata":{"annotations":{"conjur.org/secret-revision":"8"}}}`, ""},
		{"unlabelled", "unlabelled", `{"data":{"password":"bmV3"}}`, "has no label"},
		{"labelled otherwise", "unmanaged", `{"data":{"password":"bmV3"}}`, "has no label"},
		{"gives the label", "unlabelled", `{"metadata":{"labels":{"` + managed + `":"true"}}}`, "has no label"},
		{"takes the label", "labelled", `{"metadata":{"labels":{"` + managed + `":null}}}`, "labels of a Secret"},
		{"another label", "labelled", `{"metadata":{"labels":{"a":"b"}}}`, "labels of a Secret"},
		{"grants access", "token", `{"data":{"password":"bmV3"}}`, "no Secret of type kubernetes.io/service-account-token"},
		{"new annotation", "labelled", `{"metadata":{"annotations":{"conjur.org/restart-workloads":"deployment/a"}}}`, "annotations of a Secret"},
		{"changed annotation", "labelled", `{"metadata":{"annotations":{"team":"other"}}}`, "annotations of a Secret"},
		{"removed annotation", "labelled", `{"metadata":{"annotations":{"team":null}}}`, "annotations of a Secret"},
		{"map", "labelled", `{"data":{"conjur-map":"YTogYg=="}}`, "conjur-map"},
		{"map removed", "labelled", `{"data":{"conjur-map":null}}`, "conjur-map"},
		{"immutable", "labelled", `{"immutable":true}`, "nothing of a Secret but the data"},
		{"finalizer", "labelled", `{"metadata":{"finalizers":["example.com/a"]}}`, "nothing of a Secret but the data"},
		{"owner", "labelled", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, "nothing of a Secret but the data"},
	} {
		assertRefused(t, c.what, p.merge(ctx, c.name, c.patch), c.want)
	}
	assertRefused(t, "data, applied", p.apply(ctx, "labelled", revision+`,"data":{"password":"bmV3ZXI="}`), "")
	assertRefused(t, "created", p.apply(ctx, "new", revision+`,"data":{"password":"bmV3"}`), "not configured to create")
	assertRefused(t, "deleted", p.asked.Delete(ctx, "labelled", metav1.DeleteOptions{}), "deletes no Secret")
	if _, err := p.admin.Patch(ctx, "unlabelled", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("somebody else: %v", err)
	}
}

func TestPolicyKeepsToListedSecrets(t *testing.T) {
	p := police(t, "kubernetes: {secrets: [listed, {name: made, create: true}, {name: token, create: true}]}")
	p.create(t, "listed", nil)
	p.create(t, "labelled", map[string]string{managed: "true"})
	ctx := t.Context()
	by := `,"labels":{"app.kubernetes.io/managed-by":"syncer"}`
	data := `,"data":{"password":"bmV3"}`
	for _, c := range []struct{ what, name, body, want string }{
		{"listed", "listed", revision + data, ""},
		{"labelled, but not listed", "labelled", revision + data, "not one of those"},
		{"created with a label of its own", "made", `,"labels":{"` + managed + `":"true"}` + revision + data, "labels of a Secret"},
		{"created with an annotation", "made", by + `,"annotations":{"a":"b"}}` + data, "annotations of a Secret"},
		{"created for a service account", "token",
			by + `,"annotations":{"kubernetes.io/service-account.name":"r"}},"type":"kubernetes.io/service-account-token"`, "no Secret of type kubernetes.io/service-account-token"},
		{"created", "made", by + revision + `,"type":"Opaque"` + data, ""},
		{"created, though not to be", "other", by + revision + data, "not one of those"},
	} {
		assertRefused(t, c.what, p.apply(ctx, c.name, c.body), c.want)
	}
	if err := p.admin.Delete(ctx, "listed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	assertRefused(t, "created, though only to be filled", p.apply(ctx, "listed", by+revision+data), "not configured to create")
}

func TestPolicyKeepsToThePullSecretsOfAccounts(t *testing.T) {
	p := police(t, "refresh: {interval: 1m}")
	cluster.Bind(t, p.name, "r", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"*"}})
	release, err := corev1client.NewForConfig(cluster.ConfigFor(cluster.Token(t, p.name, "r")))
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Annotations: map[string]string{"role": "reader"}}}
	if _, err := cluster.Core.ServiceAccounts(p.name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := release.ServiceAccounts(p.name)
	merge := func(ctx context.Context, patch string, dryRun ...string) error {
		_, err := asked.Patch(ctx, "builder", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	proctest.Eventually(t, "the policy is in force", func() bool {
		err := merge(t.Context(), `{"metadata":{"labels":{"a":"b"}}}`, "All")
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
	const only = "nothing of a service account but its pull Secrets"
	for _, c := range []struct{ what, patch, want string }{
		{"put on", `{"imagePullSecrets":[{"name":"registry"}],"metadata":{"annotations":{"` + targets.PullSecretsAnnotation + `":"registry"}}}`, ""},
		{"a role of a cloud", `{"metadata":{"annotations":{"role":"admin"}}}`, only},
		{"a new role", `{"metadata":{"annotations":{"other":"admin"}}}`, only},
		{"no role", `{"metadata":{"annotations":{"role":null}}}`, only},
		{"label", `{"metadata":{"labels":{"a":"b"}}}`, only},
		{"finalizer", `{"metadata":{"finalizers":["example.com/a"]}}`, only},
		{"owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, only},
		{"Secrets", `{"secrets":[{"name":"a"}]}`, only},
		{"token", `{"automountServiceAccountToken":false}`, only},
		{"taken off", `{"imagePullSecrets":null,"metadata":{"annotations":{"` + targets.PullSecretsAnnotation + `":null}}}`, ""},
	} {
		assertRefused(t, c.what, merge(t.Context(), c.patch), c.want)
	}
	account.Name = "new"
	_, err = asked.Create(t.Context(), account, metav1.CreateOptions{})
	assertRefused(t, "created", err, "creates and deletes no service account")
	assertRefused(t, "deleted", asked.Delete(t.Context(), "builder", metav1.DeleteOptions{}), "creates and deletes no service account")
}

// TestListedSecretIsCreatedUnderItsRole: without a right to create any other.
func TestListedSecretIsCreatedUnderItsRole(t *testing.T) {
	ns := cluster.Namespace(t)
	release := deploy.Release{Name: "r", Namespace: ns, Values: conjurWith("kubernetes: {secrets: [listed, {name: made, create: true}]}")}
	deploy.Connect(t, cluster.Config()).Install(t, release)
	config := cluster.ConfigFor(cluster.Token(t, ns, "r"))
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventuallyMay(t, config, ns, "create", "secrets", "made", true)
	p := policed{name: ns, asked: client.Secrets(ns)}
	body := `,"labels":{"app.kubernetes.io/managed-by":"syncer"}` + revision + `,"data":{"password":"bmV3"}`
	if err := p.apply(t.Context(), "made", body); err != nil {
		t.Error(err)
	}
	if err := p.apply(t.Context(), "listed", body); err == nil || !strings.Contains(err.Error(), "cannot create") {
		t.Errorf("another: %v, want that it cannot create it", err)
	}
}
