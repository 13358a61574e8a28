package store

import "strings"

// Permission is one privilege of a role on a resource, and the policy that
// gave it.
type Permission struct{ Resource, Privilege, Role, Policy string }

// PutPermission grants it.
func (t *Tx) PutPermission(p Permission) error {
	if err := t.privileges.Put(key(p.Role, p.Resource, p.Privilege), nil); err != nil {
		return err
	}
	return t.permissions.Put(key(p.Resource, p.Privilege, p.Role), []byte(p.Policy))
}

// GivenBy returns the policy that gave this permission; false when there is no
// such permission.
func (t *Tx) GivenBy(p Permission) (string, bool) {
	policy := t.permissions.Get(key(p.Resource, p.Privilege, p.Role))
	return string(policy), policy != nil
}

// DeletePermission takes it; it need not be there.
func (t *Tx) DeletePermission(p Permission) error {
	if err := t.privileges.Delete(key(p.Role, p.Resource, p.Privilege)); err != nil {
		return err
	}
	return t.permissions.Delete(key(p.Resource, p.Privilege, p.Role))
}

// Permissions lists those on a resource, by privilege, then role.
func (t *Tx) Permissions(resource string) []Permission {
	var out []Permission
	for k, policy := range scan(t.permissions, prefix(resource)) {
		privilege, role := cutLast(k)
		out = append(out, Permission{resource, privilege, role, string(policy)})
	}
	return out
}

// PrivilegesOf lists what the role itself was given, by resource. It leaves
// out the policies.
func (t *Tx) PrivilegesOf(role string) []Permission {
	var out []Permission
	for k := range scan(t.privileges, prefix(role)) {
		resource, privilege := cutLast(k)
		out = append(out, Permission{Resource: resource, Privilege: privilege, Role: role})
	}
	return out
}

// Allowed reports whether the roles have the privilege on the resource, which
// is o: given to one of them, or because one of them owns it.
func (t *Tx) Allowed(roles Roles, privilege, resource string, o *Object) bool {
	if roles[o.Owner] {
		return true
	}
	for role := range scan(t.permissions, prefix(resource, privilege)) {
		if roles[role] {
			return true
		}
	}
	return false
}

// AllowedAny reports whether the roles have the privilege on anything whose
// name begins with start, such as "account:variable:".
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
