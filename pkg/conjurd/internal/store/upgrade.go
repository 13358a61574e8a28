package store

import "net/netip"

// upgrade mends the records of a file of the first format. A grant to the
// owner of a role took the place of the ownership then, and a single address
// was not kept as a network.
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
