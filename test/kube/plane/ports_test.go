package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHeldPort(t *testing.T) {
	held, err := holdPorts()
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	if held.apiserver == held.etcd || held.etcd == held.etcdPeer || held.apiserver == held.etcdPeer {
		t.Fatalf("ports %+v are not three", held)
	}
	address := fmt.Sprintf("127.0.0.1:%d", held.apiserver)

	if l, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a stranger: %v, %v; want that the address is in use", l, err)
	}
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("no part listens: %v, %v; want that the connection is refused", conn, err)
	}
	// The part sets the same option, and then gets every connection.
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, set)
	}}
	l, err := sharing.Listen(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 20 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}
