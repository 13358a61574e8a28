package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// secretDraft determines the content of a Kubernetes Secret. Each entry of its map is a
// separate part. Each of its groups is all or nothing.
type secretDraft struct {
	draft
	t       *targets.Target
	answers map[string]variables.Answer
	render  targets.Target  // with the entries to render
	gone    map[string]bool // variables that are gone and that an entry names
	revoked []string        // the parts that are removed because of them
	unknown []error
}

func (s *Syncer) draftSecret(ctx context.Context, r *job, answers map[string]variables.Answer) draft {
	t := r.Spec
	d := secretDraft{t: t, answers: answers, gone: map[string]bool{}, render: targets.Target{Key: t.Key, Secret: &targets.Secret{}}}
	d.want = Want{Parts: map[string]secret.Value{}, Revoked: map[string]bool{}, Keep: map[string]bool{}, KeepAll: t.Secret.HoldAll}
	for _, key := range t.Secret.Hold {
		d.want.Keep[key] = true
	}
	keys := *t
	keys.Secret = nil // only the map
	d.choices = append(d.choices, s.choose(r, &keys, answers))
	d.addMap()
	for _, group := range t.Secret.Groups {
		d.choices = append(d.choices, s.choose(r, group, answers))
		d.addGroup(&d.choices[len(d.choices)-1])
	}
	var faults []error
	d.sets, faults = setsOf(r, answers)
	d.unknown = append(d.unknown, faults...)
	if len(d.unknown) > 0 {
		d.hold(t.Key, d.unknown...)
	} else {
		s.renderSecret(ctx, &d)
	}
	d.setGone(!s.Policy.RemoveRevoked)
	if len(t.Secret.Faults) > 0 {
		d.errs = append(d.errs, &InvalidError{Key: t.Key, Faults: targets.Texts(t.Secret.Faults)})
	}
	return d.draft
}

// addMap adds the chosen variables of the map.
func (d *secretDraft) addMap() {
	c := &d.choices[0]
	if c.err != nil {
		d.errs = append(d.errs, c.err)
	}
	if c.in != nil && len(c.in) == 0 {
		d.want.KeepAll = true // an empty list proves nothing
	}
	for _, left := range c.left {
		if left.revoked {
			d.want.Revoked[left.alias] = true
		} else {
			d.want.Keep[left.alias] = true // whatever its content
		}
	}
	for _, e := range c.target.Entries {
		if d.answers[e.Variable].Verdict == variables.Gone {
			d.want.Revoked[e.Alias], d.gone[e.Variable] = true, true
			d.revoked = append(d.revoked, e.Alias)
			continue
		}
		d.render.Entries = append(d.render.Entries, e)
	}
	d.unknown = append(d.unknown, unknownOf(d.render.Variables(), d.answers)...)
}

// addGroup adds the chosen variables of a group.
func (d *secretDraft) addGroup(c *choice) {
	if c.err != nil {
		d.errs, d.want.Keep[c.name], c.failed = append(d.errs, c.err), true, true
		return
	}
	if gone := goneOf(d.t.Key, c.target, d.answers); gone != nil {
		d.revokeGroup(c, gone.Variables)
		return
	}
	d.unknown = append(d.unknown, unknownOf(c.target.Variables(), d.answers)...)
	d.render.Secret.Groups = append(d.render.Secret.Groups, c.target)
}

// revokeGroup removes a group as a whole, because variables are gone.
func (d *secretDraft) revokeGroup(c *choice, ids []string) {
	for _, id := range ids {
		d.gone[id] = true
	}
	d.want.Revoked[c.name] = true
	d.revoked = append(d.revoked, c.name)
}

// setGone sums up which variables are proven to be gone.
func (d *secretDraft) setGone(kept bool) {
	if len(d.gone) == 0 {
		return
	}
	gone := &RevokedError{Key: d.t.Key, Parts: slices.Sorted(slices.Values(d.revoked)), Kept: kept}
	for _, id := range d.t.Variables() {
		if d.gone[id] {
			gone.Variables, gone.Errs = append(gone.Variables, id), append(gone.Errs, d.answers[id].Err)
		}
	}
	d.want.Gone, d.errs = gone, append(d.errs, gone)
}

// renderSecret makes the values. A group that cannot be made keeps its last result,
// unless that holds a revoked value. The other groups go on.
func (s *Syncer) renderSecret(ctx context.Context, d *secretDraft) {
	if len(d.render.Entries)+len(d.render.Secret.Groups) == 0 {
		return
	}
	s.Log.Log(s.steps, "Rendering target", zap.String("target", string(d.t.Key)))
	value := func(id string) secret.Value { return d.answers[id].Value }
	made := render.Secret(&d.render, value, func(group *targets.Target) (string, error) { return s.templateText(ctx, group) })
	if err := made.Errs[""]; err != nil {
		d.hold(d.t.Key, err)
		return
	}
	if again := d.leaveOutUnfit(made.Errs); again != nil {
		more := render.Secret(again, value, func(group *targets.Target) (string, error) { return s.templateText(ctx, group) })
		maps.Copy(made.Parts, more.Parts)
		maps.Copy(made.Errs, more.Errs)
		made.Warnings = append(made.Warnings, more.Warnings...)
		made.Work += more.Work
		made.Expires = made.Expires.First(more.Expires)
	}
	d.want.Parts, d.work, d.expires = made.Parts, made.Work+1, made.Expires
	d.makers = makersOf(made.Sets, d.render.Secret.Groups)
	for i := range d.choices {
		c := &d.choices[i]
		err := made.Errs[c.name] // the map has none
		if err == nil {
			continue
		}
		d.want.Keep[c.name], c.failed = true, true
		if len(c.lost) > 0 {
			d.revokeGroup(c, c.lost) // its last result holds these variables
		}
		if _, unread := errors.AsType[*textError](err); unread {
			d.errs = append(d.errs, fmt.Errorf("%s keeps the last state of the data key %q: %w", d.t.Key, c.name, err))
		} else {
			d.errs = append(d.errs, &RenderError{Key: d.t.Key, Part: c.name, Err: err})
		}
	}
	d.warnings = made.Warnings
}

// leaveOutUnfit removes the values that a format cannot hold from groups with a wildcard.
// It returns nil if that does not help. It deletes the errors of the groups that are
// worth another try.
func (d *secretDraft) leaveOutUnfit(errs map[string]error) (again *targets.Target) {
	for i := range d.choices {
		c := &d.choices[i]
		if !c.leaveOutUnfit(errs[c.name]) {
			continue
		}
		if again == nil {
			again = &targets.Target{Key: d.t.Key, Secret: &targets.Secret{}}
		}
		again.Secret.Groups = append(again.Secret.Groups, c.target)
		delete(errs, c.name)
	}
	return again
}

// textError means that the text of a template could not be read. The next try may
// succeed.
type textError struct{ err error }

func (e *textError) Error() string { return "reading the template: " + e.err.Error() }
func (e *textError) Unwrap() error { return e.err }

// templateText returns the text of a group's template, as long as time remains. A Secret
// may have many templates, and each may run for a while.
func (s *Syncer) templateText(ctx context.Context, group *targets.Target) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", &textError{err}
	}
	text, err := s.Templates.Text(ctx, group)
	if err != nil {
		return "", &textError{err}
	}
	return text, nil
}
