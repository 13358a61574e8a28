package store

// Membership of a role.
type Membership struct {
	Role      string `json:"-"`
	Member    string `json:"-"`
	Admin     bool   `json:"admin,omitempty"`
	Ownership bool   `json:"ownership,omitempty"` // comes from owning the role
	Policy    string `json:"policy,omitempty"`
}

// PutMembership makes or changes a membership.
func (t *Tx) PutMembership(m Membership) error {
	if err := t.memberships.Put(key(m.Member, m.Role), nil); err != nil {
		return err
	}
	return put(t.members, key(m.Role, m.Member), m)
}

// Membership gives member's membership of role; false when there is none.
func (t *Tx) Membership(role, member string) (Membership, bool, error) {
	m, ok, err := get[Membership](t.members, key(role, member))
	m.Role, m.Member = role, member
	return m, ok, err
}

// DeleteMembership ends one; it need not exist.
func (t *Tx) DeleteMembership(role, member string) error {
	if err := t.memberships.Delete(key(member, role)); err != nil {
		return err
	}
	return t.members.Delete(key(role, member))
}

// Members lists the direct members of role.
func (t *Tx) Members(role string) ([]Membership, error) {
	var out []Membership
	for _, member := range keys(t.members, prefix(role)) {
		m, _, err := t.Membership(role, member)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Memberships lists the roles that member belongs to directly.
func (t *Tx) Memberships(member string) ([]Membership, error) {
	var out []Membership
	for _, role := range keys(t.memberships, prefix(member)) {
		m, _, err := t.Membership(role, member)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Roles is a role and all that it is a member of, directly or not.
type Roles map[string]bool

// RolesOf gives role's Roles; nil when there is no such role, which then may
// do nothing.
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

// MembersOf gives the names of role's direct members.
func (t *Tx) MembersOf(role string) []string { return keys(t.members, prefix(role)) }

// MembershipsOf gives the names of the roles that member belongs to directly.
func (t *Tx) MembershipsOf(member string) []string { return keys(t.memberships, prefix(member)) }

// Holders is the opposite of RolesOf: role and all who are members of it,
// directly or not.
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
		if err := t.DeleteMembership(id, member); err != nil {
			return err
		}
	}
	for _, role := range keys(t.memberships, prefix(id)) {
		if err := t.DeleteMembership(role, id); err != nil {
			return err
		}
	}
	return nil
}

// DeleteMembershipsOf ends the memberships that the policy granted, except
// those that come from owning.
func (t *Tx) DeleteMembershipsOf(policy string) error {
	for _, k := range keys(t.members, nil) {
		role, member := cutLast(k)
		m, _, err := t.Membership(role, member)
		if err != nil {
			return err
		}
		if m.Policy == policy && !m.Ownership {
			if err := t.DeleteMembership(role, member); err != nil {
				return err
			}
		}
	}
	return nil
}
