package health

import (
	"net"
	"slices"
	"sync"
)

// The maximum numbers of connections. An operator's status page through
// port-forward needs several: its streams and requests all come from one peer.
const (
	mostOfPeer = 24
	mostOfAll  = 96
)

// peers is a listener that limits the connections of each peer, and of all peers
// together. It never refuses a new connection, so that probes succeed even if other
// clients hold all places. Instead it closes the oldest connection of the peer that
// exceeds its limit, or that has the most connections.
type peers struct {
	net.Listener

	mu   sync.Mutex
	open []*conn // oldest first
}

// conn is a connection that releases its place on Close.
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

// enter gives c a place. It returns the connection that loses its place, or nil.
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
		greedy = p.open[0].peer
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
