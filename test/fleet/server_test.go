//go:build !race

package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// trouble is what is wrong with the server.
type trouble string

const (
	unreachable trouble = "refuses connections for 10 min"
	unavailable trouble = "answers 503 for 10 min"
	stalled     trouble = "stalls for 10 min" // then it answers the clients that still wait
)

// What the genuine server's two cores took for a request: a log-in by API key, a batch by
// its number of variables, and one variable. Other requests are taken to cost as much as
// one variable.
const (
	cores        = 2
	logInCost    = 7 * time.Millisecond
	batchCost    = 4300 * time.Microsecond
	variableCost = 850 * time.Microsecond // each, in a batch
	singleCost   = 5500 * time.Microsecond
)

// server is a double that counts, takes its time, and has troubles. It knows a process by
// its User-Agent, which names the application.
type server struct {
	*conjurtest.Double
	pipes func(ctx context.Context, network, addr string) (net.Conn, error)
	close func()
	cores chan struct{} // a request holds one while it is served
	began time.Time

	mu      sync.Mutex
	now     trouble
	over    chan struct{} // closed when the trouble ends
	revoked int           // applications without a host
	seconds []second
	phases  []mark
}

// second is what arrived within one second since the beginning.
type second struct {
	requests, logIns, connections int
	busy                          time.Duration // time of a core
}

// mark is when a phase began.
type mark struct {
	name string
	at   time.Time
}

func newServer() *server {
	s := &server{Double: conjurtest.New(), cores: make(chan struct{}, cores), began: time.Now()}
	s.JWT = "a.b.c"
	s.hide(0)
	s.Intercept = s.intercept
	config, stop := s.PipeTLS(nil)
	s.pipes, s.close = config.Dial, stop
	return s
}

// set begins a trouble, or ends it.
func (s *server) set(t trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != "" {
		close(s.over)
	}
	s.now, s.over = t, make(chan struct{})
}

// revoke deletes the hosts of the first n applications, and creates the others again.
func (s *server) revoke(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = n
}

// hide takes the variables of the first n applications away from their hosts, and gives
// the other hosts theirs. The Deployments go last.
func (s *server) hide(n int) {
	for app := range applications {
		all := ids(fmt.Sprintf("app%02d", app), perApplication)
		if app == applications-1 {
			all = append(all, ids("deployment", perDeployment)...)
		}
		for _, id := range all {
			s.Change(id, func(v *conjurtest.Variable) { *v = conjurtest.Variable{Value: "value of " + id, Invisible: app < n} })
		}
	}
}

// count changes the figures of the current second.
func (s *server) count(change func(*second)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(time.Since(s.began) / time.Second)
	for len(s.seconds) <= n {
		s.seconds = append(s.seconds, second{})
	}
	change(&s.seconds[n])
}

func (s *server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.count(func(c *second) { c.connections++ })
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now == unreachable {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return s.pipes(ctx, network, addr)
}

func (s *server) intercept(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
	s.mu.Lock()
	now, over, app := s.now, s.over, 0
	if n, _ := fmt.Sscanf(r.UserAgent(), "syncer/app%d", &app); n == 0 {
		app = applications - 1 // the hosts of the Deployments go last
	}
	gone := app < s.revoked
	s.mu.Unlock()
	cost := costOf(kind, r)
	if now == unavailable {
		cost = 0 // a gateway answers
	}
	s.count(func(c *second) {
		c.requests++
		c.busy += cost
		if kind == conjur.KindAuthenticate {
			c.logIns++
		}
	})
	switch now {
	case unreachable:
		panic(http.ErrAbortHandler)
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	case stalled:
		select {
		case <-over:
		case <-r.Context().Done():
			return true
		}
	}
	s.cores <- struct{}{}
	time.Sleep(cost)
	<-s.cores
	s.Log() // forget the request
	switch {
	case !gone || kind == conjur.KindWhoami:
		return false
	case kind == conjur.KindAuthenticate:
		conjurtest.Bare(w, http.StatusUnauthorized)
	default:
		conjurtest.Bare(w, http.StatusForbidden)
	}
	return true
}

func costOf(kind conjur.Kind, r *http.Request) time.Duration {
	switch kind {
	case conjur.KindAuthenticate:
		return logInCost
	case conjur.KindBatch:
		return batchCost + variableCost*time.Duration(1+strings.Count(r.URL.Query().Get("variable_ids"), ","))
	}
	return singleCost
}

// load is the rates of a phase, per second. The most is that of a window.
type load struct{ mean, most, logins, mostLogins, connections, busy float64 }

// window is the time in which the full fleet would send as much as in one second.
func window() int { return max(fullSize / *sidecars, 1) }

func (s *server) load(from, until time.Time) (l load) {
	s.count(func(*second) {})
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.seconds[from.Sub(s.began)/time.Second : until.Sub(s.began)/time.Second]
	n, length := window(), float64(len(part))
	var requests, logIns int
	for i, c := range part {
		l.mean += float64(c.requests) / length
		l.logins += float64(c.logIns) / length
		l.connections += float64(c.connections) / length
		l.busy += c.busy.Seconds() / length
		requests, logIns = requests+c.requests, logIns+c.logIns
		if i >= n {
			requests, logIns = requests-part[i-n].requests, logIns-part[i-n].logIns
		}
		l.most = max(l.most, float64(requests)/float64(n))
		l.mostLogins = max(l.mostLogins, float64(logIns)/float64(n))
	}
	return l
}
