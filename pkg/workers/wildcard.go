package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
)

var (
	errNotListed = errors.New("the list of variables is not known yet")
	errNoAnswer  = errors.New("no answer")
	errNoMatch   = errors.New("the identity sees no variable with a value for its *; grant it read on the variables, or set their values")
)

// listVariables lists the variables for the targets that wait for that. It returns the
// targets with the listed variables.
func (s *Syncer) listVariables(ctx context.Context, rs []*job) (listed []*job) {
	if len(rs) == 0 {
		return nil
	}
	err := errNotListed
	if s.Lister != nil {
		err = s.Lister.List(ctx)
	}
	for _, r := range rs {
		key := r.Spec.Key
		t, ok := s.Targets.Get(key)
		switch {
		case !ok:
			r.end(Result{})
			continue
		case err == nil && t.NeedsList():
			err = errNotListed
		}
		if err != nil {
			r.end(Result{Err: &UnknownError{Key: key, Errs: []error{err}}})
			continue
		}
		r.Spec = t
		listed = append(listed, s.recall(ctx, r))
	}
	return listed
}

// choice says which variables belong to the content of a target, or of a group of a
// Secret.
type choice struct {
	name      string          // the group's name; "" for the map of a Secret
	target    *targets.Target // with the entries of the chosen variables
	in        map[string]bool // wildcard or node-specific variable → chosen; nil: none
	out       map[string]error
	left      []leftOut     // the entries of variables that are left out
	gone      []string      // variables left out that are proven to be gone
	lost      []string      // gone variables that the existing content holds
	uncertain []uncertainty // variables left out that the existing content may hold
	err       error         // why nothing can be delivered
	failed    bool          // nothing was delivered, and the existing content stays
}

// leftOut is an entry that the content lacks.
type leftOut struct {
	alias string
	// revoked means that the variable is gone and the existing content may hold its
	// value.
	revoked bool
}

// uncertainty is a reason to leave a part unchanged: an entry of it that was left out.
type uncertainty struct {
	targets.Entry
	part string
	err  error
}

// choose leaves out variables that come only from a wildcard and have no value. A
// variable that an entry names is never left out.
//
// Doubt removes nothing here either. A variable that the existing content may hold is
// left out only if it is proven to be gone. A variable that the content does not hold may
// be left out sooner. Therefore a variable that has no value, or that is visible but not
// readable, does not block all others.
//
// t is a file, a Secret's map or a group of a Secret.
func (s *Syncer) choose(r *job, t *targets.Target, answers map[string]variables.Answer) choice {
	c := choice{name: t.Group, target: t}
	if t.Expanded == nil {
		c.in = overridesOf(t)
		return c
	}
	c.in, c.out = make(map[string]bool, len(t.Expanded)), map[string]error{}
	before := r.Status.Content[c.name]
	reduced := *t
	reduced.Entries = make([]targets.Entry, 0, len(t.Entries))
	for _, e := range t.Entries {
		if !t.Expanded[e.Variable] || !s.leaveOut(&c, e, answers[e.Variable], before) {
			reduced.Entries = append(reduced.Entries, e)
		} else {
			in, seen := before[e.Variable]
			c.left = append(c.left, leftOut{e.Alias, answers[e.Variable].Verdict == variables.Gone && (in || !seen)})
		}
		if t.Expanded[e.Variable] {
			c.in[e.Variable] = c.out[e.Variable] == nil
		}
	}
	switch {
	case len(reduced.Entries) > 0:
		c.target = &reduced
	case len(t.Entries) == 0:
		c.err = &UnknownError{Key: r.Spec.Key, Errs: []error{errNoMatch}}
	case len(c.gone) < len(t.Entries):
		c.err, c.target = &UnknownError{Key: r.Spec.Key, Errs: errorsOf(t, c.out)}, &reduced
	default: // all of it is gone
		c.left, c.gone, c.lost = nil, nil, nil
	}
	return c
}

// leaveOut reports whether an entry of a wildcard is left out, and records why. before is
// the content's members; nil if they are not known.
func (s *Syncer) leaveOut(c *choice, e targets.Entry, a variables.Answer, before map[string]bool) bool {
	in, seen := before[e.Variable]
	err := a.Err
	if err == nil {
		err = &conjur.VariableError{Variable: e.Variable, Err: errNoAnswer}
	}
	if fault := aliasFault(c.target, e.Alias); fault != nil {
		c.out[e.Variable] = &conjur.VariableError{Variable: e.Variable, Err: fmt.Errorf("its id cannot be a key of format %s: %w", c.target.Format, fault)}
		return true
	}
	var suspect *variables.SuspectError
	switch {
	case isSet(e, a):
		err = &conjur.VariableError{Variable: e.Variable, Err: fmt.Errorf("it is a set of versions; name it in a separate entry, as {keys: %s}", e.Variable)}
	case a.Verdict == variables.Found:
		return false
	case a.Verdict == variables.Gone:
		if in && !s.Policy.RemoveRevoked {
			return false
		}
		c.gone = append(c.gone, e.Variable)
		if in {
			c.lost = append(c.lost, e.Variable)
		}
	case seen && !in: // without any new knowledge
	case errors.As(err, &suspect) && !in:
		if before == nil {
			c.uncertain = append(c.uncertain, uncertainty{e, c.part(e), err})
		}
	default:
		return false
	}
	c.out[e.Variable] = err
	return true
}

// aliasFault returns why the format cannot hold an entry with this alias. In the map of a
// Secret, which has no format, every alias is already a data key.
func aliasFault(t *targets.Target, alias string) error {
	if t.Format == "" {
		return nil
	}
	return render.CheckAlias(t.Format, alias)
}

// part returns the name of the part that holds an entry.
func (c *choice) part(e targets.Entry) string {
	if c.target.Format == "" {
		return e.Alias
	}
	return c.name
}

// leaveOutUnfit leaves out values that the format cannot hold, if err has no other cause.
// One keystore among all variables does not block the others.
func (c *choice) leaveOutUnfit(err error) bool {
	unfit := map[string]error{}
	for _, e := range render.ValueErrors(err) {
		if !c.target.Expanded[e.Alias] {
			return false // an entry names it
		}
		unfit[e.Alias] = e
	}
	reduced := *c.target
	reduced.Entries = slices.DeleteFunc(slices.Clone(reduced.Entries), func(e targets.Entry) bool { return unfit[e.Alias] != nil })
	if len(unfit) == 0 || len(reduced.Entries) == 0 {
		return false
	}
	for id, err := range unfit {
		c.in[id], c.out[id] = false, err
	}
	c.target = &reduced
	return true
}

// noteContent records the content that a target holds now, as far as later syncs need it.
// For a target with a wildcard, it reports the variables that are missing from the
// content.
func (s *Syncer) noteContent(r *job, d *draft) {
	if d.shows != nil || !d.held {
		r.Status.Sets = d.shows
	}
	if d.want.Gone != nil && d.want.Gone.Kept && d.want.Revoked == nil {
		return
	}
	if !d.held {
		r.Status.Expires = d.expires
	}
	for i, part := range r.Spec.Parts() {
		c := &d.choices[i]
		switch {
		case c.in == nil:
		case d.revokes(i) && s.Policy.RemoveRevoked: // it holds nothing, and the error says so
			r.Status.SetContent(c.name, map[string]bool{})
		case !d.held && !c.failed && !d.revokes(i):
			s.notePart(r, part, c)
		}
	}
}

func (s *Syncer) notePart(r *job, part *targets.Target, c *choice) {
	key, before := r.Spec.Key, r.Status.Content[c.name]
	fresh := map[string]error{}
	for id, err := range c.out {
		if in, seen := before[id]; in || !seen {
			fresh[id] = err
		}
	}
	if len(fresh) > 0 {
		s.Log.Warn("Variables are left out of a target that holds all variables", zap.String("target", string(key)),
			zap.Int("variables", len(fresh)), zap.String("why", firstReasons(errorsOf(part, fresh))))
	}
	r.Status.SetContent(c.name, c.in)
	if len(c.gone) > 0 {
		s.Targets.Release(key, c.gone...)
	}
}

// errorsOf sorts errors of variables into the order of the entries.
func errorsOf(t *targets.Target, byVariable map[string]error) (errs []error) {
	for _, id := range t.Variables() {
		if err := byVariable[id]; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
