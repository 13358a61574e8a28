package deploy_test

import (
	"context"
	"sync"
	"testing"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// pods is an administrator's client that collects warnings.
func pods(t *testing.T, namespace string, w *warnings) corev1client.PodInterface {
	t.Helper()
	config := cluster.Config()
	config.WarningHandlerWithContext = w
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Pods(namespace)
}
