package main

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

func value(text string) secret.Value { return secret.New([]byte(text)) }

// steps is the actuator that talks to the service as it runs now; the file outlives it.
func steps(t *testing.T, path, key string) *actuators.Steps {
	service := httptest.NewServer(handler([]byte("the key that both have"), path))
	t.Cleanup(service.Close)
	return &actuators.Steps{Set: "shop/token", Send: actuators.HTTP(service.URL, service.Client()),
		Key: func(context.Context) (secret.Value, error) { return value(key), nil }}
}

func TestTheStepsOfARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	ctx := t.Context()
	s := steps(t, path, "the key that both have")
	v := versions.Version{ID: "20261122t000001", Fence: "20261122t000001"}
	mint := func() map[string]secret.Value {
		minted, err := s.Apply(ctx, v)
		if err != nil || minted["token"].Len() < 20 {
			t.Fatalf("it makes %v: %v", minted, err)
		}
		return minted
	}
	lost := v
	lost.Parts = mint() // and the answer does not arrive
	late := v
	v.Parts = mint()
	again := v
	again.Fence = "20261122t000009" // after a rollback
	other := v
	other.Parts = map[string]secret.Value{"token": value("another")}
	apply := func(v versions.Version) func() error {
		return func() error { _, err := s.Apply(ctx, v); return err }
	}
	verify := func(v versions.Version) func() error { return func() error { return s.Verify(ctx, v) } }
	revoke := func(v versions.Version) func() error { return func() error { return s.Revoke(ctx, v) } }
	for i, c := range []struct {
		do func() error
		ok bool
	}{
		{verify(lost), false}, {verify(v), true}, {apply(v), true}, {apply(v), true}, {apply(late), false}, {verify(v), true}, {verify(other), false},
		{apply(again), true}, {revoke(v), false}, {apply(v), false}, {verify(v), true},
		{revoke(again), true}, {revoke(again), true}, {apply(again), false}, {verify(v), false}, {revoke(v), true},
	} {
		if err := c.do(); c.ok && err != nil || !c.ok && !errors.Is(err, actuators.ErrRefused) {
			t.Errorf("step %d: %v", i, err)
		}
		s = steps(t, path, "the key that both have") // it may be restarted at any time
	}
	if kept, err := os.ReadFile(path); err != nil || bytes.Contains(kept, v.Parts["token"].Bytes()) {
		t.Errorf("the file has %s: %v", kept, err)
	}
	s = steps(t, path, "the key that both have")
	ours := versions.Version{ID: "20261122t000002", Fence: "20261122t000002", Set: &versions.Document{Identity: "ours"}}
	if _, err := s.Apply(ctx, ours); err != nil {
		t.Error(err)
	}
	foreign := ours
	foreign.Set = &versions.Document{Identity: "another"}
	if _, err := s.Apply(ctx, foreign); !errors.Is(err, actuators.ErrRefused) {
		t.Errorf("of another set of the same id: %v", err)
	}
	foreign.Set.Claimed = ours.Fence
	if _, err := s.Apply(ctx, foreign); err != nil {
		t.Errorf("when it was claimed: %v", err)
	}
	if uses, err := s.InUse(ctx, v); err != nil || len(uses) > 0 {
		t.Errorf("%v: %v", uses, err)
	}
	s = steps(t, path, "a key that nobody else has")
	if err := s.Verify(ctx, v); err == nil || errors.Is(err, actuators.ErrRefused) {
		t.Errorf("with another key: %v", err)
	}
}
