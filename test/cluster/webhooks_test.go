package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
)

// webhook makes the API server call a webhook for each write of the world's Secrets by its
// process, until the returned function is called.
func (w *world) webhook(answer func(s *corev1.Secret) *admissionv1.AdmissionResponse) (off func()) {
	w.Helper()
	user := w.user()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var s corev1.Secret
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &review) != nil || json.Unmarshal(review.Request.Object.Raw, &s) != nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		response := &admissionv1.AdmissionResponse{Allowed: true}
		if review.Request.UserInfo.Username == user {
			response = answer(&s)
		}
		response.UID = review.Request.UID
		review.Response = response
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review)
	}))
	w.Cleanup(server.Close)
	client, err := registrationclient.NewForConfig(plane.Config())
	if err != nil {
		w.Fatal(err)
	}
	match, none := registrationv1.Equivalent, registrationv1.SideEffectClassNone
	hooks := client.MutatingWebhookConfigurations()
	made, err := hooks.Create(w.Context(), &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hostile-"},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name: "hostile.syncer.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, MatchPolicy: &match,
			ClientConfig:      registrationv1.WebhookClientConfig{URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	off = func() {
		err := hooks.Delete(context.WithoutCancel(w.Context()), made.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	}
	w.Cleanup(off)
	return off
}

// patched is the answer of a webhook that changes the written object.
func patched(operations string) *admissionv1.AdmissionResponse {
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: &kind}
}

// TestAWebhookThatRefusesIsNotQuoted: the webhook quotes the written value, and Syncer
// reports only the webhook's name. Another namespace is served, and this one when the
// webhook is gone.
func TestAWebhookThatRefusesIsNotQuoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	other := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + other
	off := w.webhook(func(s *corev1.Secret) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Message: fmt.Sprintf("not this: %s", s.Data["a"])}}
	})
	w.secret("db", map[string]string{"a": "a"})
	w.secretIn(other, "db", map[string]string{"a": "a"})
	w.start()
	eventually(t, "the other namespace's data", func() bool { return string(w.readIn(other, "db").Data["a"]) == w.Value["a"] })
	eventually(t, "an Event that names the webhook", func() bool {
		return strings.Contains(strings.Join(w.events("db", "SyncFailed"), "\n"), `admission webhook "hostile.syncer.test"`)
	})
	if all := strings.Join(w.events("db", "SyncFailed"), "\n"); strings.Contains(all, w.Value["a"]) || strings.Contains(all, "not this") {
		t.Errorf("an Event quotes the webhook")
	}
	off()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
}

// TestAWebhookThatChangesWritesIsNamedAndNotFought: the webhook changes a data key at each
// write, or adds an annotation at each write, which is harmless.
func TestAWebhookThatChangesWritesIsNamedAndNotFought(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path  string
		harms bool
	}{{"/data/a", true}, {"/metadata/annotations/note", false}} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Variables("a", "b")
			var writes atomic.Int64
			off := w.webhook(func(s *corev1.Secret) *admissionv1.AdmissionResponse {
				if s.Name != "db" {
					return &admissionv1.AdmissionResponse{Allowed: true}
				}
				text := base64.StdEncoding.EncodeToString(fmt.Append(nil, "theirs-", writes.Add(1)))
				return patched(fmt.Sprintf(`[{"op":"add","path":%q,"value":%q}]`, test.path, text))
			})
			w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) { s.Annotations["note"] = "none" })
			w.start()
			eventually(t, "a write", func() bool { return writes.Load() > 0 })
			if test.harms {
				eventually(t, "an Event that names the data key", func() bool {
					return strings.Contains(strings.Join(w.events("db", "SyncFailed"), "\n"), "webhook changes the data key a")
				})
			}
			w.polls(10)
			if n := writes.Load(); n > 1 {
				t.Errorf("%d writes", n)
			}
			w.secret("sound", map[string]string{"b": "b"})
			w.awaitData("sound", map[string]string{"b": w.Value["b"]})
			off()
			w.Renew("a")
			w.awaitData("db", map[string]string{"a": w.Value["a"]})
		})
	}
}
