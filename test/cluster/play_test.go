//go:build play

package cluster

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"
)

// TestPlay runs Syncer on an API server until ^C, for somebody who changes the code. A value
// changes every ten seconds.
func TestPlay(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	w := newWorld(t)
	w.Variables("user", "password")
	w.settings[1] = fmt.Sprintf("server: {address: %q, status: true}", w.address)
	w.secret("db", map[string]string{"user": "user", "password": "password"})
	p := w.start()
	fmt.Printf(`
In another terminal:

    export KUBECONFIG=%s
    kubectl -n %s get secret db -o yaml
    kubectl -n %[2]s get events
    go run ./cmd/syncer status --all --url http://%s

The log follows; ^C ends.

`, plane.Kubeconfig(), w.namespace, w.address)
	look, change := time.NewTicker(time.Second), time.NewTicker(10*time.Second)
	defer look.Stop()
	defer change.Stop()
	for shown := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-change.C:
			w.Renew("password")
		case <-look.C:
			log := p.Log()
			fmt.Print(strings.TrimPrefix(log, shown))
			shown = log
		}
	}
}
