package definitions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// What is beyond a limit fails alone, and in words that name the limit.
func TestWhatIsBeyondALimitFailsAlone(t *testing.T) {
	list := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	for name, c := range map[string]struct {
		def         SecretDefinition
		limit       int
		stays       int // entries
		holdsAll    bool
		restartsAre int
	}{
		"the bytes of a map":         {def: SecretDefinition{HasMap: true, Map: "a: a/b\n" + strings.Repeat("# \n", targets.MaxDefinition/3)}, limit: targets.MaxDefinition, holdsAll: true},
		"the bytes of annotations":   {def: SecretDefinition{HasMap: true, Map: "a: a/b\n", Annotations: map[string]string{groupTemplate + "x": strings.Repeat("x", targets.MaxDefinition)}}, limit: targets.MaxDefinition, holdsAll: true},
		"a definition that was left": {def: SecretDefinition{Oversize: targets.MaxDefinition + 1}, limit: targets.MaxDefinition, holdsAll: true},
		"entries":                    {def: SecretDefinition{HasMap: true, Map: list(targets.MaxEntries+1, "k%d: a/b\n")}, limit: targets.MaxEntries, holdsAll: true},
		"faulty entries":             {def: SecretDefinition{HasMap: true, Map: list(targets.MaxEntries+1, "k%d: 5\n")}, limit: targets.MaxEntries, holdsAll: true},
		"workloads": {
			def:   SecretDefinition{HasMap: true, Map: "a: a/b", Annotations: map[string]string{restartWorkloads: list(targets.MaxNames+1, "deployment/d%d,")}},
			limit: targets.MaxNames, stays: 1,
		},
		"service accounts": {
			def: SecretDefinition{HasMap: true, Map: "a: a/b", Annotations: map[string]string{
				pullSecretFor: list(targets.MaxNames+1, "d%d,"), restartWorkloads: "deployment/d",
			}},
			limit: targets.MaxNames, stays: 1, restartsAre: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.def.Namespace, c.def.Name = "ns", "s"
			got := FromSecret(c.def)
			s := got.Secret
			if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].Why, fmt.Sprint(c.limit)) {
				t.Errorf("faults %q, want one that names %d", s.Faults, c.limit)
			}
			if len(got.Entries) != c.stays || s.HoldAll != c.holdsAll || len(s.Restart) != c.restartsAre || s.PullFor != nil {
				t.Errorf("%d entries, all held: %v, restarts %v, pull Secret for %v", len(got.Entries), s.HoldAll, s.Restart, s.PullFor)
			}
		})
	}
}
