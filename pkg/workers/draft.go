package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// draft is the content that a target should hold, as its definition, templates and
// variables say. It also holds the reasons why the target cannot have that content.
type draft struct {
	want    Want
	choices []choice // one for each of the target's Parts
	errs    []error
	// warnings are the warnings of the rendering; see allWarnings.
	warnings []string
	work     int                             // see Result.Work
	sets     map[string]targets.DeliveredSet // to show, by variable
	makers   map[string][]string             // see makersOf
	shows    map[string]targets.DeliveredSet // what the target shows afterwards; nil: as before
	expires  targets.Expiry
	// held means that something is unknown, so that only removals are allowed.
	held bool
}

// removes reports whether the draft contains anything revoked.
func (d *draft) removes() bool { return d.want.Gone != nil || len(d.want.Revoked) > 0 }

// idle reports whether the draft changes nothing, whatever the target holds.
func (d *draft) idle() bool {
	return !d.removes() && (d.held || d.want.KeepAll && len(d.want.Parts) == 0)
}

// hold notes the variables that are unknown. Half a rotation is worse than none:
// everything that is not revoked stays unchanged.
func (d *draft) hold(key targets.Key, errs ...error) {
	d.errs = append(d.errs, &UnknownError{Key: key, Errs: errs})
	d.want.Parts, d.want.KeepAll, d.held = map[string]secret.Value{}, true, true
}

// markEmpty records in the errors about unknown variables whether the target is empty, so
// that no earlier content can stay.
func (d *draft) markEmpty(bare bool) {
	for _, err := range d.errs {
		if unknown, ok := errors.AsType[*UnknownError](err); ok {
			unknown.TargetEmpty = bare
		}
	}
}

// render determines the content that a target should hold.
func (s *Syncer) render(ctx context.Context, r *job, answers map[string]variables.Answer) draft {
	defer r.span.Step("render")()
	if s.RenderCrashes != nil && r.Spec.Templated() {
		defer s.RenderCrashes.Begin(r.Spec.Key)()
	}
	d := draft{}
	if r.Spec.Secret != nil {
		d = s.draftSecret(ctx, r, answers)
	} else {
		d = s.draftFile(ctx, r, answers)
	}
	if !d.held {
		s.warn(r, d.warnings)
	}
	return d
}

// draftFile determines the content of a file or a folder of files. The content is all or
// nothing.
func (s *Syncer) draftFile(ctx context.Context, r *job, answers map[string]variables.Answer) draft {
	t := r.Spec
	answers = bothNamed(t, answers)
	c := s.choose(r, t, answers)
	d := draft{choices: []choice{c}}
	if c.err != nil {
		d.errs, d.held = []error{c.err}, true
		return d
	}
	if gone := goneOf(t.Key, c.target, answers); gone != nil {
		gone.Kept = !s.Policy.RemoveRevoked
		d.want.Gone, d.errs = gone, []error{gone}
		return d
	}
	sets, faults := setsOf(r, answers)
	if errs := append(unknownOf(c.target.Variables(), answers), faults...); len(errs) > 0 {
		d.hold(t.Key, errs...)
		return d
	}
	d.sets = sets
	s.Log.Log(s.steps, "Rendering target", zap.String("target", string(t.Key)), zap.String("format", string(t.Format)))
	text, err := s.Templates.Text(ctx, t)
	if err != nil {
		return d.fail(t, answers, !s.Policy.RemoveRevoked, fmt.Errorf("reading the template of %s: %w", t.Key, err))
	}
	result, err := renderWith(c.target, text, answers)
	if d.choices[0].leaveOutUnfit(err) {
		result, err = renderWith(d.choices[0].target, text, answers)
	}
	if err != nil {
		return d.fail(t, answers, !s.Policy.RemoveRevoked, &RenderError{Key: t.Key, Err: err, Invalid: t.Templated() && render.Check(t, text) != nil})
	}
	d.want.Parts, d.want.Mode, d.warnings = result.Parts, t.File.Mode, result.Warnings
	d.expires = result.Expires
	return d
}

// fail returns the draft of a file that cannot be made. The last content stays, unless it
// holds a revoked value.
func (d draft) fail(t *targets.Target, answers map[string]variables.Answer, kept bool, err error) draft {
	if lost := d.choices[0].lost; len(lost) > 0 {
		d.want.Gone = &RevokedError{Key: t.Key, Variables: lost, Kept: kept}
		for _, id := range lost {
			d.want.Gone.Errs = append(d.want.Gone.Errs, answers[id].Err)
		}
		d.errs = []error{d.want.Gone, err}
		return d
	}
	d.errs, d.held = []error{err}, true
	return d
}

// warn logs the warnings of a rendering when they change.
func (s *Syncer) warn(r *job, warnings []string) {
	if slices.Equal(r.Status.Warned, warnings) {
		return
	}
	r.Status.Warned = warnings
	for _, warning := range warnings {
		s.Log.Warn(warning, zap.String("target", string(r.Spec.Key)))
	}
}

// allWarnings lists the variables that were left out and the warnings of the rendering.
func (d *draft) allWarnings() (all []Warning) {
	for i, c := range d.choices {
		if c.err != nil {
			continue
		}
		part := c.name
		if i == 0 {
			part = "" // a file has the name of its target
		}
		for _, id := range slices.Sorted(maps.Keys(c.out)) {
			why := c.out[id]
			if of, ok := errors.AsType[*conjur.VariableError](why); ok {
				why = of.Err
			}
			all = append(all, Warning{Part: part, Left: id, Text: fmt.Sprintf("variable %q is left out: %v", id, why)})
		}
	}
	for _, text := range d.warnings {
		all = append(all, Warning{Text: text})
	}
	return all
}

func renderWith(t *targets.Target, template string, answers map[string]variables.Answer) (render.Result, error) {
	items := make([]render.Item, len(t.Entries))
	for i, e := range t.Entries {
		items[i] = render.Item{Alias: e.Alias, Value: answers[e.Variable].Value}
	}
	return render.Render(t, template, items)
}

// uncertain returns the reasons to leave the target unchanged. An existing part may hold a
// variable that was left out because its state is unknown.
func (d *draft) uncertain(t *targets.Target, have sinks.State) (errs []error) {
	for i, part := range t.Parts() {
		c := &d.choices[i]
		if len(c.uncertain) == 0 || d.revokes(i) {
			continue
		}
		lacks := lacking(part, have)
		for _, u := range c.uncertain {
			there := len(have.Parts) > 0
			if t.Secret != nil {
				_, there = have.Parts[u.part]
			}
			if there && !lacks(u.Entry) {
				errs = append(errs, u.err)
			}
		}
	}
	return errs
}

// lacking returns a function that reports whether the existing content of a part surely
// lacks an entry. Content is sure if it names its variables, and all of them are the
// part's. Otherwise it may be in another format.
func lacking(part *targets.Target, have sinks.State) func(targets.Entry) bool {
	content, ok := have.Parts[part.Group]
	unsure := func(targets.Entry) bool { return false }
	if !ok || !readable(part) {
		return unsure
	}
	names := render.Aliases(part.Format, content.Bytes())
	if len(names) == 0 || len(unlisted(part, slices.Clone(names))) > 0 {
		return unsure
	}
	held := make(map[string]bool, len(names))
	for _, name := range names {
		held[name] = true
	}
	return func(e targets.Entry) bool { return !held[e.Alias] }
}

// members lists the variables to remember with the content: those that a wildcard added
// to parts that do not name them, and node-specific ones. have is the remembered list.
// members returns nil if that list is right, or if nothing is known.
func (d *draft) members(t *targets.Target, have []string) []string {
	if d.held || d.revokes(0) {
		return nil
	}
	in := map[string]bool{}
	for i, part := range t.Parts() {
		if readable(part) && part.Overrides == nil {
			continue
		}
		c := &d.choices[i]
		gone := sets.New(c.gone...)
		for id, is := range c.in {
			in[id] = in[id] || is
		}
		for _, id := range have {
			// The existing content stays, and may hold the variable.
			_, out := c.out[id]
			in[id] = in[id] || c.failed || d.want.KeepAll || out && !gone.Has(id)
		}
	}
	maps.DeleteFunc(in, func(_ string, is bool) bool { return !is })
	ids := slices.AppendSeq(make([]string, 0, len(in)), maps.Keys(in))
	if slices.Sort(ids); slices.Equal(ids, have) {
		return nil
	}
	return ids
}

// revokes reports whether a file, or a group of a Secret, is removed as a whole.
func (d *draft) revokes(i int) bool {
	if i == 0 {
		return d.want.Gone != nil && d.want.Revoked == nil
	}
	return d.want.Revoked[d.choices[i].name]
}

// variablesOf lists the variable ids of the targets.
func variablesOf(rs []*job) []string {
	var ids []string
	for _, r := range rs {
		ids = append(append(ids, r.Spec.Variables()...), r.Spec.Watched...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
