package workers_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/workers"
)

// parts makes parts of "name", "content" pairs.
func parts(pairs ...string) map[string]secret.Value {
	if len(pairs) == 0 {
		return nil
	}
	m := map[string]secret.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = secret.New([]byte(pairs[i+1]))
	}
	return m
}

func TestPlan(t *testing.T) {
	const mode = fs.FileMode(0o640)
	gone := &workers.RevokedError{Key: "file/a", Variables: []string{"x"}}
	for name, test := range map[string]struct {
		want   workers.Want
		have   sinks.State
		keep   bool // removal switched off
		set    []string
		remove []string
	}{
		"the same":                   {want: workers.Want{Parts: parts("", "v"), Mode: mode}, have: sinks.State{Parts: parts("", "v"), Mode: mode}},
		"nothing there":              {want: workers.Want{Parts: parts("", "v"), Mode: mode}, set: []string{""}},
		"an empty content to create": {want: workers.Want{Parts: parts("", ""), Mode: mode}, set: []string{""}},
		"an empty file there":        {want: workers.Want{Parts: parts("", "v"), Mode: mode}, have: sinks.State{Parts: parts("", ""), Mode: mode}, set: []string{""}},
		"other content":              {want: workers.Want{Parts: parts("", "v"), Mode: mode}, have: sinks.State{Parts: parts("", "w"), Mode: mode}, set: []string{""}},
		"another mode":               {want: workers.Want{Parts: parts("", "v"), Mode: mode}, have: sinks.State{Parts: parts("", "v"), Mode: 0o644}, set: []string{""}},
		"stale":                      {want: workers.Want{Parts: parts("", "v"), Mode: mode}, have: sinks.State{Parts: parts("", "v"), Mode: mode, Stale: true}, set: []string{""}},
		"one of several differs":     {want: workers.Want{Parts: parts("a", "1", "b", "2", "c", "3")}, have: sinks.State{Parts: parts("a", "1", "b", "x", "c", "3")}, set: []string{"b"}},
		"one missing, one too many":  {want: workers.Want{Parts: parts("a", "1", "b", "2")}, have: sinks.State{Parts: parts("b", "2", "c", "3")}, set: []string{"a"}, remove: []string{"c"}},
		"stale and several":          {want: workers.Want{Parts: parts("a", "1", "b", "2")}, have: sinks.State{Parts: parts("a", "1", "b", "2"), Stale: true}, set: []string{"a", "b"}},
		"gone, something there":      {want: workers.Want{Gone: gone}, have: sinks.State{Parts: parts("", "v"), Mode: mode}, remove: []string{""}},
		"gone, several there":        {want: workers.Want{Gone: gone}, have: sinks.State{Parts: parts("a", "1", "b", "2")}, remove: []string{"a", "b"}},
		"gone, nothing there":        {want: workers.Want{Gone: gone}},
		"gone, removal off":          {want: workers.Want{Gone: gone}, have: sinks.State{Parts: parts("", "v"), Mode: mode}, keep: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := workers.Plan(test.want, test.have, workers.Policy{RemoveRevoked: !test.keep})
			if !slices.Equal(got.Set, test.set) || !slices.Equal(got.Remove, test.remove) {
				t.Errorf("set %q and remove %q, want %q and %q", got.Set, got.Remove, test.set, test.remove)
			}
			if len(got.Set) > 0 && len(got.Parts) != len(test.want.Parts) {
				t.Errorf("%d parts in the plan, want the whole content of %d", len(got.Parts), len(test.want.Parts))
			}
			if len(got.Set) == 0 && len(got.Remove) == 0 != got.Empty() {
				t.Error("Empty does not say what Set and Remove say")
			}
		})
	}
}
