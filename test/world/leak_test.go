package world_test

import (
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/secretsync/syncer/test/world"
)

func TestLeakIsFound(t *testing.T) {
	value := world.Marker + "ABCDEF"
	for _, text := range []string{
		value,
		hex.EncodeToString([]byte("=" + value)),
		base64.StdEncoding.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte("a" + value)),
		base64.StdEncoding.EncodeToString([]byte("ab" + value + "c")),
	} {
		if world.Leak("before "+text+" after", "another", world.Marker) == "" {
			t.Errorf("the value is not found in %q", text)
		}
	}
	if found := world.Leak("a canary, a value, and no more", world.Marker); found != "" {
		t.Errorf("found %q where no value is", found)
	}
}
