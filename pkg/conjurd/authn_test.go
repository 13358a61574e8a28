package conjurd

import (
	"bytes"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

func TestNoOtherKeyMatches(t *testing.T) {
	cred := &store.Credentials{APIKey: load.NewAPIKey()}
	if !keyMatches(cred, cred.APIKey) {
		t.Error("the key itself does not match")
	}
	for range 3000 {
		if keyMatches(cred, load.NewAPIKey()) {
			t.Fatal("another key matches")
		}
	}
	for _, c := range []struct {
		cred *store.Credentials
		key  []byte
	}{{nil, cred.APIKey}, {nil, nil}, {cred, nil}, {&store.Credentials{}, nil}, {cred, append(bytes.Clone(cred.APIKey), '\n')}} {
		if keyMatches(c.cred, c.key) {
			t.Errorf("a key of %d bytes matches", len(c.key))
		}
	}
}
