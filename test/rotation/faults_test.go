package rotation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// fault is what happens to a request, to Conjur or to the database.
type fault int

const (
	cut        fault = iota // it does not arrive
	lost                    // its answer is lost
	killBefore              // the engine dies before it arrives
	killAfter               // the engine dies before its answer arrives
	faultKinds
)

func (f fault) String() string { return []string{"cut", "lost", "killed before", "killed after"}[f] }

// plan is the faults that one set meets: one at a certain request, and some by
// chance after it.
type plan struct {
	at   int
	kind fault

	mu   sync.Mutex
	dice *rand.Rand
	n    int
	kill func()
}

// next says what happens to the next request.
func (p *plan) next() (fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	p.n++
	switch {
	case n == p.at:
		return p.kind, true
	case n > p.at && n < p.at+20 && p.dice.IntN(10) == 0:
		return fault(p.dice.IntN(int(faultKinds))), true
	}
	return 0, false
}

// ends has the engine die, if that is the fault.
func (p *plan) ends(kind fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == killBefore || kind == killAfter {
		p.kill()
	}
}

// beforeConjur puts the faults before a server, for requests of engines.
func (p *plan) beforeConjur() conjurdtest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind, is := fault(0), false
			if strings.Contains(r.UserAgent(), "engine") {
				kind, is = p.next()
			}
			if !is {
				next.ServeHTTP(w, r)
				return
			}
			if kind == lost || kind == killAfter {
				next.ServeHTTP(httptest.NewRecorder(), r)
			}
			p.ends(kind)
			panic(http.ErrAbortHandler)
		})
	}
}

// beforePostgres returns an address by which the database is reached, with the
// faults at each message to it.
func (p *plan) beforePostgres(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.between(ctx, conn) })
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

// between passes on what a client and the database send, until a fault.
func (p *plan) between(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", postgres.Addr)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if err == nil {
				_, err = client.Write(buf[:n])
			}
			if err != nil {
				_ = client.Close()
				return
			}
		}
	})
	defer back.Wait()
	defer server.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		kind, is := p.next()
		if !is {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		if kind == lost || kind == killAfter {
			_ = client.Close() // what comes back is lost
			_, _ = server.Write(buf[:n])
			// It works on; its end shows that it has.
			_ = server.(*net.TCPConn).CloseWrite()
		}
		p.ends(kind)
		return
	}
}

// TestFaultsAtEachBoundary kills, cuts off and leaves without an answer an engine
// at its requests to Conjur and its messages to the database, while a set begins
// and its users take turns once.
func TestFaultsAtEachBoundary(t *testing.T) {
	const boundaries = 110 // a rotation without faults has about as many
	turns := make(chan struct{}, 8)
	var all sync.WaitGroup
	for seed := range *seeds {
		dice := rand.New(rand.NewPCG(uint64(seed), 35))
		for kind := range faultKinds {
			for range 3 {
				p := &plan{at: dice.IntN(boundaries), kind: kind, dice: rand.New(rand.NewPCG(uint64(seed), dice.Uint64()))}
				s := newShop(t)
				s.Intercept(p.beforeConjur())
				address := p.beforePostgres(t)
				turns <- struct{}{}
				all.Go(func() {
					defer func() { <-turns }()
					if err := s.survives(p, address); err != nil {
						t.Errorf("seed %d, %v at message %d: %v", seed, kind, p.at, err)
					}
				})
			}
		}
	}
	all.Wait()
}

// survives runs engines, each until it is killed, until the set has begun and was
// rotated twice, and judges what is left.
func (s *shop) survives(p *plan, address string) error {
	ended, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	last, turns := "", 0
	for turns < 3 {
		ctx, kill := context.WithCancel(ended)
		p.mu.Lock()
		p.kill = kill
		p.mu.Unlock()
		client, err := s.connect("rotates", "engine")
		if err != nil {
			kill()
			return err
		}
		engine := s.rotator(client, s.database(client, address), nil)
		done := make(chan struct{})
		go func() { defer close(done); engine.Run(ctx) }()
		for ctx.Err() == nil && turns < 3 {
			primary, idle, err := s.look(ended)
			if err == nil && idle && primary != last {
				if last, turns = primary, turns+1; turns < 3 {
					err = s.steer(ended)
				}
			}
			if err != nil {
				kill()
				<-done
				return err
			}
			sleep(ctx)
		}
		kill()
		<-done
		client.Close()
		if ended.Err() != nil {
			return fmt.Errorf("it is stuck: %s", told(s.doc()))
		}
	}
	return s.judge(ended)
}

// judge says what is wrong with a set that is idle: users that may log in, and are
// not the primary, values that differ under one id.
func (s *shop) judge(ctx context.Context) error {
	doc := s.doc()
	primary, _ := doc.Primary()
	if err := s.database(s.reader, postgres.Addr).Verify(ctx, primary); err != nil {
		return err
	}
	if users := s.logins(); len(users) != 1 || users[0] != string(primary.Parts["username"].Bytes()) {
		return fmt.Errorf("%q may log in", users)
	}
	passwords := map[string]string{}
	numbers, reading := s.reader.Versions(ctx, set)
	for _, n := range numbers {
		for _, v := range s.at(ctx, n).Versions {
			is := string(v.Parts["username"].Bytes()) + " " + string(v.Parts["password"].Bytes())
			if was, known := passwords[v.ID]; known && was != is && is != " " {
				return fmt.Errorf("%s has two values", v.ID)
			}
			if passwords[v.ID] == "" {
				passwords[v.ID] = is
			}
		}
	}
	return reading.Err
}
