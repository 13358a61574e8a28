package kubetest_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	admissionv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/secretsync/syncer/test/proctest"
)

func core(t *testing.T, config *rest.Config) *corev1client.CoreV1Client {
	t.Helper()
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAdministratorMayDoEverything(t *testing.T) {
	fromFile, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*rest.Config{cluster.Config(), fromFile} {
		if _, err := core(t, config).Secrets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigIsACopy(t *testing.T) {
	cluster.Config().Host = "https://192.0.2.1"
	if strings.Contains(cluster.URL(), "192.0.2.1") {
		t.Error("changing a Config changed the control plane's")
	}
}

func TestVersion(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.") || version.Major != "1" || version.Minor == "" {
		t.Errorf("version %+v; the build did not set it", version)
	}
}

func TestNamespacesAreNew(t *testing.T) {
	a, b := cluster.Namespace(t), cluster.Namespace(t)
	if a == b || !strings.HasPrefix(a, "testnamespacesarenew-") {
		t.Errorf("namespaces %q and %q", a, b)
	}
}

// Admission runs: a policy is looked at before the object is stored.
func TestAdmissionPolicy(t *testing.T) {
	ns := cluster.Namespace(t)
	client, err := admissionv1client.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "none here"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps := core(t, cluster.Config()).ConfigMaps(ns)
	proctest.EventuallyNoError(t, "the policy", func() error { // takes effect a little later
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, metav1.CreateOptions{})
		if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "none here") {
			return nil
		}
		return errNotYet(err)
	})
}
