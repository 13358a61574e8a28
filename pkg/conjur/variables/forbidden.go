package variables

import (
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
)

// anyGateway says why answers without a text from Conjur prove nothing.
const anyGateway = "which any gateway may say, as it may the 403 for the value; so nothing is removed"

// forbid returns nil if this identity may see a variable and may not read it. The
// server has no message for that. It answers 403 for the value and 404 for the
// check, both without a body, as a gateway might. Therefore further answers are
// required that only Conjur gives: the resource's description, which names the
// variable, and checks that must be answered yes. One asks about another privilege
// on the same variable that makes it visible. One asks about a variable that was
// found in the same call.
func (k *call) forbid(id, role string, t *conjur.Token) error {
	switch r := k.checkPrivilege(id, conjur.Execute, t); {
	case r.Token == nil:
		return r.Err
	case r.Form == conjur.Missing, r.Form == conjur.Given:
		return r.Because("which contradicts the 403 for its value")
	case r.Form != conjur.No:
		return r.Because("after a 403 for its value")
	}
	if err := k.seen(id, role, t); err != nil {
		return err
	}
	return k.control(t)
}

// checkPrivilege asks whether this identity has a privilege on a variable.
func (k *call) checkPrivilege(id, privilege string, t *conjur.Token) conjur.Reading {
	return k.probed(k.conjur.Check(k.ctx, t, id, privilege))
}

// seen requests the resource's description, and checks a privilege by which this
// identity can see it.
func (k *call) seen(id, role string, t *conjur.Token) error {
	about, r := k.conjur.Resource(k.ctx, t, id)
	k.probed(r)
	switch {
	case r.Form != conjur.Given:
		return r.Because(anyGateway)
	case slices.Contains(about.Permissions, conjur.Permission{Privilege: conjur.Execute, Role: role}):
		return r.Because("by which this identity may read it, which contradicts the 403 for its value")
	}
	for _, p := range otherPrivileges(about.Permissions) {
		r = k.checkPrivilege(id, p, t)
		if r.Token == nil {
			return r.Err
		}
		if r.Form == conjur.Given {
			return nil
		}
	}
	k.conjurAnswered = true // Conjur answered, although the answer proves nothing
	return r.Because("whatever privilege was asked about, so that its no means nothing")
}

// mostPrivileges bounds the privileges to check.
const mostPrivileges = 4

// otherPrivileges lists the privileges that make a variable visible but not
// readable. The usual one comes first.
func otherPrivileges(permissions []conjur.Permission) []string {
	list := []string{"read"}
	for _, p := range permissions {
		if p.Privilege != conjur.Execute && !slices.Contains(list, p.Privilege) && len(list) < mostPrivileges {
			list = append(list, p.Privilege)
		}
	}
	return list
}

// control makes a check that must be answered yes, on a variable that was found in
// this call. It runs once per call and token. It does nothing if no variable was
// found.
func (k *call) control(t *conjur.Token) error {
	if err, known := k.controls[t]; known {
		return err
	}
	id, ok := k.memory.foundBy(k.step)
	if !ok {
		return nil
	}
	r := k.checkPrivilege(id, conjur.Execute, t)
	if r.Form != conjur.Given {
		k.controls[t] = r.Because("though its value was given, so a no to the check of another variable means nothing")
	} else {
		k.controls[t] = nil
	}
	return k.controls[t]
}

// foundBy returns the first variable that a call found.
func (m *memory) foundBy(call uint64) (first string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, v := range m.vars {
		if v.foundIn == call && (!ok || strings.Compare(id, first) < 0) {
			first, ok = id, true
		}
	}
	return first, ok
}
