package health

import (
	"net"
	"slices"
	"sync"
)

// The most connections at a time. An operator looks at the status page through
// port-forward, whose streams and requests all come from one peer.
const (
	mostOfPeer = 24
	mostOfAll  = 96
)

// peers is a listener that limits the connections of each peer, and of all
// together. It refuses no new connection, so that probes pass when strangers
// hold all places: it closes the oldest connection of the peer that has too
// many, or has the most.
type peers struct {
	net.Listener

	mu   sync.Mutex
	open []*conn // the oldest first
}

// conn is a connection that leaves its place when it is closed.
type conn struct {
	net.Conn
	peer  string // its address without the port
	leave func(*conn)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave(c)
	return c.Conn.Close()
}

// Accept implements net.Listener.
func (p *peers) Accept() (net.Conn, error) {
	accepted, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	peer := accepted.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	c := &conn{Conn: accepted, peer: peer, leave: p.leave}
	if excess := p.enter(c); excess != nil {
		_ = excess.Close()
	}
	return c, nil
}

// enter gives c a place, and returns the connection that loses its own; nil is none.
func (p *peers) enter(c *conn) (excess *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, c)
	count := map[string]int{}
	for _, o := range p.open {
		count[o.peer]++
	}
	greedy := c.peer
	if count[greedy] <= mostOfPeer {
		if len(p.open) <= mostOfAll {
			return nil
		}
		for _, o := range p.open {
			if count[o.peer] > count[greedy] {
				greedy = o.peer
			}
		}
	}
	return p.open[slices.IndexFunc(p.open, func(o *conn) bool { return o.peer == greedy })]
}

func (p *peers) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(o *conn) bool { return o == c })
}
