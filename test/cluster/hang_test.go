package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestAWebhookThatHangsDelaysNoOtherNamespace: the webhook answers no write in one
// namespace, whose Secrets could occupy all workers for minutes. Another namespace is
// served.
func TestAWebhookThatHangsDelaysNoOtherNamespace(t *testing.T) {
	t.Parallel()
	const workers = 4
	w := newWorld(t)
	w.Variables("a")
	other := w.join()
	w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + other
	var hanging atomic.Int64
	release := make(chan struct{})
	defer close(release)
	w.webhook(func(*corev1.Secret) *admissionv1.AdmissionResponse {
		hanging.Add(1)
		<-release
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	for i := range 200 {
		w.secret(fmt.Sprintf("bad-%d", i), map[string]string{"a": "a"})
	}
	w.secretIn(other, "early", map[string]string{"a": "a"})
	w.start(fmt.Sprintf("--workers=%d", workers))
	eventually(t, "a write that hangs in each worker", func() bool { return hanging.Load() >= workers })
	for i := range 20 {
		w.secretIn(other, fmt.Sprintf("late-%d", i), map[string]string{"a": "a"})
	}
	w.awaitAll([]string{other}, func(data map[string][]byte, _ string) bool { return string(data["a"]) == w.Value["a"] })
}
