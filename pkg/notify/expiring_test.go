package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// TestACertificateIsSaidToExpireAtEachNoticeOnce, whatever looks at it.
func TestACertificateIsSaidToExpireAtEachNoticeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		lane := (&records.Set{}).Lane("")
		e := NewExpiring(lane.Expiries, nil, zap.New(core))
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go e.Run(ctx)

		const key, other, day = targets.Key("file/tls"), targets.Key("file/db"), 24 * time.Hour
		settle := func(key targets.Key, expires time.Time) {
			lane.Put(&targets.Target{Key: key})
			r, _ := lane.Begin(key)
			r.Status.Expires = targets.Expiry{At: expires, Variable: "shop/tls"}
			after, _ := lane.Settle(r)
			e.Check(key, after.Expires)
		}
		said := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := logs.TakeAll(); len(got) != want {
				t.Errorf("%s: %d lines, want %d", when, len(got), want)
			}
		}
		begin := time.Now()
		settle(key, begin.Add(40*day))
		settle(other, time.Time{})
		said("40 days before", 0)
		for _, left := range []time.Duration{30 * day, 7 * day, day, 0} {
			time.Sleep(time.Until(begin.Add(40*day-left)) - time.Second)
			said("before a notice", 0)
			time.Sleep(time.Minute)
			said("at a notice", 1)
			settle(key, begin.Add(40*day))
			said("synced again", 0)
		}
		time.Sleep(100 * day)
		said("long afterwards", 0)
		settle(key, time.Now().Add(3*day))
		said("another, for three days", 1)
		lane.Delete(key)
		time.Sleep(10 * day)
		said("gone", 0)
		if len(e.said) > 0 {
			t.Errorf("what was said of %d targets that are gone is kept", len(e.said))
		}
	})
}

// heard is the last notice.
type heard map[targets.Key]string

func (h heard) Expires(target targets.Key, notice string) { h[target] = notice }

func TestNoticesAreHeard(t *testing.T) {
	at := time.Now().Truncate(time.Second)
	for left, want := range map[time.Duration]string{time.Hour: "expires", -time.Hour: "expired"} {
		said := heard{}
		e := NewExpiring(nil, said, zap.NewNop())
		e.Check("file/tls", targets.Expiry{At: at.Add(left), Variable: "shop/tls"})
		if want := `a certificate in variable "shop/tls" ` + want + " at " + at.Add(left).UTC().Format(time.RFC3339); said["file/tls"] != want {
			t.Errorf("heard %q, want %q", said, want)
		}
		e.Check("file/db", targets.Expiry{})
		if len(said) != 1 {
			t.Errorf("heard %q", said)
		}
	}
}

func TestBoundsOfNotices(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		left   time.Duration // until the certificate expires
		within time.Duration // -1: no notice
	}{
		{30*day + 1, -1}, {30 * day, 30 * day}, {7*day + 1, 30 * day}, {7 * day, 7 * day}, {day + 1, 7 * day}, {day, day}, {1, day}, {0, 0}, {-1, 0},
	} {
		n, due := noticeOf(targets.Expiry{At: now.Add(c.left)}, now)
		if due != (c.within >= 0) || due && n.within != c.within {
			t.Errorf("%v before: %t, within %v", c.left, due, n.within)
		}
	}
}
