package consumers_test

import (
	"context"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// A namespace that cannot be read holds a promotion for a while if the set notes
// that it shows it, and a retirement until it can be read.
func TestANamespaceThatCannotBeRead(t *testing.T) {
	noting := func(d *versions.Document, v versions.Version, namespaces ...string) (*versions.Document, versions.Version) {
		return d.Note(namespaces), v
	}
	since := time.Now()
	other := rotation.Shown{Namespace: "other", Unread: "Syncer may not read its Secrets", Since: since}
	secrets := []rotation.Shown{{Namespace: "shop", Name: "jwt", Step: 9, Since: since}, other}
	asked := func(wait time.Duration) *consumers.Consumers {
		c, err := consumers.New(consumers.Config{Set: set, Wait: wait, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	w := &world{T: t, secrets: secrets}
	for _, noted := range [][]string{{"shop"}, {}} {
		d, v := introduce()
		d, v = noting(d, v, noted...)
		w.opens(asked(time.Nanosecond), func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
			return c.Introduced(ctx, d, v, secrets)
		})
		d, v = leave()
		d, v = noting(d, v, noted...)
		w.opens(asked(time.Nanosecond), func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
			return c.Left(ctx, d, v, secrets)
		})
	}

	d, v := introduce()
	d, v = noting(d, v, "other", "shop")
	a := asked(time.Hour).Introduced(t.Context(), d, v, secrets)
	if w.says(a.Waits, "namespace other", "may not read"); a.Open || a.Until.Sub(since) != time.Hour {
		t.Errorf("a promotion does not wait as long as for Pods that nobody asks: %+v", a)
	}
	w.opens(asked(time.Nanosecond), func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
		return c.Introduced(ctx, d, v, secrets)
	})
	d, v = leave()
	if a := asked(time.Nanosecond).Left(t.Context(), d, v, secrets); a.Open { // nobody has noted anything
		t.Error("a version may go that a namespace may use which cannot be read")
	}
	d, v = noting(d, v, "other", "shop")
	answer := w.shut(asked(time.Nanosecond), func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
		return c.Left(ctx, d, v, secrets)
	})
	if w.says(answer.Waits, "namespace other", "confirm.namespaces"); answer.InUse {
		t.Error("what is not known is said to be in use")
	}
	d.Versions[1].Left = epoch // all had left it before
	w.opens(asked(time.Nanosecond), func(ctx context.Context, c *consumers.Consumers, secrets []rotation.Shown) rotation.Answer {
		return c.Left(ctx, d, d.Versions[1], secrets)
	})
	secrets[1] = rotation.Shown{Namespace: "other", Name: "jwt", Step: 1, Unread: "Syncer may not write it", Since: since}
	d.Versions[1].Left = time.Time{}
	if a := asked(time.Nanosecond).Left(t.Context(), d.Note([]string{"shop"}), d.Versions[1], secrets); a.Open {
		t.Error("a version may go that a Secret has which cannot be written")
	}
}
