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
			uses[ids[next]] = variables.Use{Tenants: []string{fmt.Sprintf("tenant-%d", i)}, Delivered: delivered}
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
			c.Users()[names[0]] = variables.Use{Tenants: []string{"tenant-0", "tenant-1"}, Delivered: true}
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
