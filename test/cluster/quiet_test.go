package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// TestOwnWritesAreNoNews: the watch tells of each, and nothing is asked, of
// Conjur or of the API server, for that.
func TestOwnWritesAreNoNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 40
	p := w.start()
	for i := range n {
		w.Variables(fmt.Sprintf("app/v%02d", i))
		w.secret(fmt.Sprintf("s%02d", i), map[string]string{"v": fmt.Sprintf("app/v%02d", i)})
	}
	for i := range n {
		w.awaitData(fmt.Sprintf("s%02d", i), map[string]string{"v": w.Value[fmt.Sprintf("app/v%02d", i)]})
	}
	w.polls(3) // by when the events have come
	_, metrics := w.get("/metrics")
	if !strings.Contains(metrics, fmt.Sprintf(`result="written"} %d`, n)) || !strings.Contains(metrics, "result=\"unchanged\"} 0\n") {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "syncer_syncs_total") {
				t.Errorf("%d Secrets were made, and there is %s", n, line)
			}
		}
	}
	p.Stop()
}
