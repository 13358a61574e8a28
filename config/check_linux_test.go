package config

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignalsAreThoseOfLinux: the check of a configuration does not ask the system.
func TestSignalsAreThoseOfLinux(t *testing.T) {
	var want []string
	for n := range unix.Signal(32) {
		if name := unix.SignalName(n); name != "" {
			want = append(want, name)
		}
	}
	if !slices.Equal(signals, want) {
		t.Errorf("got %q, want %q", signals, want)
	}
}
