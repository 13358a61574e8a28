package definitions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
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

// TestBounds: what is as large as a limit is accepted.
func TestBounds(t *testing.T) {
	repeated := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	annotated := func(key, text string) SecretDefinition {
		return SecretDefinition{HasMap: true, Map: "a: a/b", Annotations: map[string]string{key: text}}
	}
	for what, c := range map[string]struct {
		bound int
		of    func(n int) SecretDefinition
	}{
		"bytes": {targets.MaxDefinition, func(n int) SecretDefinition {
			return SecretDefinition{HasMap: true, Map: "a: a/b\n" + strings.Repeat("#", n-len("a: a/b\n"))}
		}},
		"bytes elsewhere": {targets.MaxDefinition, func(n int) SecretDefinition {
			return SecretDefinition{HasMap: true, Map: "a: a/b", Oversize: n - len("a: a/b")}
		}},
		"entries":    {targets.MaxEntries, func(n int) SecretDefinition { return SecretDefinition{HasMap: true, Map: repeated(n, "k%d: a/b\n")} }},
		"workloads":  {targets.MaxNames, func(n int) SecretDefinition { return annotated(restartWorkloads, repeated(n, "deployment/d%d,")) }},
		"accounts":   {targets.MaxNames, func(n int) SecretDefinition { return annotated(pullSecretFor, repeated(n, "d%d,")) }},
		"a workload": {253, func(n int) SecretDefinition { return annotated(restartWorkloads, "deployment/"+strings.Repeat("d", n)) }},
		"a data key": {253, func(n int) SecretDefinition {
			return SecretDefinition{HasMap: true, Map: strings.Repeat("k", n) + ": a/b"}
		}},
		"a name": {maxVariableName, func(n int) SecretDefinition {
			return SecretDefinition{HasMap: true, Map: "k: a/" + strings.Repeat("é", n)}
		}},
		"a variable": {maxVariable, func(n int) SecretDefinition {
			return SecretDefinition{HasMap: true, Map: "k: " + strings.Repeat("a", n-len("%2Fb")) + "/b"}
		}},
	} {
		for less := -1; less <= 1; less++ {
			d := c.of(c.bound + less)
			d.Namespace, d.Name = "ns", "s"
			got := FromSecret(d)
			if faults := got.Secret.Faults; (len(faults) == 0) != (less <= 0) {
				t.Errorf("%s, the bound%+d: faults %.300q", what, less, faults)
			}
		}
	}
}

// TestLengthsOfVariables: what a definition accepts can be requested.
func TestLengthsOfVariables(t *testing.T) {
	for less := -1; less <= 1; less++ {
		id := strings.Repeat("a", maxVariable-len("%2Fb")+less) + "/b"
		entries, _, err := ParseEntries("- "+id, "")
		requested := conjur.CheckID(id)
		if (err == nil) != (less <= 0) || (requested == nil) != (less <= 0) {
			t.Errorf("the bound%+d: %d entries, %v; request: %v", less, len(entries), err, requested)
		}
	}
}
