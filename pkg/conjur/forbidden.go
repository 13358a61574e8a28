package conjur

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// execute is the privilege to read a variable's value.
const execute = "execute"

// anyGateway says why answers without a word of Conjur's prove nothing.
const anyGateway = "which any gateway may say, as it may the 403 for the value; so nothing is removed"

// forbid asks whether this identity may see a variable and not read it; nil if
// so. The server has no words for that: it answers 403 for the value and 404 for
// the check, both without a body, as any gateway may. It is believed when it
// also says what only Conjur can: the resource's own text, which names the
// variable, and that a check is answered yes where it should be. That is tried
// with another privilege on the same variable, by which it can be seen, and with
// a variable that was found in the same call.
func (k *call) forbid(id, name string, t *token) error {
	r, err := k.check(id, execute, t)
	switch {
	case err != nil:
		return err
	case r.status == http.StatusNotFound && len(r.body) == 0:
	case r.status == http.StatusNotFound && isJSON(r.header), r.status == http.StatusNoContent:
		return r.statusError("which contradicts the 403 for its value")
	default:
		return r.statusError("after a 403 for its value")
	}
	if err := k.seen(id, name, t); err != nil {
		return err
	}
	return k.control(t)
}

// check asks whether this identity has a privilege on a variable. The server
// answers 204 for yes, 404 without a body for no, and 404 with one for a
// variable that cannot be seen.
func (k *call) check(id, privilege string, t *token) (*reply, error) {
	req, err := k.checkRequest(id, privilege)
	if err != nil {
		return nil, err
	}
	return k.probe(t, KindCheck, fmt.Sprintf("%q", id), req)
}

// probe asks, beyond the question for a value, what only this token can.
func (k *call) probe(t *token, kind Kind, subject string, req *http.Request) (*reply, error) {
	k.budget--
	r, err := k.askWith(k.ctx, t, kind, subject, req)
	if err != nil {
		k.stop = err
	}
	return r, err
}

// seen asks for the resource itself, and for a privilege by which this identity
// can see it.
func (k *call) seen(id, name string, t *token) error {
	req, err := k.resourceRequest(id)
	if err != nil {
		return err
	}
	r, err := k.probe(t, KindResource, fmt.Sprintf("%q", id), req)
	if err != nil {
		return err
	}
	permissions, ok := decodeResource(r, k.resource(id))
	switch {
	case !ok:
		return r.statusError(anyGateway)
	case slices.Contains(permissions, permission{execute, k.role(name)}):
		return r.statusError("by which this identity may read it, which contradicts the 403 for its value")
	}
	for _, p := range otherPrivileges(permissions) {
		r, err = k.check(id, p, t)
		if err != nil || r.status == http.StatusNoContent {
			return err
		}
	}
	return r.statusError("whatever privilege was asked about, so that its no means nothing")
}

// permission is what a resource says that a role may do with it.
type permission struct{ Privilege, Role string }

// decodeResource reads the answer about a resource; false unless it is about the
// one that is called so.
func decodeResource(r *reply, full string) (permissions []permission, ok bool) {
	var answer struct {
		ID          string
		Permissions []permission
	}
	ok = r.status == http.StatusOK && isJSON(r.header) && json.Unmarshal(r.body, &answer) == nil && answer.ID == full
	return answer.Permissions, ok
}

// mostPrivileges bounds how many privileges are tried.
const mostPrivileges = 4

// otherPrivileges lists the privileges by which a variable can be seen, though
// not read; the usual one first.
func otherPrivileges(permissions []permission) []string {
	list := []string{"read"}
	for _, p := range permissions {
		if p.Privilege != execute && !slices.Contains(list, p.Privilege) && len(list) < mostPrivileges {
			list = append(list, p.Privilege)
		}
	}
	return list
}

// role is the full id of a role by the name that logs in.
func (c *Client) role(name string) string {
	if host, ok := strings.CutPrefix(name, "host/"); ok {
		return c.config.Account + ":host:" + host
	}
	return c.config.Account + ":user:" + name
}

// control has a check answered yes that must be: of a variable that was found in
// this call. It is done once in a call for each token; where none was found, it
// is not.
func (k *call) control(t *token) error {
	if err, known := k.controls[t]; known {
		return err
	}
	id, ok := k.memory.foundBy(k.step)
	if !ok {
		return nil
	}
	r, err := k.check(id, execute, t)
	if err == nil && r.status != http.StatusNoContent {
		err = r.statusError("though its value was given, so a no to the check of another variable means nothing")
	}
	k.controls[t] = err
	return err
}

// foundBy gives the first of the variables that a call has found.
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
