package rotation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

// before returns the address of a proxy of a server, which applies the faults to each message.
func before(t *testing.T, p *faults.Plan, server string) string {
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
			all.Go(func() { between(ctx, p, conn, server) })
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

// between forwards the messages of a client and the database until a fault.
func between(ctx context.Context, p *faults.Plan, client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
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
		kind, is := p.Next()
		if !is {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		if kind.Arrives() {
			_ = client.Close() // the answer is lost
			_, _ = server.Write(buf[:n])
			// The server finishes the request; when it closes the connection, the request has
			// taken effect.
			_ = server.(*net.TCPConn).CloseWrite()
		}
		p.End(kind)
		return
	}
}

// TestFaultsAtEachBoundary causes a fault at each request to Conjur and each message to the
// database, while a set begins and is rotated. The engine is killed, disconnected, or gets
// no answer.
func TestFaultsAtEachBoundary(t *testing.T) {
	t.Parallel()
	survive(t, newShop)
}

func survive(t *testing.T, newShop func(*testing.T) *shop) {
	calm := newShop(t)
	counted := faults.None()
	calm.Intercept(counted.Before("engine"))
	if err := calm.survives(counted, before(t, counted, calm.logins.address())); err != nil {
		t.Fatal(err)
	}
	turns := make(chan struct{}, 8)
	var all sync.WaitGroup
	for seed := range seeds() {
		dice := rand.New(rand.NewPCG(uint64(seed), 35))
		for kind := range faults.Kinds {
			for range 3 {
				p := &faults.Plan{At: dice.IntN(counted.Requests()), Kind: kind, Dice: rand.New(rand.NewPCG(uint64(seed), dice.Uint64()))}
				s := newShop(t)
				s.Intercept(p.Before("engine"))
				address := before(t, p, s.logins.address())
				turns <- struct{}{}
				all.Go(func() {
					defer func() { <-turns }()
					if err := s.survives(p, address); err != nil {
						t.Errorf("seed %d, %v at message %d: %v", seed, kind, p.At, err)
					}
				})
			}
		}
	}
	all.Wait()
}

// survives starts engines one after the other, until the set has begun and was rotated
// twice. Then it checks the result.
func (s *shop) survives(p *faults.Plan, address string) error {
	ended, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	last, turns := "", 0
	for turns < 3 {
		ctx, kill := context.WithCancel(ended)
		p.KillBy(kill)
		client, err := s.connect("rotates", "engine")
		if err != nil {
			kill()
			return err
		}
		engine := s.rotator(client, s.logins.actuator(client, address), nil)
		done := make(chan struct{})
		go func() { defer close(done); engine.Run(ctx) }()
		for ctx.Err() == nil && turns < 3 {
			doc, err := s.Look(ended)
			if err == nil && settest.Idle(doc, last) {
				primary, _ := doc.Primary()
				if last, turns = primary.ID, turns+1; turns < 3 {
					err = s.Begin(ended)
				}
			}
			if err != nil {
				kill()
				<-done
				return err
			}
			settest.Sleep(ctx)
		}
		kill()
		<-done
		client.Close()
		if ended.Err() != nil {
			return fmt.Errorf("it is stuck: %s", settest.Told(s.Doc()))
		}
	}
	return s.judge(ended)
}

// judge returns the faults of an idle set: users other than the primary that may log in, and
// values that differ under one id.
func (s *shop) judge(ctx context.Context) error {
	doc := s.Doc()
	primary, _ := doc.Primary()
	if err := s.logins.actuator(s.reader, s.logins.address()).Verify(ctx, primary); err != nil {
		return err
	}
	if logins := s.logins.left(); len(logins) != 1 {
		return fmt.Errorf("%q work", logins)
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
