package rotation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// unanswered loses the first write of a set, which may still arrive later.
type unanswered struct {
	Client
	writes int
}

func (c *unanswered) Set(ctx context.Context, id string, value secret.Value) error {
	if id != "jwt" {
		return c.Client.Set(ctx, id, value)
	}
	if c.writes++; c.writes == 1 {
		return errors.New("no answer")
	}
	return c.Client.Set(ctx, id, value)
}

// TestAWriteThatMayStillArriveIsWaitedFor where the server does not compare, because the
// late value would replace a newer one.
func TestAWriteThatMayStillArriveIsWaitedFor(t *testing.T) {
	s := newSite(t, conjurdtest.Strict())
	client := &unanswered{Client: s.client}
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	r.config.Conjur, r.config.Quiet = client, time.Hour
	r = New(r.config)
	if _, err := r.Sync(t.Context(), "jwt"); !errors.Is(err, ErrUncertain) {
		t.Fatalf("the error of the lost write is %v", err)
	}
	again, err := r.Sync(t.Context(), "jwt")
	if err != nil || again < time.Hour-time.Minute || client.writes != 1 {
		t.Errorf("there were %d writes, and the next step is in %v: %v", client.writes, again, err)
	}
}

// TestAnOldReadIsCheckedBeforeAWrite where the server does not compare.
func TestAnOldReadIsCheckedBeforeAWrite(t *testing.T) {
	s := newSite(t, conjurdtest.Strict())
	ctx := t.Context()
	set := Set{Conjur: s.client, ID: "jwt", server: &server{begin: time.Now()}}
	held, err := set.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	make := func(id string) *versions.Document {
		return versions.New("me").Make(id, parts(id), false, versions.Entry{At: time.Now()})
	}
	if err := set.Write(ctx, held, make("theirs")); err != nil {
		t.Fatal(err)
	}
	held.read = time.Now().Add(-fresh - time.Second)
	if err := set.Write(ctx, held, make("mine")); !errors.Is(err, ErrConflict) {
		t.Errorf("a write over what was read before theirs: %v", err)
	}
	if numbers, reading := s.client.Versions(ctx, "jwt"); reading.Err != nil || len(numbers) != 1 {
		t.Errorf("the set was written %d times: %v", len(numbers), reading.Err)
	}
}
