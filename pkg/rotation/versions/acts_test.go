package versions

// An act is one thing that happens, and the world after it.
type act struct {
	name string
	to   world
}

// acts appends all that may happen next.
func (m *model) acts(w world, out []act) []act {
	for i := range w.engines {
		switch leads := !m.lease || i == 0; {
		case w.engines[i].stage == acting:
			out = m.does(w, i, out)
		case !leads, m.lease && w.flight != 0: // it waits until no request can be under way
		case w.engines[i].stage == read:
			out = m.looks(w, i, out)
		default:
			to := w
			m.read(&to, i)
			out = append(out, act{"reads", to})
		}
		if w.engines[i].stage != off {
			to := w
			to.engines[i] = engine{}
			out = append(out, act{"crashes, or its request is lost", to})
		}
	}
	if w.passes < m.passes {
		to := w
		to.passes++
		to.engines = [2]engine{w.engines[1], w.engines[0]}
		if to.engines[1].stage == read {
			to.engines[1] = engine{} // it looks at the Lease before it goes on
		}
		out = append(out, act{"the Lease goes to the other", to})
	}
	if w.flight != 0 {
		to := w
		to.flight = 0
		out = append(out, act{"a late request is lost", to})
		m.arrive(&to, m.plans[w.flight].request)
		out = append(out, act{"a late request arrives", to})
	}
	for t := range w.shown {
		if to := w; m.deliver(&to, t) {
			out = append(out, act{"a target is made right", to})
		}
	}
	for i := range out {
		out[i].to.sort(!m.lease)
	}
	return out
}

// sort makes worlds that differ only in who is who the same. With a Lease, the
// first engine is the one that has it.
func (w *world) sort(engines bool) {
	if a, b := w.engines[0], w.engines[1]; engines && (b.stage < a.stage || b.stage == a.stage && b.at < a.at) {
		w.engines = [2]engine{b, a}
	}
	if w.shown[1] < w.shown[0] {
		w.shown = [2]uint16{w.shown[1], w.shown[0]}
	}
}

// read has an engine read the document that counts. If that one is not in its
// place it is written there again.
func (m *model) read(w *world, i int) {
	w.engines[i] = engine{read, w.cur}
	if !m.compare && !m.noConflict && (w.win != w.cur || w.stray != 0) {
		w.engines[i] = engine{acting, m.plan(plan{request: request{verb: Write, doc: m.again(w.win, w.stray)}})}
	}
}

func (m *model) again(win, stray uint16) uint16 {
	var others []*Document
	if stray != 0 {
		others = append(others, m.docs[stray])
	}
	return m.number(m.docs[win].Merge(Entry{At: at(0)}, others...))
}

// looks gathers facts, with each command that a person may have given.
func (m *model) looks(w world, i int, out []act) []act {
	n := w.engines[i].at
	k := m.look(w, n)
	for c := -1; c < len(m.commands); c++ {
		for _, due := range []bool{false, true} {
			if m.dice != nil && m.dice.IntN(2*len(m.commands)+2) != 0 {
				continue
			}
			k, to := k, w
			if k.due = due; c >= 0 {
				k.command = m.commands[c]
			}
			o := m.outlook(n, k)
			if o.takesID {
				if w.ids >= m.ids {
					continue
				}
				to.ids++
				k.now = to.ids
				o = m.outlook(n, k)
			}
			to.engines[i] = following(o.plan)
			out = append(out, act{"looks, command " + commands[k.command], to})
		}
	}
	return out
}

func following(plan uint16) engine {
	if plan == 0 {
		return engine{}
	}
	return engine{acting, plan}
}

// look is what the targets show.
func (m *model) look(w world, doc uint16) known {
	k := known{introduced: true, left: 0xffff}
	d := m.docs[doc]
	primary, _ := d.Primary()
	coming, _ := d.Coming()
	for _, n := range w.shown {
		shown := m.facts[n]
		if shown.step > d.Step {
			k.ahead = true
		}
		if coming.State != Accepted || shown.step < coming.Step || shown.usable&(1<<numberOf(coming.ID)) == 0 {
			k.introduced = false
		}
		for place, v := range d.Versions {
			if primary.ID == "" || shown.step < v.Step || shown.primary != numberOf(primary.ID) {
				k.left &^= 1 << place
			}
			if numberOf(v.ID) == shown.primary {
				k.shown |= 1 << place
			}
		}
	}
	return k
}

// does acts as is planned, now or late.
func (m *model) does(w world, i int, out []act) []act {
	p := m.plans[w.engines[i].at]
	to := w
	next := p.bad
	if m.arrive(&to, p.request) {
		next = p.good
	}
	if to.engines[i] = following(next); m.lease && i != 0 {
		to.engines[i] = engine{} // it looks at the Lease after each act
	}
	out = append(out, act{string(p.verb), to})
	if m.late && w.flight == 0 && p.verb != Verify {
		to = w
		p.good, p.bad = 0, 0
		to.flight, to.engines[i] = m.plan(p), engine{}
		out = append(out, act{string(p.verb) + " late", to})
	}
	return out
}

// arrive is Conjur, or the outside, that receives a request.
func (m *model) arrive(w *world, r request) bool {
	u := &w.users[r.turn]
	switch {
	case r.verb == Write:
		if m.compare && w.cur != r.base {
			return false
		}
		w.cur = r.doc
		other := r.doc
		if m.noConflict || m.docs[r.doc].Supersedes(m.docs[w.win]) {
			w.win, other = r.doc, w.win
		}
		if w.stray == 0 || m.knows(w.win, w.stray) {
			w.stray = 0
			if !m.noConflict && !m.knows(w.win, other) {
				w.stray = other
			}
		}
	case r.verb == Verify:
		return u.login && u.version == r.login.version
	case m.noFence && r.verb == Apply:
		*u = r.login
	case m.noFence:
		u.login = false
	case r.verb == Apply:
		if r.login.fence < u.fence || r.login.fence == u.fence && !u.login {
			return false
		}
		*u = r.login
	case r.login.fence < u.fence: // of Revoke
		return u.version != r.login.version || !u.login
	default:
		*u = r.login
		u.login = false
	}
	return true
}

// knows reports whether a document has all that another one has, and a higher
// step.
func (m *model) knows(n, other uint16) bool {
	if n == other {
		return true
	}
	d, o := m.docs[n], m.docs[other]
	for _, v := range o.Versions {
		if _, known := d.Version(v.ID); !known {
			return false
		}
	}
	return d.Step > o.Step
}

// deliver makes a target right. One that shows this step or a higher one, and a set without
// a primary, are left alone.
func (m *model) deliver(w *world, t int) bool {
	if m.facts[w.cur].primary == 0 || m.facts[w.cur].step <= m.facts[w.shown[t]].step {
		return false
	}
	w.shown[t] = w.cur
	return true
}
