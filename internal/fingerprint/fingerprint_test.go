package fingerprint_test

import (
	"hash"
	"sync"
	"testing"

	"github.com/secretsync/syncer/internal/fingerprint"
)

func TestMake(t *testing.T) {
	var one, other fingerprint.Maker
	of := func(m *fingerprint.Maker, text string) fingerprint.Fingerprint {
		return m.Make(func(h hash.Hash) { h.Write([]byte(text)) })
	}
	first := of(&one, "a")
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if of(&one, "a") != first {
				t.Error("equal values have different fingerprints")
			}
			if of(&one, "b") == first {
				t.Error("different values have the same fingerprint")
			}
		})
	}
	all.Wait()
	if first == (fingerprint.Fingerprint{}) || of(&other, "a") == first {
		t.Error("the fingerprint does not depend on a key")
	}
}
