package proctest

import (
	"net"
	"syscall"
	"testing"
)

// TestHeldAddresses: a server gets its address, and who does not ask for it with
// SO_REUSEADDR does not.
func TestHeldAddresses(t *testing.T) {
	var d Daemon
	defer d.End()
	addresses, err := d.Addresses(2)
	if err != nil {
		t.Fatal(err)
	}
	if addresses[0] == addresses[1] {
		t.Fatalf("both addresses are %s", addresses[0])
	}
	if conn, err := net.Dial("tcp", addresses[0]); err == nil {
		_ = conn.Close()
		t.Error("something answers at a held address")
	}
	if taken, err := (&net.ListenConfig{Control: exclusive}).Listen(t.Context(), "tcp", addresses[0]); err == nil {
		_ = taken.Close()
		t.Error("another took a held address")
	}
	for range 2 { // a server, and the same again
		server, err := net.Listen("tcp", addresses[0]) // with SO_REUSEADDR
		if err != nil {
			t.Fatal(err)
		}
		_ = server.Close()
	}
	d.End()
	freed, err := (&net.ListenConfig{Control: exclusive}).Listen(t.Context(), "tcp", addresses[1])
	if err != nil {
		t.Fatalf("a freed address: %v", err)
	}
	_ = freed.Close()
}

// exclusive takes back SO_REUSEADDR, which Go sets.
func exclusive(_, _ string, c syscall.RawConn) (err error) {
	if refused := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) }); refused != nil {
		return refused
	}
	return err
}
