package store

// Forget removes everything that the policies granted, permitted and annotated,
// including on objects of other policies. It keeps memberships that follow from
// ownership, unless owners is true.
func (t *Tx) Forget(policies map[string]bool, owners bool) error {
	for _, step := range []func(map[string]bool) error{
		func(p map[string]bool) error { return t.forgetMemberships(p, owners) }, t.forgetPermissions, t.forgetAnnotations,
	} {
		if err := step(policies); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) forgetMemberships(policies map[string]bool, owners bool) error {
	for _, k := range keys(t.members, nil) {
		role, member := cutLast(k)
		l, err := t.links(role, member)
		if err != nil {
			return err
		}
		granted := l.granted != nil && policies[l.granted.Policy]
		owned := owners && l.owned != nil && policies[l.owned.Policy]
		if granted {
			l.granted = nil
		}
		if owned {
			l.owned = nil
		}
		if granted || owned {
			if err := t.putLinks(role, member, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tx) forgetPermissions(policies map[string]bool) error {
	var gone []Permission
	for k, policy := range scan(t.permissions, nil) {
		if policies[string(policy)] {
			rest, role := cutLast(k)
			resource, privilege := cutLast(rest)
			gone = append(gone, Permission{Resource: resource, Privilege: privilege, Role: role})
		}
	}
	for _, p := range gone {
		if err := t.DeletePermission(p); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) forgetAnnotations(policies map[string]bool) error {
	changed := map[string]*Object{}
	for id, o := range t.Objects("") {
		var kept []Annotation
		for _, a := range o.Annotations {
			if !policies[a.Policy] {
				kept = append(kept, a)
			}
		}
		if len(kept) < len(o.Annotations) {
			o.Annotations = kept
			changed[id] = o
		}
	}
	for id, o := range changed {
		if err := t.PutObject(id, o); err != nil {
			return err
		}
	}
	return nil
}
