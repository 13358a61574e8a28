//go:build long

package cluster

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestTheBudgetBoundsWhatSecretsNeed compares targets.Target.Memory with the growth of the
// heap of the real binary, for many small Secrets and for few with many entries.
func TestTheBudgetBoundsWhatSecretsNeed(t *testing.T) {
	program, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ secrets, entries int }{"small": {1000, 1}, "large": {4, 1000}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings = append(w.settings, "namespaceMemory: 64")
			var ids []string
			for i := range 1000 {
				ids = append(ids, fmt.Sprintf("apps/shop/variable%04d", i))
			}
			w.Variables(ids...)
			w.Variables("first")
			w.secret("first", map[string]string{"first": "first"})
			cmd := exec.Command(program, "run", "--config", w.configure(), "--annotations", filepath.Join(w.dir, "annotations"), "--status-dir", filepath.Join(w.dir, "status"))
			cmd.Env = w.Environ("GOGC=3") // so that little garbage counts
			p := proctest.Start(t, cmd, nil)
			w.awaitData("first", map[string]string{"first": w.Value["first"]})
			before, budget := w.heap(), 0
			for i := range c.secrets {
				conjurMap, text := map[string]string{}, ""
				for j := range c.entries {
					id := ids[(i+j)%len(ids)]
					key := strings.ReplaceAll(id, "/", ".")
					conjurMap[key] = id
					text += fmt.Sprintf("%q: %q\n", key, id)
				}
				w.secret(fmt.Sprintf("s%04d", i), conjurMap)
				target := definitions.FromSecret(definitions.SecretDefinition{Namespace: w.namespace, Name: fmt.Sprintf("s%04d", i), HasMap: true, Map: text})
				budget += target.Memory()
			}
			w.awaitAll([]string{w.namespace}, func(data map[string][]byte, name string) bool {
				return name == "first" || len(data) == c.entries+1
			})
			grown := w.heap() - before
			t.Logf("%d bytes for each Secret, %d in the budget", grown/c.secrets, budget/c.secrets)
			if grown > budget {
				t.Errorf("%d Secrets of %d entries need %d bytes, more than the %d that are counted", c.secrets, c.entries, grown, budget)
			}
			p.Stop()
		})
	}
}

var allocated = regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`)

// heap returns the smallest heap during some polls.
func (w *world) heap() int {
	w.Helper()
	least := 0.0
	for range 10 {
		w.polls(2)
		_, metrics := w.get("/metrics")
		found := allocated.FindStringSubmatch(metrics)
		if found == nil {
			w.Fatal("no metric of the heap")
		}
		now, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			w.Fatal(err)
		}
		if least == 0 || now < least {
			least = now
		}
	}
	return int(least)
}
