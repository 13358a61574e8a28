package cluster

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/kubetest"
)

// TestPausedLeaderStandsBack: a leader that was stopped, with much to do, while
// another took over does nothing of it when it goes on.
func TestPausedLeaderStandsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "leaderElection: {leaseDuration: 3s}")
	const n = 30
	w.Variables("shared")
	delivered := func() {
		t.Helper()
		for i := range n {
			w.awaitData(fmt.Sprintf("s%02d", i), map[string]string{"v": w.Value["shared"]})
		}
	}
	for i := range n {
		w.secret(fmt.Sprintf("s%02d", i), map[string]string{"v": "shared"})
	}
	first := w.start()
	delivered()
	second := w.standby()

	stood := len(first.Lines("Standing by")) // on a busy machine, it may have led twice
	first.Signal(syscall.SIGSTOP)
	w.Renew("shared")
	delivered()
	revisions := w.revisions()
	begin := time.Now()
	first.Signal(syscall.SIGCONT)
	eventually(t, "the first to see who leads now", func() bool { return len(first.Lines("Standing by")) > stood })
	w.polls(3)
	if now := w.revisions(); now != revisions {
		t.Errorf("the Secrets were written again:\n%s\n%s", revisions, now)
	}
	for _, call := range plane.Calls(t, kubetest.ByUser(w.user()), kubetest.Since(begin), func(c kubetest.Call) bool { return c.Resource == "secrets" && c.Verb == "patch" }) {
		t.Errorf("a write too much: %+v", call)
	}
	w.Renew("shared")
	delivered()
	first.Stop()
	second.Stop()
}

// revisions lists those of all Secrets of the namespace.
func (w *world) revisions() string {
	w.Helper()
	var all []string
	w.awaitAll([]string{w.namespace}, func(_ map[string][]byte, name string) bool {
		all = append(all, name+"="+w.read(name).Annotations["conjur.org/secret-revision"])
		return true
	})
	return strings.Join(all, " ")
}
