package kubetest_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/kubetest"
)

func TestCalls(t *testing.T) {
	ns := cluster.Namespace(t)
	config := cluster.ConfigFor(cluster.Token(t, ns, "app"))
	config.UserAgent = ns
	secrets := core(t, config).Secrets(ns)
	user := kubetest.UserName(ns, "app")

	_, _ = secrets.Get(t.Context(), "one", metav1.GetOptions{}) // refused
	cluster.Bind(t, ns, "app", getOne)
	middle := time.Now()
	_, _ = secrets.Get(t.Context(), "one", metav1.GetOptions{}) // not there
	_, _ = secrets.Patch(t.Context(), "one", "application/json-patch+json", []byte("[]"), metav1.PatchOptions{})

	type brief struct {
		verb, name string
		code       int
	}
	of := func(match ...func(kubetest.Call) bool) (all []brief) {
		for _, c := range cluster.Calls(t, match...) {
			if c.Resource != "secrets" || c.Namespace != ns || c.Group != "" || c.User != user || c.UserAgent != config.UserAgent {
				t.Errorf("%+v", c)
			}
			all = append(all, brief{c.Verb, c.Name, c.Code})
		}
		return all
	}
	all := []brief{
		{"get", "one", http.StatusForbidden}, {"get", "one", http.StatusNotFound}, {"patch", "one", http.StatusForbidden},
	}
	if got := of(kubetest.ByUser(user)); !slices.Equal(got, all) {
		t.Errorf("by user: %v, want %v", got, all)
	}
	if got := of(kubetest.ByUserAgent(ns[:len(ns)-1]), kubetest.Since(middle)); !slices.Equal(got, all[1:]) {
		t.Errorf("by user agent, since the middle: %v, want %v", got, all[1:])
	}
	if got := of(kubetest.ByUser(user), kubetest.ByUserAgent("another")); got != nil {
		t.Errorf("by the user and another user agent: %v, want none", got)
	}
}

// A watch is there while it lasts, and once.
func TestCallsShowAWatch(t *testing.T) {
	ns := cluster.Namespace(t)
	config := cluster.Config()
	config.UserAgent = ns
	watch, err := core(t, config).Secrets(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		calls := cluster.Calls(t, kubetest.ByUserAgent(ns))
		if len(calls) != 1 || calls[0].Verb != "watch" || calls[0].Code != http.StatusOK {
			t.Errorf("%s: %+v; want one watch", when, calls)
		}
	}
	check("open")
	watch.Stop()
	drain(t, watch)
	check("closed")
}

func TestCallsShowRefusedCredentials(t *testing.T) {
	ns := cluster.Namespace(t)
	config := cluster.ConfigFor("no-token")
	config.UserAgent = ns
	_, _ = core(t, config).Secrets(ns).Get(t.Context(), "one", metav1.GetOptions{})
	calls := cluster.Calls(t, kubetest.ByUserAgent(ns))
	if len(calls) != 1 || calls[0].Code != http.StatusUnauthorized || calls[0].User != "" {
		t.Errorf("%+v; want one, refused with 401", calls)
	}
}
