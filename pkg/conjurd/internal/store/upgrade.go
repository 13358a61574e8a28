package store

import "net/netip"

// upgrade converts the records of a file in the first format. In that format a
// grant to a role's owner replaced the ownership, and a single address was not
// stored as a network.
func (t *Tx) upgrade() error {
	for _, k := range keys(t.members, nil) {
		role, member := cutLast(k)
		l, err := t.links(role, member)
		if err != nil {
			return err
		}
		o, err := t.Object(role)
		if err != nil {
			return err
		}
		if l.owned != nil || o == nil || o.Owner != member {
			continue
		}
		l.owned = &link{Admin: true, Ownership: true, Policy: o.Policy}
		if err := t.putLinks(role, member, l); err != nil {
			return err
		}
	}
	for _, role := range keys(t.credentials, nil) {
		c, _, err := get[Credentials](t.credentials, []byte(role))
		if err != nil {
			return err
		}
		for i, n := range c.RestrictedTo {
			if addr, err := netip.ParseAddr(n); err == nil {
				c.RestrictedTo[i] = netip.PrefixFrom(addr, addr.BitLen()).String()
			}
		}
		if err := put(t.credentials, []byte(role), c); err != nil {
			return err
		}
	}
	return nil
}
