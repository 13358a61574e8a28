// Package loopback decides whether a name stands for this machine.
package loopback

import "net/netip"

// Is reports whether a host of a URL, without brackets, is this machine: "localhost", or
// an address of loopback.
func Is(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
