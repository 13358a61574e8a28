package workers

import (
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// place returns log fields that say where a target is.
func place(t *targets.Target) []zap.Field {
	fields := []zap.Field{zap.String("target", string(t.Key))}
	if t.Secret == nil && t.File.Path != "" {
		fields = append(fields, zap.String("path", t.File.Path))
	}
	return fields
}

// reportChanges reports the changes made to a target in the result. It also logs those that
// somebody may ask about later.
func (s *Syncer) reportChanges(t *targets.Target, d *draft, changes sinks.Changes, result *Result) {
	result.Set = changes.Set
	for _, name := range changes.Remove {
		if d.want.Gone != nil && d.want.Revoked == nil || d.want.Revoked[name] {
			result.Revoked = append(result.Revoked, name)
		} else {
			result.Dropped = append(result.Dropped, name)
		}
	}
	result.Removed = d.want.Gone != nil && slices.ContainsFunc(result.Revoked, d.want.Gone.concerns)
	if len(result.Revoked) > 0 {
		s.logRemoval(t, d, result.Revoked)
	}
	if len(result.Dropped) > 0 {
		s.Log.Info("Removed data keys that the definition no longer has", append(place(t), zap.Strings("parts", result.Dropped))...)
	}
}

// reportLeftOut reports the variables that got no data key. It reports whenever the list
// of them changes, and once after each start.
func (s *Syncer) reportLeftOut(j *job) {
	t := j.Spec
	if t.Secret == nil || slices.Equal(t.Secret.LeftOut, j.Status.LeftOut) {
		return
	}
	j.Status.LeftOut = t.Secret.LeftOut
	if len(t.Secret.LeftOut) > 0 {
		s.Log.Warn("Variables have no data key", append(place(t), zap.Strings("why", brief.Some(t.Secret.LeftOut, brief.Reasons)))...)
	}
}

// logRemoval logs, in a single line, why something was removed.
func (s *Syncer) logRemoval(t *targets.Target, d *draft, parts []string) {
	var variables, proofs []string
	seen := sets.New[string]()
	add := func(id string, proof error) {
		if !seen.Has(id) {
			seen.Insert(id)
			variables, proofs = append(variables, id), append(proofs, proof.Error())
		}
	}
	if gone := d.want.Gone; gone != nil {
		for i, id := range gone.Variables {
			add(id, gone.Errs[i])
		}
	}
	fields := place(t)
	if t.Secret != nil { // where a wildcard adds data keys
		for _, id := range d.choices[0].gone {
			add(id, d.choices[0].out[id])
		}
		fields = append(fields, zap.Strings("keys", parts))
	}
	s.Log.Warn("Removed revoked values", append(fields, zap.Strings("variables", variables), zap.Strings("proofs", proofs))...)
}
