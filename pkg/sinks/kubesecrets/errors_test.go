package kubesecrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/test/proctest"
)

const canary = "canary-Zx41"

// expectSilent checks that an error tells nothing of the canary, however it
// is printed or taken apart.
func expectSilent(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		text := fmt.Sprintf("%v %+v %#v", err, err, err)
		if strings.Contains(text, canary) || strings.Contains(text, encode(canary)) {
			t.Errorf("the error %T tells the value: %s", err, text)
		}
	}
}

// quoting are answers that quote what they can, in every place that there is.
func quoting(code int) map[string]string {
	said := `"` + canary + " " + encode(canary) + `"`
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":%s,"reason":%s,` +
		`"details":{"name":%[3]s,"kind":%[3]s,"causes":[{"field":%[3]s,"message":%[3]s,"reason":%[3]s},{"field":"data[a]","message":%[3]s}]}}`
	return map[string]string{
		"application/json":     fmt.Sprintf(status, code, said, said),
		"application/json;x=y": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","creationTimestamp":` + said + `}}`,
		"text/plain":           canary + " " + encode(canary),
		"text/html":            "<p>admission webhook " + said + " denied the request: " + canary,
	}
}

// No error passes on what an answer quotes; and none is for good, as what is
// answered may be said by a policy that is amended later.
func TestErrorsQuoteNothing(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1", "b", "2")
	target := k.target("s", "a", "b")
	for _, code := range []int{200, 201, 301, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504} {
		for contentType, body := range quoting(code) {
			for _, method := range []string{http.MethodGet, http.MethodPatch} {
				k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
					if r.Method != method {
						return next.RoundTrip(r)
					}
					return answer(r, code, contentType, body), nil
				}
				err := k.sink.Apply(t.Context(), target, setAll("a", canary))
				expectSilent(t, err)
				_, isRefused := errors.AsType[*sinks.RefusedError](err)
				if err == nil || isRefused || isMissing(err) {
					t.Errorf("%s answered by %d as %s gives %T: %v", method, code, contentType, err, err)
				}
			}
		}
	}
	k.expectData(t, "s", map[string]string{"a": "1", "b": "2"})
}

// What an operator can act on is told: the code, the fields, who denied it,
// and whether it is worth another attempt.
func TestErrorsTell(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	cases := []struct {
		status metav1.Status
		want   string
		is     func(error) bool
	}{
		{metav1.Status{Code: 401, Reason: metav1.StatusReasonUnauthorized}, "401 Unauthorized: it does not accept the credentials", apierrors.IsUnauthorized},
		{metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "a.example.org" denied the request: no`}, `403 Forbidden: denied by admission webhook "a.example.org"`, apierrors.IsForbidden},
		{metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `exceeded quota: q, requested: secrets=1`}, "a quota of the namespace", apierrors.IsForbidden},
		{metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 7}}, "429 Too Many Requests", func(err error) bool {
			seconds, ok := apierrors.SuggestsClientDelay(err)
			return ok && seconds == 7
		}},
		{metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError}, "500 Internal Server Error", apierrors.IsInternalError},
		{metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable}, "503 Service Unavailable", apierrors.IsServiceUnavailable},
		{metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "data[a]"}, {Field: "data[b]"}, {Field: "type"}}}}, "it does not take data, type", apierrors.IsInvalid},
	}
	for _, c := range cases {
		c.status.TypeMeta, c.status.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
		body, err := json.Marshal(c.status)
		must(t, err)
		k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return next.RoundTrip(r)
			}
			return answer(r, int(c.status.Code), "application/json", string(body)), nil
		}
		err = k.sink.Apply(t.Context(), k.target("s", "a"), setAll("a", canary))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "secret/"+k.ns+"/s: ") || !c.is(err) {
			t.Errorf("the error is %v, want %q in it", err, c.want)
		}
	}
}

// deny has the cluster deny all writes of Secrets in the namespace, and quote
// the value of a in doing so. It takes effect a little later.
func (k *kube) deny(t *testing.T) {
	t.Helper()
	admission, err := admissionv1client.NewForConfig(cluster.Config())
	must(t, err)
	fail, writes := admissionv1.Fail, admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
	}
	_, err = admission.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: k.ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: writes}}},
			Validations:      []admissionv1.Validation{{Expression: "false", MessageExpression: "'seen ' + object.data['a']"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": k.ns}}
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: k.ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        k.ns,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources:    &admissionv1.MatchResources{NamespaceSelector: here},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

// permit takes the denial back.
func (k *kube) permit(t *testing.T) {
	t.Helper()
	admission, err := admissionv1client.NewForConfig(cluster.Config())
	must(t, err)
	must(t, admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), k.ns, metav1.DeleteOptions{}))
}

// A policy of the cluster denies the write, and quotes the value. When it no
// longer does, the very same write is made.
func TestPolicyDenies(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	k.deny(t)
	n := 0
	write := func() error {
		n++
		return k.sink.Apply(t.Context(), k.target("s", "a"), setAll("a", canary+strings.Repeat("!", n)))
	}
	var err error
	proctest.Eventually(t, "the policy takes effect", func() bool { err = write(); return err != nil })
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "denied by ValidatingAdmissionPolicy '"+k.ns+"'") {
		t.Errorf("the error is %q", err)
	}
	if _, ok := errors.AsType[*sinks.RefusedError](err); ok {
		t.Error("it is for good")
	}
	expectSilent(t, err)
	k.permit(t)
	proctest.Eventually(t, "the policy is without effect", func() bool { return write() == nil })
}
