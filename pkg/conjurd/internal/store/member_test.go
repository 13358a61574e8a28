package store

import (
	"slices"
	"testing"
)

// A file that was written before one could be a member twice is read as it
// was meant.
func TestMembershipsOfOlderFiles(t *testing.T) {
	s, _ := open(t)
	owned := Membership{Role: "g", Member: "owner", Admin: true, Ownership: true, Policy: "root"}
	granted := Membership{Role: "g", Member: "web", Policy: "app"}
	update(t, s, func(tx *Tx) error {
		for k, v := range map[string]string{
			"g\x00owner": `{"admin":true,"ownership":true,"policy":"root"}`,
			"g\x00web":   `{"policy":"app"}`,
		} {
			if err := tx.members.Put([]byte(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
	want := func(members ...Membership) {
		t.Helper()
		if err := s.View(func(tx *Tx) error {
			got, err := tx.Members("g")
			if !slices.Equal(got, members) {
				t.Errorf("members are %+v", got)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	want(owned, granted)
	also := Membership{Role: "g", Member: "owner", Policy: "app"}
	update(t, s, func(tx *Tx) error { return tx.PutMembership(also) })
	want(also, owned, granted)
	update(t, s, func(tx *Tx) error { return tx.DeleteMembership("g", "owner", true) })
	want(also, granted)
	update(t, s, func(tx *Tx) error { return tx.Forget(map[string]bool{"app": true}, false) })
	want()
	update(t, s, func(tx *Tx) error {
		if got := tx.MembershipsOf("owner"); len(got) != 0 {
			t.Errorf("memberships are %q", got)
		}
		return nil
	})
}
