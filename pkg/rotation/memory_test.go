package rotation

import (
	"context"
	"sync"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// seen collects the values that pass between an engine and its client.
type seen struct {
	Client
	mu     sync.Mutex
	values []secret.Value
}

func (c *seen) note(values ...secret.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		if string(v.Bytes()) != noCommand {
			c.values = append(c.values, v)
		}
	}
}

func (c *seen) VariableAt(ctx context.Context, id string, at uint64) (secret.Value, conjur.Reading) {
	v, reading := c.Client.VariableAt(ctx, id, at)
	c.note(v)
	return v, reading
}

func (c *seen) Variable(ctx context.Context, id, etag string) conjur.Values {
	values := c.Client.Variable(ctx, id, etag)
	for _, v := range values.Found {
		c.note(v)
	}
	return values
}

func (c *seen) SetAll(ctx context.Context, values []conjur.NewValue) error {
	for _, v := range values {
		c.written(v.ID, v.Value)
	}
	return c.Client.SetAll(ctx, values)
}

func (c *seen) Set(ctx context.Context, id string, value secret.Value) error {
	c.written(id, value)
	return c.Client.Set(ctx, id, value)
}

func (c *seen) written(id string, value secret.Value) {
	if id != "jwt/control" { // a command is no secret
		c.note(value)
	}
}

// acted collects the parts that an engine hands to what is outside.
type acted struct {
	*outside
	seen *seen
}

func (a acted) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	for _, part := range v.Parts {
		a.seen.note(part)
	}
	minted, err := a.outside.Apply(ctx, v)
	for _, part := range minted {
		a.seen.note(part)
	}
	return minted, err
}

// TestAnIdleEngineKeepsNothing of what it read, made, published or had accepted.
func TestAnIdleEngineKeepsNothing(t *testing.T) {
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			client := &seen{Client: s.client}
			set := s.logins(&outside{accepts: map[string]string{}})
			set.Actuator = acted{set.Actuator.(*outside), client}
			set.Publish = map[string]render.Published{"url": {Text: "{{.user}}:{{.token}}"}, "jwt-public": {Parts: []string{"user"}}}
			r, _ := s.rotator(s.client, "me", set)
			r = through(client, r)
			for range 2 {
				if err := r.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.command("now", versions.Command{})
				r.sets["jwt"].commands.arrived.Store(true)
			}
			if len(client.values) < 10 {
				t.Fatalf("only %d values were seen", len(client.values))
			}
			for i, v := range client.values {
				if v.Len() > 0 {
					t.Errorf("value %d of %d is still there: %d bytes", i, len(client.values), v.Len())
				}
			}
		})
	}
}
