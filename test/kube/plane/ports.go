package plane

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ports are free ports of 127.0.0.1, held for as long as the plane lives:
// also while a part starts, or the API server is stopped, nobody else is given
// one. Holding means that a socket is bound to the port with SO_REUSEPORT and
// does not listen. The parts bind theirs with the same option beside it, and
// where no part listens a connection is refused.
type ports struct {
	apiserver, etcd, etcdPeer int
	sockets                   []int
}

func holdPorts() (*ports, error) {
	p := &ports{}
	for _, port := range []*int{&p.apiserver, &p.etcd, &p.etcdPeer} {
		if err := p.hold(port); err != nil {
			p.release()
			return nil, fmt.Errorf("no port on 127.0.0.1: %w", err)
		}
	}
	return p, nil
}

func (p *ports) hold(port *int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	p.sockets = append(p.sockets, fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	address, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return errors.New("not an IPv4 address")
	}
	*port = address.Port
	return nil
}

func (p *ports) release() {
	for _, fd := range p.sockets {
		_ = unix.Close(fd)
	}
}
