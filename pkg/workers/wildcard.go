package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
)

var (
	errNotListed = errors.New("it is not known which variables there are")
	errNoMatch   = errors.New("the identity can see no variable that its * stands for")
)

// list has the variables listed for targets that wait for that, and gives the
// targets with them in.
func (s *Syncer) list(ctx context.Context, keys []targets.Key, report func(Result)) (ts []*targets.Target) {
	err := errNotListed
	if s.List != nil {
		err = s.List(ctx)
	}
	for _, key := range keys {
		t, ok := s.Targets.Get(key)
		switch {
		case !ok:
			report(Result{Key: key})
		case err == nil && t.Wildcard():
			err = errNotListed
			fallthrough
		case err != nil:
			report(Result{Key: key, Err: &UnknownError{Key: key, Errs: []error{err}}})
		default:
			ts = append(ts, s.recall(ctx, t))
		}
	}
	return ts
}

// choice is which variables the content of a target, or of a Secret's group, is
// to have.
type choice struct {
	name   string          // the group's; "" for the map of a Secret
	target *targets.Target // with the entries of these
	in     map[string]bool // variable of a wildcard → it is among them; nil: there is no wildcard
	out    map[string]error
	left   []leftOut // the entries of those that are out
	gone   []string  // of those that are out: proven to be gone
	lost   []string  // of those that are gone: they are in what is there
	doubts []doubt   // of those that are out: they may be in what is there
	err    error     // why there is nothing to deliver
	failed bool      // it was not delivered, and what is there stays
}

// leftOut is an entry that is left out of the content.
type leftOut struct {
	alias string
	// revoked: its variable is gone, and may be in what is there.
	revoked bool
}

// doubt is a reason to leave a part as it is.
type doubt struct {
	part string
	err  error
}

// choose leaves out what only a wildcard brings in and what has no value. For
// a variable that an entry names there is no choice.
//
// Nothing is removed on doubt here either: what may be in the content that is
// there is left out only when it is proven to be gone. What is not in it may be
// left out sooner, so that a variable without a value, or one that may be seen
// and not read, does not hold up all others.
//
// t is a file, a Secret's map or a group of it, and key names the whole target.
func (s *Syncer) choose(key targets.Key, t *targets.Target, answers map[string]variables.Answer) choice {
	c := choice{name: t.Group, target: t}
	if t.Expanded == nil {
		return c
	}
	c.in, c.out = make(map[string]bool, len(t.Expanded)), map[string]error{}
	before := s.contents.of(key, c.name)
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
		c.err = &UnknownError{Key: key, Errs: []error{errNoMatch}}
	case len(c.gone) < len(t.Entries):
		c.err, c.target = &UnknownError{Key: key, Errs: errorsOf(t, c.out)}, &reduced
	default: // the whole of it is gone
		c.left, c.gone, c.lost = nil, nil, nil
	}
	return c
}

// leaveOut tells whether an entry that a wildcard brought in is left out, and
// notes why. before is what the content has; nil when that is not known.
func (s *Syncer) leaveOut(c *choice, e targets.Entry, a variables.Answer, before map[string]bool) bool {
	in, seen := before[e.Variable]
	err := a.Err
	if err == nil {
		err = fmt.Errorf("variable %q: no answer", e.Variable)
	}
	if fault := aliasFault(c.target, e.Alias); fault != nil {
		c.out[e.Variable] = fmt.Errorf("variable %q: its id cannot be a key of format %s: %w", e.Variable, c.target.Format, fault)
		return true
	}
	var suspect *variables.SuspectError
	switch {
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
	case seen && !in: // and nothing new is known
	case errors.As(err, &suspect) && !in:
		if before == nil {
			c.doubts = append(c.doubts, doubt{c.part(e), err})
		}
	default:
		return false
	}
	c.out[e.Variable] = err
	return true
}

// aliasFault tells why the format cannot hold an entry of this alias. In the
// map of a Secret, which has no format, each has a data key already.
func aliasFault(t *targets.Target, alias string) error {
	if t.Format == "" {
		return nil
	}
	return render.CheckAlias(t.Format, alias)
}

// part names the part that holds an entry.
func (c *choice) part(e targets.Entry) string {
	if c.target.Format == "" {
		return e.Alias
	}
	return c.name
}

// leaveOutUnfit leaves out values that the format cannot hold, if err is about
// nothing else: one keystore among all variables does not hold up the others.
func (c *choice) leaveOutUnfit(err error) bool {
	unfit := map[string]error{}
	for _, e := range render.ValueErrors(err) {
		if _, ok := c.in[e.Alias]; !ok {
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

// settle remembers what a target with a wildcard holds now, and tells of what
// it does not.
func (s *Syncer) settle(t *targets.Target, d *draft) {
	if d.want.Gone != nil && d.want.Gone.Kept && d.want.Revoked == nil {
		return
	}
	for i, part := range t.Parts() {
		c := &d.choices[i]
		switch {
		case c.in == nil:
		case d.fell(i) && s.Policy.RemoveRevoked: // it holds nothing, and the error tells
			s.contents.set(t.Key, c.name, map[string]bool{})
		case !d.held && !c.failed && !d.fell(i):
			s.settlePart(t.Key, part, c)
		}
	}
}

func (s *Syncer) settlePart(key targets.Key, part *targets.Target, c *choice) {
	before := s.contents.of(key, c.name)
	fresh := map[string]error{}
	for id, err := range c.out {
		if in, seen := before[id]; in || !seen {
			fresh[id] = err
		}
	}
	if len(fresh) > 0 {
		s.Log.Warn("Variables are left out of a target that holds all variables", zap.String("target", string(key)),
			zap.Int("variables", len(fresh)), zap.String("why", list(errorsOf(part, fresh))))
	}
	s.contents.set(key, c.name, c.in)
	if len(c.gone) > 0 {
		s.Targets.Release(key, c.gone...)
	}
}

// errorsOf puts errors of variables into the order of the entries.
func errorsOf(t *targets.Target, byVariable map[string]error) (errs []error) {
	for _, id := range t.Variables() {
		if err := byVariable[id]; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// contents is what is known of the targets with a wildcard: of each group, and
// under "" of a Secret's map, which variables its content has, true, and which
// were left out of it, false. What it is given and gives is not changed any
// more.
type contents struct {
	mu    sync.Mutex
	byKey map[targets.Key]map[string]map[string]bool
}

// of gives nil when it is not known what the content has.
func (m *contents) of(key targets.Key, group string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key][group]
}

func (m *contents) set(key targets.Key, group string, in map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[targets.Key]map[string]map[string]bool{}
	}
	if m.byKey[key] == nil {
		m.byKey[key] = map[string]map[string]bool{}
	}
	m.byKey[key][group] = in
}

func (m *contents) forget(key targets.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
