package main

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/conjurd"
)

// A workload without a shell takes certificates from the embedded server too.
func TestTheReceiverKnowsTheScriptOfConjurd(t *testing.T) {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	if !slices.Contains(inject.Scripts(), inject.Script{Prefix: digest(conjurd.InjectionPrefix), Suffix: digest(conjurd.InjectionSuffix)}) {
		t.Errorf("it does not: its prefix and suffix are %s and %s", digest(conjurd.InjectionPrefix), digest(conjurd.InjectionSuffix))
	}
}
