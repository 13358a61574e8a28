package workers_test

import (
	"io/fs"
	"maps"
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
	a, some := map[string]bool{"a": true}, sinks.State{Parts: parts("a", "1", "b", "2", "c", "3")}
	for name, test := range map[string]struct {
		want   workers.Want
		have   sinks.State
		keep   bool // removal switched off
		set    []string
		remove []string
		stays  []string
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

		"a part revoked":                {want: workers.Want{Parts: parts("b", "2", "c", "3"), Gone: gone, Revoked: a}, have: some, remove: []string{"a"}},
		"a part revoked, others new":    {want: workers.Want{Parts: parts("b", "2", "c", "x", "d", "4"), Gone: gone, Revoked: a}, have: some, set: []string{"c", "d"}, remove: []string{"a"}},
		"a part revoked, one left":      {want: workers.Want{Parts: parts("b", "2"), Gone: gone, Revoked: a}, have: some, remove: []string{"a", "c"}},
		"a part revoked, removal off":   {want: workers.Want{Parts: parts("b", "x"), Gone: gone, Revoked: a}, have: some, keep: true, set: []string{"b"}, remove: []string{"c"}, stays: []string{"a"}},
		"a part revoked, not there":     {want: workers.Want{Parts: parts("b", "2"), Gone: gone, Revoked: a}, have: sinks.State{Parts: parts("b", "2")}},
		"the only part revoked":         {want: workers.Want{Gone: gone, Revoked: a}, have: sinks.State{Parts: parts("a", "1")}, remove: []string{"a"}},
		"revoked, the rest unknown":     {want: workers.Want{Gone: gone, Revoked: a, KeepAll: true}, have: some, remove: []string{"a"}, stays: []string{"b", "c"}},
		"revoked, the rest stale":       {want: workers.Want{Gone: gone, Revoked: a, KeepAll: true}, have: sinks.State{Parts: some.Parts, Stale: true}, remove: []string{"a"}, stays: []string{"b", "c"}},
		"a part kept":                   {want: workers.Want{Parts: parts("b", "2"), Keep: a}, have: some, remove: []string{"c"}, stays: []string{"a"}},
		"a part kept, and written":      {want: workers.Want{Parts: parts("a", "x", "b", "2"), Keep: a}, have: some, set: []string{"a"}, remove: []string{"c"}},
		"a part kept, not there":        {want: workers.Want{Parts: parts("b", "2"), Keep: a}, have: sinks.State{Parts: parts("b", "2")}},
		"all kept":                      {want: workers.Want{Parts: parts("b", "x"), KeepAll: true}, have: some, set: []string{"b"}, stays: []string{"a", "c"}},
		"all kept, nothing wanted":      {want: workers.Want{KeepAll: true}, have: some, stays: []string{"a", "b", "c"}},
		"removal off, nothing revoked":  {want: workers.Want{Parts: parts("b", "2", "c", "3")}, have: some, keep: true, remove: []string{"a"}},
		"revoked and kept at once goes": {want: workers.Want{Gone: gone, Revoked: a, Keep: a}, have: some, remove: []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := workers.Plan(test.want, test.have, workers.Policy{RemoveRevoked: !test.keep})
			if !slices.Equal(got.Set, test.set) || !slices.Equal(got.Remove, test.remove) {
				t.Errorf("set %q and remove %q, want %q and %q", got.Set, got.Remove, test.set, test.remove)
			}
			if whole := test.want.Gone != nil && test.want.Revoked == nil; whole != (got.Parts == nil) {
				t.Errorf("parts %v, want none only when the whole target goes", got.Parts)
			}
			content := slices.Sorted(maps.Keys(test.want.Parts))
			content = append(content, test.stays...)
			slices.Sort(content)
			if names := slices.Sorted(maps.Keys(got.Parts)); !slices.Equal(names, content) {
				t.Errorf("parts %q in the plan, want %q", names, content)
			}
			for _, name := range test.stays {
				if !got.Parts[name].Equal(test.have.Parts[name]) {
					t.Errorf("%q does not stay as it is", name)
				}
			}
			if (len(got.Set) == 0 && len(got.Remove) == 0) != got.Empty() {
				t.Error("Empty does not say what Set and Remove say")
			}
		})
	}
}
