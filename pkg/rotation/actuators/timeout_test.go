package actuators

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// TestAnActEndsInTime whatever the outside does: with the time of its set, or with the
// default.
func TestAnActEndsInTime(t *testing.T) {
	var bound time.Duration
	s := stepper(func(ctx context.Context, _ []byte, _ string) ([]byte, error) {
		end, ok := ctx.Deadline()
		if !ok {
			t.Error("a step may take for ever")
		}
		bound = time.Until(end)
		return nil, nil
	})
	for set, most := range map[time.Duration]time.Duration{0: 30 * time.Second, 5 * time.Minute: 5 * time.Minute} {
		s.Timeout = set
		if err := s.Verify(t.Context(), stepVersion()); err != nil {
			t.Fatal(err)
		}
		if bound > most || bound < most/2 {
			t.Errorf("with %v a step may take %v", set, bound)
		}
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // it accepts, and nobody answers
	p := &Turns{Set: "db", Users: []string{"a", "b"}, Timeout: time.Millisecond, Server: &PostgreSQL{
		Addresses: []string{silent.Addr().String() + "/postgres"}, Plain: true, Admin: func(context.Context) (secret.Value, error) {
			return secret.New([]byte(`{"username":"admin","password":"admin"}`)), nil
		}}}
	v := stepVersion()
	v.Parts["username"] = secret.New([]byte("a"))
	for name, act := range map[string]func() error{
		"apply":   func() error { _, err := p.Apply(t.Context(), v); return err },
		"verify":  func() error { return p.Verify(t.Context(), v) },
		"revoke":  func() error { return p.Revoke(t.Context(), v) },
		"inUse":   func() error { _, err := p.InUse(t.Context(), v); return err },
		"prepare": func() error { _, err := p.Prepare(t.Context(), setOf(v)); return err },
		"check":   func() error { return errors.Join(p.Check(t.Context(), setOf(v))...) },
	} {
		if err := act(); !errors.Is(err, context.DeadlineExceeded) && !unreachable(err) || errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
