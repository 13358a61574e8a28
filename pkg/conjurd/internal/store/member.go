package store

// Membership of a role. A member can have two memberships in one role: as its
// owner, and by a grant.
type Membership struct {
	Role      string
	Member    string
	Admin     bool
	Ownership bool   // follows from ownership of the role
	Policy    string // policy that created it
}

// link is the stored form of a membership.
type link struct {
	Admin     bool   `json:"admin,omitempty"`
	Ownership bool   `json:"ownership,omitempty"`
	Policy    string `json:"policy,omitempty"`
	Granted   *link  `json:"granted,omitempty"` // in addition to the ownership, if both exist
}

// links holds a member's two possible memberships in a role. Each is nil if absent.
type links struct{ owned, granted *link }

func (t *Tx) links(role, member string) (links, error) {
	l, ok, err := get[link](t.members, key(role, member))
	switch {
	case err != nil || !ok:
		return links{}, err
	case !l.Ownership:
		return links{granted: &l}, nil
	}
	return links{owned: &l, granted: l.Granted}, nil
}

func (t *Tx) putLinks(role, member string, l links) error {
	if l.owned == nil && l.granted == nil {
		if err := t.memberships.Delete(key(member, role)); err != nil {
			return err
		}
		return t.members.Delete(key(role, member))
	}
	if err := t.memberships.Put(key(member, role), nil); err != nil {
		return err
	}
	if l.owned == nil {
		return put(t.members, key(role, member), l.granted)
	}
	l.owned.Granted = l.granted
	return put(t.members, key(role, member), l.owned)
}

// of returns the location of the membership.
func (l *links) of(ownership bool) **link {
	if ownership {
		return &l.owned
	}
	return &l.granted
}

// PutMembership creates or changes a membership.
func (t *Tx) PutMembership(m Membership) error {
	l, err := t.links(m.Role, m.Member)
	if err != nil {
		return err
	}
	*l.of(m.Ownership) = &link{Admin: m.Admin, Ownership: m.Ownership, Policy: m.Policy}
	return t.putLinks(m.Role, m.Member, l)
}

// Membership returns member's membership in role: by ownership or by grant. It
// returns false if there is none.
func (t *Tx) Membership(role, member string, ownership bool) (Membership, bool, error) {
	l, err := t.links(role, member)
	found := *l.of(ownership)
	if err != nil || found == nil {
		return Membership{}, false, err
	}
	return Membership{role, member, found.Admin, ownership, found.Policy}, true, nil
}

// DeleteMembership removes a membership. It need not exist.
func (t *Tx) DeleteMembership(role, member string, ownership bool) error {
	l, err := t.links(role, member)
	if err != nil {
		return err
	}
	*l.of(ownership) = nil
	return t.putLinks(role, member, l)
}

// between returns the one or two memberships of member in role.
func (t *Tx) between(role, member string) ([]Membership, error) {
	var out []Membership
	for _, ownership := range []bool{false, true} {
		m, ok, err := t.Membership(role, member, ownership)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// Members lists the direct members of role.
func (t *Tx) Members(role string) ([]Membership, error) {
	var out []Membership
	for _, member := range keys(t.members, prefix(role)) {
		list, err := t.between(role, member)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// Memberships lists the roles that member belongs to directly.
func (t *Tx) Memberships(member string) ([]Membership, error) {
	var out []Membership
	for _, role := range keys(t.memberships, prefix(member)) {
		list, err := t.between(role, member)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// Roles contains a role and all roles that it is a direct or indirect member of.
type Roles map[string]bool

// RolesOf returns the Roles of role. It returns nil if role does not exist, so that
// it has no privileges.
func (t *Tx) RolesOf(role string) Roles {
	if !t.Exists(role) {
		return nil
	}
	roles := Roles{role: true}
	for todo := []string{role}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for r := range scan(t.memberships, prefix(next)) {
			if !roles[r] {
				roles[r] = true
				todo = append(todo, r)
			}
		}
	}
	return roles
}

// MembersOf returns the names of role's direct members.
func (t *Tx) MembersOf(role string) []string { return keys(t.members, prefix(role)) }

// MembershipsOf returns the names of the roles that member belongs to directly.
func (t *Tx) MembershipsOf(member string) []string { return keys(t.memberships, prefix(member)) }

// Holders is the inverse of RolesOf: it returns role and its direct and indirect
// members.
func (t *Tx) Holders(role string) Roles {
	out := Roles{role: true}
	for todo := []string{role}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for m := range scan(t.members, prefix(next)) {
			if !out[m] {
				out[m] = true
				todo = append(todo, m)
			}
		}
	}
	return out
}

func (t *Tx) clearMembers(id string) error {
	for _, member := range keys(t.members, prefix(id)) {
		if err := t.putLinks(id, member, links{}); err != nil {
			return err
		}
	}
	for _, role := range keys(t.memberships, prefix(id)) {
		if err := t.putLinks(role, id, links{}); err != nil {
			return err
		}
	}
	return nil
}
