package loopback_test

import (
	"testing"

	"github.com/secretsync/syncer/internal/loopback"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.255.255.255": true, "::1": true,
		"": false, "localhost.test": false, "126.255.255.255": false, "128.0.0.0": false, "::2": false, "::": false, "[::1]": false,
	} {
		if got := loopback.Is(host); got != want {
			t.Errorf("%q is this machine: %t", host, got)
		}
	}
}
