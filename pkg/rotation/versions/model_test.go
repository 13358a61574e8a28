package versions

import (
	"fmt"
	"strings"
	"testing"
)

const leftOver = "a login is left over"

// judge says what is wrong in a world. It knows nothing of states and stages:
// it is the consumers' view.
func (m *model) judge(w world) string {
	if m.outside {
		for _, n := range [...]uint16{w.shown[0], w.shown[1], w.win} {
			f := m.facts[n]
			if u := w.users[f.user]; !u.login || u.version != f.primary {
				return "the login that is handed out is refused"
			}
		}
		return ""
	}
	for _, signer := range w.shown {
		for _, verifier := range w.shown {
			if m.facts[verifier].usable&(1<<m.facts[signer].primary) == 0 {
				return "what one signs, another cannot verify"
			}
		}
	}
	return ""
}

// leaks says what is wrong with a world in which nothing is left to do.
func (m *model) leaks(w world) string {
	f := m.facts[w.win]
	if w.cur != w.win {
		return "the document that counts is not in its place"
	}
	for _, n := range w.shown {
		if n != w.cur {
			return "a target is left behind"
		}
	}
	for turn, u := range w.users {
		if u.login && (turn != f.user || u.version != f.primary) {
			return leftOver
		}
	}
	if stage := m.docs[w.cur].Stage(); stage != "idle" {
		return "it is stuck at " + stage
	}
	return ""
}

// recovers says whether a world comes to rest by itself, and well, once nothing
// fails any more: one engine works on, and the targets follow. Where writes are
// not compared, two engines may have begun a version each at the same moment.
// The one that counts may then be given up, and the login of the other one be
// left until its user's turn comes again, two rotations later at most.
func (m *model) recovers(w world, well map[world]bool) string {
	w.engines, w.flight = [2]engine{}, 0
	var path []world
	helps := []known{{command: 2}}
	if m.compare {
		helps = nil
	}
	for range 300 {
		if well[w] {
			for _, p := range path {
				well[p] = true
			}
			return ""
		}
		path = append(path, w)
		before := w
		for m.deliver(&w, 0) || m.deliver(&w, 1) {
		}
		m.turn(&w, known{})
		if wrong := m.judge(w); wrong != "" {
			return wrong
		}
		if w != before {
			continue
		}
		wrong := m.leaks(w)
		switch {
		case wrong == "":
			well[w] = true
		case len(helps) == 0:
			return wrong
		default:
			m.turn(&w, helps[0])
			helps = helps[1:]
		}
	}
	return "it never comes to rest"
}

// turn is one engine's way from reading to the end, without a fault.
func (m *model) turn(w *world, help known) {
	m.read(w, 0)
	if e := w.engines[0]; e.stage == read {
		k := m.look(*w, e.at)
		k.due, k.command = help.due, help.command
		if k.due {
			w.ids++
			k.now = w.ids
		}
		w.engines[0] = following(m.outlook(e.at, k).plan)
	}
	for w.engines[0].stage == acting {
		*w = m.does(*w, 0, nil)[0].to
	}
}

// explore walks all worlds, and returns how many there are and the story of the
// first one in which something is wrong.
func (m *model) explore() (count int, story string) {
	type step struct {
		from int
		name string
		world
	}
	first := m.start()
	steps := []step{{-1, "starts", first}}
	seen := map[world]bool{first: true}
	well := map[world]bool{}
	tell := func(i int, wrong string) string {
		var lines []string
		for ; i >= 0; i = steps[i].from {
			lines = append([]string{fmt.Sprintf("%s\n\t%s", steps[i].name, m.describe(steps[i].world))}, lines...)
		}
		return wrong + ":\n" + strings.Join(lines, "\n")
	}
	var buf []act
	for i := 0; i < len(steps); i++ {
		w := steps[i].world
		wrong := m.judge(w)
		if wrong == "" {
			wrong = m.recovers(w, well)
		}
		if wrong != "" {
			return len(steps), tell(i, wrong)
		}
		buf = m.acts(w, buf[:0])
		for _, a := range buf {
			if !seen[a.to] {
				seen[a.to] = true
				steps = append(steps, step{i, a.name, a.to})
			}
		}
	}
	return len(steps), ""
}

func (m *model) describe(w world) string {
	show := func(n uint16) string {
		d := m.docs[n]
		if d == nil {
			return "-"
		}
		s := fmt.Sprintf("#%d step %d", n, d.Step)
		for _, v := range d.Versions {
			s += fmt.Sprintf(" %d/%d %s", numberOf(v.ID), numberOf(v.Fence), v.State)
		}
		return s
	}
	s := fmt.Sprintf("conjur: %s; counts: %s\n\toutside: %+v\n\ttargets: %s | %s", show(w.cur), show(w.win), w.users, show(w.shown[0]), show(w.shown[1]))
	plan := func(n uint16) string {
		p := m.plans[n]
		if p.verb == Write {
			return fmt.Sprintf("write %s over #%d", show(p.doc), p.base)
		}
		return fmt.Sprint(p.verb, p.login, p.turn)
	}
	for _, e := range w.engines {
		switch e.stage {
		case off:
			s += "\n\tengine: off"
		case read:
			s += "\n\tengine: has read " + show(e.at)
		case acting:
			s += "\n\tengine: is to " + plan(e.at)
		}
	}
	if w.flight != 0 {
		s += "\n\tunder way: " + plan(w.flight)
	}
	return s
}

func TestModel(t *testing.T) {
	const rollback, abort, retire = 1, 2, 3
	runs := []struct {
		name string
		rules
		long bool
	}{
		{"logins, a version", rules{outside: true, compare: true, late: true, commands: []uint8{rollback, abort}, ids: 2}, true},
		{"logins, a version, not late", rules{outside: true, compare: true, commands: []uint8{rollback, abort, retire}, ids: 2}, false},
		{"logins, rollback", rules{outside: true, compare: true, late: true, commands: []uint8{rollback}, ids: 3}, true},
		{"logins, abort", rules{outside: true, compare: true, commands: []uint8{abort, retire}, ids: 3}, true},
		{"logins, not compared", rules{outside: true, late: true, commands: []uint8{abort}, ids: 3, lease: true, passes: 1}, false},
		{"logins, not compared, rollback", rules{outside: true, commands: []uint8{rollback}, ids: 3, lease: true, passes: 1}, false},
		{"keys, a version", rules{compare: true, late: true, commands: []uint8{rollback, abort}, ids: 2}, false},
		{"keys", rules{compare: true, commands: []uint8{rollback, abort}, ids: 3}, true},
		{"keys, not compared", rules{late: true, commands: []uint8{abort}, ids: 3, lease: true, passes: 1}, false},
		{"keys, not compared, rollback", rules{commands: []uint8{rollback}, ids: 3, lease: true, passes: 1}, true},
	}
	for _, run := range runs {
		if run.long && (raced || testing.Short()) {
			continue // the same walk as the others, an order of magnitude longer
		}
		t.Run(run.name, func(t *testing.T) {
			m := newModel(run.rules)
			count, story := m.explore()
			t.Logf("%d worlds, %d documents, %d plans", count, len(m.docs), len(m.plans))
			if story != "" {
				t.Error(story)
			}
		})
	}
}

// TestModelNeedsItsRules shows that the judge sees what the rules are for.
func TestModelNeedsItsRules(t *testing.T) {
	const rollback, abort = 1, 2
	for name, r := range map[string]rules{
		"the fence":                 {outside: true, compare: true, late: true, ids: 3, noFence: true},
		"the rule which one counts": {outside: true, commands: []uint8{abort}, ids: 3, lease: true, passes: 1, noConflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			count, story := newModel(r).explore()
			if story == "" {
				t.Errorf("%d worlds are well without it", count)
			}
			wrong, _, _ := strings.Cut(story, "\n")
			t.Logf("after %d worlds: %s", count, wrong)
		})
	}
}
