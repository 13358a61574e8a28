package store

import "strings"

// Permission is a privilege of a role on a resource, with the policy that granted
// it.
type Permission struct{ Resource, Privilege, Role, Policy string }

// PutPermission grants the permission.
func (t *Tx) PutPermission(p Permission) error {
	if err := t.privileges.Put(key(p.Role, p.Resource, p.Privilege), nil); err != nil {
		return err
	}
	return t.permissions.Put(key(p.Resource, p.Privilege, p.Role), []byte(p.Policy))
}

// GivenBy returns the policy that granted the permission. It returns false if there
// is no such permission.
func (t *Tx) GivenBy(p Permission) (string, bool) {
	policy := t.permissions.Get(key(p.Resource, p.Privilege, p.Role))
	return string(policy), policy != nil
}

// DeletePermission removes the permission. It need not exist.
func (t *Tx) DeletePermission(p Permission) error {
	if err := t.privileges.Delete(key(p.Role, p.Resource, p.Privilege)); err != nil {
		return err
	}
	return t.permissions.Delete(key(p.Resource, p.Privilege, p.Role))
}

// Permissions lists the permissions on a resource, by privilege, then role.
func (t *Tx) Permissions(resource string) []Permission {
	var out []Permission
	for k, policy := range scan(t.permissions, prefix(resource)) {
		privilege, role := cutLast(k)
		out = append(out, Permission{resource, privilege, role, string(policy)})
	}
	return out
}

// PrivilegesOf lists the direct permissions of the role, by resource. It leaves the
// policies empty.
func (t *Tx) PrivilegesOf(role string) []Permission {
	var out []Permission
	for k := range scan(t.privileges, prefix(role)) {
		resource, privilege := cutLast(k)
		out = append(out, Permission{Resource: resource, Privilege: privilege, Role: role})
	}
	return out
}

// Allowed reports whether the roles have the privilege on the resource o: by
// permission or as its owner.
func (t *Tx) Allowed(roles Roles, privilege, resource string, o *Object) bool {
	return roles[o.Owner] || t.Permitted(roles, privilege, resource)
}

// Permitted reports whether the roles have the privilege on the resource by permission.
// Unlike Allowed, it needs no decoded object.
func (t *Tx) Permitted(roles Roles, privilege, resource string) bool {
	for role := range scan(t.permissions, prefix(resource, privilege)) {
		if roles[role] {
			return true
		}
	}
	return false
}

// AllowedAny reports whether the roles have the privilege on at least one object
// whose name begins with start, such as "account:variable:".
func (t *Tx) AllowedAny(roles Roles, privilege, start string) bool {
	for role := range roles {
		for range scan(t.owned, append(prefix(role), start...)) {
			return true
		}
		for k := range scan(t.privileges, append(prefix(role), start...)) {
			if _, p := cutLast(k); p == privilege {
				return true
			}
		}
	}
	return false
}

// Visible reports whether the roles have any privilege on the resource.
func (t *Tx) Visible(roles Roles, resource string, o *Object) bool {
	if roles[o.Owner] {
		return true
	}
	for k := range scan(t.permissions, prefix(resource)) {
		if _, role := cutLast(k); roles[role] {
			return true
		}
	}
	return false
}

func (t *Tx) clearPermissions(id string) error {
	for _, p := range t.Permissions(id) {
		if err := t.DeletePermission(p); err != nil {
			return err
		}
	}
	for _, k := range keys(t.privileges, prefix(id)) {
		resource, privilege, _ := strings.Cut(k, "\x00")
		if err := t.DeletePermission(Permission{Resource: resource, Privilege: privilege, Role: id}); err != nil {
			return err
		}
	}
	return nil
}
