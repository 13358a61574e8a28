package rotation

import (
	"context"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/test/settest"
)

// fifty simulates 50 Secrets, which show each step at once.
type fifty struct{ *shop }

func (f fifty) Shown(context.Context, string) ([]rotation.Shown, error) {
	doc := f.Doc()
	primary, _ := doc.Primary()
	shown := make([]rotation.Shown, 50)
	for i := range shown {
		shown[i] = rotation.Shown{Step: doc.Step, Primary: primary.ID}
	}
	return shown, nil
}

func (fifty) Since(context.Context, []string) (time.Time, error) { return time.Time{}, nil }

// TestARotationIsAFewLooks measures the engine's checks without the waits between them.
func TestARotationIsAFewLooks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	client, database, old := s.begun(t)
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	who, err := consumers.New(consumers.Config{Set: set, Wait: time.Millisecond, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	engine := s.rotator(client, database, who, func(c *rotation.Config) { c.Targets = fifty{s} })
	var worked time.Duration
	for looks := 1; ; looks++ {
		begin := time.Now()
		again, _ := engine.Sync(t.Context(), set)
		worked += time.Since(begin)
		if doc, err := s.Look(t.Context()); err == nil && settest.Idle(doc, old.ID) {
			t.Logf("%d looks of %v together", looks, worked)
			return
		}
		if looks == 20 {
			t.Fatalf("after %d looks it is not done: %s", looks, settest.Told(s.Doc()))
		}
		time.Sleep(max(again, 0)) // what it asks for
	}
}
