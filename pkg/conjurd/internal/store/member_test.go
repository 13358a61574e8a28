package store

import (
	"errors"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
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

// A grant to the owner of a role replaced the ownership in files of the first
// format, and a single address was no network.
func TestUpgradeOfTheFirstFormat(t *testing.T) {
	s, path := open(t)
	update(t, s, func(tx *Tx) error {
		if err := tx.PutCredentials("web", &Credentials{APIKey: []byte("k"), RestrictedTo: []string{"10.0.0.1", "10.0.0.0/8"}}); err != nil {
			return err
		}
		for _, id := range []string{"g", "h"} {
			if err := tx.PutObject(id, &Object{Owner: "owner", Policy: "root"}); err != nil {
				return err
			}
		}
		return errors.Join(
			tx.PutMembership(Membership{Role: "g", Member: "owner", Policy: "app"}),
			tx.PutMembership(Membership{Role: "h", Member: "owner", Admin: true, Ownership: true, Policy: "root"}),
			tx.PutMembership(Membership{Role: "h", Member: "web", Policy: "app"}))
	})
	if err := s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		return errors.Join(meta.Delete(metaSum), meta.Put(metaFormat, []byte(unsummed)))
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(path + ".old"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(path+".old", Options{Key: testKey})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.View(func(tx *Tx) error {
			var list []Membership
			for _, role := range []string{"g", "h"} {
				members, err := tx.Members(role)
				if err != nil {
					return err
				}
				list = append(list, members...)
			}
			if want := []Membership{
				{"g", "owner", false, false, "app"}, {"g", "owner", true, true, "root"}, {"h", "owner", true, true, "root"}, {"h", "web", false, false, "app"},
			}; !slices.Equal(list, want) {
				t.Errorf("memberships are %+v", list)
			}
			c, err := tx.Credentials("web")
			if err == nil && (string(c.APIKey) != "k" || !slices.Equal(c.RestrictedTo, []string{"10.0.0.1/32", "10.0.0.0/8"})) {
				t.Errorf("credentials are %+v", c)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
