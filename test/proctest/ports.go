package proctest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
)

// Addresses returns n free addresses of 127.0.0.1, as host:port. Nobody else is given one
// before End, also while the server starts or does not run: a socket is bound to each with
// SO_REUSEADDR and does not listen. The server binds its own with the same option.
func (d *Daemon) Addresses(n int) (addresses []string, err error) {
	for range n {
		port, err := d.holdPort()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return addresses, nil
}

func (d *Daemon) holdPort() (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	d.held = append(d.held, fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	address, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, errors.New("not an IPv4 address")
	}
	return address.Port, nil
}
