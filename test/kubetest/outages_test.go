package kubetest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/secretsync/syncer/test/kubetest"
)

func TestStoppedAPIServerComesBackWithItsData(t *testing.T) {
	ns := cluster.Namespace(t)
	token := cluster.Token(t, ns, "app")
	secrets := core(t, cluster.Config()).Secrets(ns)
	before, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Data:       map[string][]byte{"key": []byte("value")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	open, err := secrets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Stop()

	cluster.StopAPIServer(t)
	drain(t, open) // ends with its connection
	if _, err := secrets.Get(t.Context(), "one", metav1.GetOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped: %v; want that connections are refused", err)
	}
	cluster.StartAPIServer(t)
	after, err := secrets.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || string(after.Data["key"]) != "value" {
		t.Errorf("came back as %v", after)
	}
	// The keys are the same too: an old token is good.
	client := core(t, cluster.ConfigFor(token))
	cluster.Bind(t, ns, "app", getOne)
	if _, err := client.Secrets(ns).Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// drain waits for the watch's end.
func drain(t *testing.T, w watch.Interface) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
		case <-deadline:
			t.Fatal("the watch goes on")
		}
	}
}

func TestPausedAPIServerIsSilent(t *testing.T) {
	ns := cluster.Namespace(t)
	config := cluster.Config()
	config.UserAgent = ns
	secrets := core(t, config).Secrets(ns)
	list := func(ctx context.Context) error {
		_, err := secrets.List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster.PauseAPIServer(t)
	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := list(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused: %v; want no answer", err)
	}
	if calls := cluster.Calls(t, kubetest.ByUserAgent(ns)); len(calls) != 1 {
		t.Errorf("paused, calls: %v; want only the one before", calls)
	}
	patient := make(chan error, 1)
	go func() { patient <- list(t.Context()) }()
	cluster.ContinueAPIServer(t)
	if err := <-patient; err != nil {
		t.Errorf("continued: %v", err)
	}
}

func TestTheEndOfATestEndsItsOutage(t *testing.T) {
	for _, outage := range []func(testing.TB){cluster.StopAPIServer, cluster.PauseAPIServer} {
		t.Run("", func(t *testing.T) { outage(t) })
		cluster.Namespace(t) // fails the test where the API server is away
	}
}
