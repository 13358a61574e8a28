package load

import (
	"iter"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// A membership or permission belongs to the policy that first loaded it. A load
// into another policy neither changes nor removes it.

// relate creates the memberships and permissions. A host factory is a member of the
// layers of its hosts.
func (l *loader) relate() error {
	for _, rec := range l.st.Records {
		for _, layer := range rec.Layers {
			if err := l.grant(store.Membership{Role: string(layer), Member: string(rec.ID), Policy: l.branch}); err != nil {
				return err
			}
		}
	}
	for _, g := range l.st.Grants {
		for m := range l.memberships(g) {
			if err := l.grant(m); err != nil {
				return err
			}
		}
	}
	for _, p := range l.st.Permits {
		for p := range l.permissions(p) {
			if err := l.permit(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteRelations removes memberships and permissions that the branch granted. It ignores
// those that do not exist or that another branch granted.
func (l *loader) deleteRelations() error {
	for _, g := range l.st.Revokes {
		for m := range l.memberships(g) {
			if err := l.revoke(m); err != nil {
				return err
			}
		}
	}
	for _, d := range l.st.Denies {
		for p := range l.permissions(d) {
			if err := l.tx.Err(); err != nil {
				return err
			}
			if by, ok := l.tx.GivenBy(p); !ok || by != l.branch {
				continue
			}
			if err := l.tx.DeletePermission(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) grant(m store.Membership) error {
	if err := l.known(policy.Ref(m.Role), policy.Ref(m.Member)); err != nil {
		return err
	}
	if err := l.mayTouch(policy.Ref(m.Role)); err != nil {
		return err
	}
	have, ok, err := l.tx.Membership(m.Role, m.Member, m.Ownership)
	if err != nil || ok && (have.Policy != l.branch || l.req.Mode == Add) {
		return err
	}
	return l.tx.PutMembership(m)
}

func (l *loader) revoke(m store.Membership) error {
	if err := l.tx.Err(); err != nil {
		return err
	}
	for _, ownership := range []bool{false, true} {
		have, ok, err := l.tx.Membership(m.Role, m.Member, ownership)
		if err != nil {
			return err
		}
		if ok && have.Policy == l.branch {
			return l.tx.DeleteMembership(m.Role, m.Member, ownership)
		}
	}
	return nil
}

func (l *loader) permit(p store.Permission) error {
	if err := l.known(policy.Ref(p.Resource), policy.Ref(p.Role)); err != nil {
		return err
	}
	if err := l.mayTouch(policy.Ref(p.Resource)); err != nil {
		return err
	}
	if _, ok := l.tx.GivenBy(p); ok {
		return nil
	}
	return l.tx.PutPermission(p)
}

// memberships yields the memberships that a grant or revoke names.
func (l *loader) memberships(g policy.Grant) iter.Seq[store.Membership] {
	return func(yield func(store.Membership) bool) {
		for _, role := range g.Roles {
			for _, m := range g.Members {
				if !yield(store.Membership{Role: string(role), Member: string(m.Role), Admin: m.Admin, Policy: l.branch}) {
					return
				}
			}
		}
	}
}

// permissions yields the permissions that a permit or deny names.
func (l *loader) permissions(p policy.Permit) iter.Seq[store.Permission] {
	return func(yield func(store.Permission) bool) {
		for _, resource := range p.Resources {
			for _, priv := range p.Privileges {
				for _, role := range p.Roles {
					if !yield(store.Permission{Resource: string(resource), Privilege: priv, Role: string(role), Policy: l.branch}) {
						return
					}
				}
			}
		}
	}
}
