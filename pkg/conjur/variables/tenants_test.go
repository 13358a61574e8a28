package variables_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// used has a client know who uses the variables: of names in turn, each tenant so many.
func used(ids []string, delivered bool, tenants ...int) func(*setup) {
	uses := map[string]variables.Use{}
	next := 0
	for i, n := range tenants {
		for range n {
			uses[ids[next]] = variables.Use{fmt.Sprintf("tenant-%d", i): delivered}
			next++
		}
	}
	return func(c *setup) { c.Users = func() map[string]variables.Use { return uses } }
}

// What one tenant loses, or never had, delays no removal of another one, in the
// identity that both share, from the first poll on.
func TestATenantDelaysNoOthersRemoval(t *testing.T) {
	names := conjurtest.Names(16)
	t.Run("lost", func(t *testing.T) {
		withBrake(t, 16, used(names, true, 4, 12), func(t *testing.T, h *held) {
			h.missing(h.ids[4:]...)
			h.missing(h.ids[0])
			if _, changed := h.until(4); !slices.Equal(changed, h.ids[:1]) {
				t.Errorf("gone are %q", changed)
			}
			h.wantEvents("began 12/12")
		})
	})
	t.Run("never delivered, at the start", func(t *testing.T) {
		withBrake(t, 4, used(names, false, 4, 12), func(t *testing.T, h *held) {
			h.ids = names
			h.missing(h.ids[0])
			found := false
			for range 4 {
				changed, _ := h.c.Changed(h.Context(), h.ids)
				found = found || slices.Contains(changed, h.ids[0])
			}
			if !found {
				t.Error("the removal is held back")
			}
			h.wantEvents()
		})
	})
	t.Run("lost, while nothing is known of the others", func(t *testing.T) {
		withBrake(t, 16, used(names, true, 4, 12), func(t *testing.T, h *held) {
			h.missing(h.ids[4:]...)
			for range 4 { // as a target is tried again between polls
				h.c.Fetch(h.Context(), h.ids[4:])
				time.Sleep(every)
			}
			h.missing(h.ids[0])
			if _, changed := h.until(6); !slices.Equal(changed, h.ids[:1]) {
				t.Errorf("gone are %q", changed)
			}
		})
	})
	t.Run("named by both", func(t *testing.T) {
		withBrake(t, 16, func(c *setup) {
			used(names, true, 4, 12)(c)
			c.Users()[names[0]] = variables.Use{"tenant-0": true, "tenant-1": true}
		}, func(t *testing.T, h *held) {
			h.missing(h.ids[4:]...)
			h.missing(h.ids[0])
			if _, changed := h.until(4); !slices.Equal(changed, h.ids[:1]) {
				t.Errorf("gone are %q", changed)
			}
		})
	})
}

// A policy that was replaced by mistake takes a little from each of many tenants.
func TestMostTenantsThatLoseMostTripTheBrake(t *testing.T) {
	withBrake(t, 20, used(conjurtest.Names(20), true, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2), func(t *testing.T, h *held) {
		h.missing(h.ids[:14]...)
		if _, changed := h.until(4); changed != nil {
			t.Errorf("gone are %q", changed)
		}
		h.wantEvents("began 14/20")
	})
}

// What a tenant names weakens the protection of no other one, and delays no removal of
// another one: neither living nor dead variables beside those of the other one.
func TestNamingVariablesWeakensNoOthersBrake(t *testing.T) {
	names := conjurtest.Names(40)
	both := variables.Use{"tenant-0": true, "tenant-1": true}
	for name, c := range map[string]struct {
		dead     []string // besides ids[:gone]
		gone     int      // of the 5 that tenant 0 uses, and tenant 1 names too
		tenants  []int
		held     bool // for tenant 0
		freeForM bool // for tenant 1
	}{
		"many living ones":     {gone: 5, tenants: []int{5, 35}, held: true, freeForM: true},
		"many dead ones":       {gone: 1, tenants: []int{5, 35}, dead: names[5:]},
		"many dead, few lost":  {gone: 3, tenants: []int{5, 35}, dead: names[5:]},
		"the same ones":        {gone: 5, tenants: []int{5}, held: true},
		"living, small tenant": {gone: 3, tenants: []int{5, 20, 3, 3, 3, 3, 3}, dead: names[25:], held: true, freeForM: false},
	} {
		t.Run(name, func(t *testing.T) {
			withBrake(t, 40, func(s *setup) {
				used(names, true, c.tenants...)(s)
				for _, id := range names[:5] {
					s.Users()[id] = both
				}
			}, func(t *testing.T, h *held) {
				h.missing(h.ids[:c.gone]...)
				h.missing(c.dead...)
				for range 5 {
					_, _ = h.c.Changed(h.Context(), h.ids)
					time.Sleep(every)
				}
				for _, id := range h.ids[:c.gone] {
					a := fetch(t, h.c, id)
					if got := a.For("tenant-0").Verdict != variables.Gone; got != c.held {
						t.Errorf("%s: held %v for the tenant that lost it: %v", id, got, a.Err)
					}
					if c.freeForM && a.For("tenant-1").Verdict != variables.Gone {
						t.Errorf("%s: held for the tenant that lost little", id)
					}
				}
				for range int(holdTime/every) + 2 {
					_, _ = h.c.Changed(h.Context(), h.ids)
					time.Sleep(every)
				}
				for _, id := range h.ids[:c.gone] {
					wantGone(t, fetch(t, h.c, id), variables.Missing)
				}
				h.d.Fill(h.ids[:1])
				for range 2 {
					_, _ = h.c.Changed(h.Context(), h.ids)
				}
				wantFound(t, fetch(t, h.c, h.ids[0]), "value of "+h.ids[0])
			})
		})
	}
}
