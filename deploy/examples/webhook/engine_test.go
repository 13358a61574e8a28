package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/length"
)

var seeds = length.Seeds()

const (
	set = "shop/token"
	key = "the key that both have"
)

// shop is a set whose tokens the service makes.
type shop struct {
	*conjurdtest.Server
	set     rotation.Set
	service *httptest.Server
	path    string
}

func newShop(t *testing.T, conjurs, services *faults.Plan) *shop {
	t.Helper()
	s := &shop{Server: conjurdtest.Start(t), path: filepath.Join(t.TempDir(), "tokens.json")}
	s.Policy(`
- !policy { id: shop, body: [ !variable token, !variable token/control ] }
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable shop/token, !variable shop/token/control] }
`)
	s.Intercept(conjurs.Before("engine"))
	s.service = httptest.NewServer(services.Before("")(handler([]byte(key), s.path)))
	t.Cleanup(s.service.Close)
	reader := s.client("reader")
	t.Cleanup(reader.Close)
	s.set = rotation.Set{Conjur: reader, ID: set}
	return s
}

type apiKey string

func (k apiKey) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{Login: "host/rotates", ContentType: "text/plain", Body: secret.New([]byte(k))}, nil
}

func (s *shop) client(name string) *conjur.Client {
	client, err := conjur.New(conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6, HTTPTimeout: 10 * time.Second, Version: name,
		Authenticator: apiKey(s.HostKey("rotates")),
	})
	if err != nil {
		panic(err)
	}
	return client
}

// engine is what rotates the set.
func (s *shop) engine(client *conjur.Client) *rotation.Rotator {
	values, err := variables.New(client, variables.Config{})
	if err != nil {
		panic(err)
	}
	steps := &actuators.Steps{Set: set, Send: actuators.HTTP(s.service.URL, s.service.Client()), Key: func(context.Context) (secret.Value, error) {
		return value(key), nil
	}}
	return rotation.New(rotation.Config{
		Conjur: client, Changes: values, Owner: "us", Interval: 20 * time.Millisecond, Timeout: 30 * time.Second, Retry: 10 * time.Millisecond, Watch: time.Nanosecond,
		Sets: []rotation.Plan{{ID: set, Generate: generate.Config{Password: &generate.Password{}}, Actuator: steps, Outside: "the service", Policy: versions.Policy{GiveUp: time.Hour}}},
	})
}

// survives runs engines, each until it is killed, until the set has begun and was
// rotated twice, and judges what is left.
func (s *shop) survives(plans ...*faults.Plan) error {
	ended, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for last, turns := "", 0; turns < 3; {
		ctx, kill := context.WithCancel(ended)
		for _, p := range plans {
			p.KillBy(kill)
		}
		client := s.client("engine")
		done := make(chan struct{})
		go func() { defer close(done); s.engine(client).Run(ctx) }()
		var err error
		for ctx.Err() == nil && turns < 3 && err == nil {
			var held rotation.Held
			if held, err = s.set.Read(ended); err == nil && held.Document != nil {
				if primary, ok := held.Primary(); ok && held.Stage() == "idle" && primary.ID != last {
					if last, turns = primary.ID, turns+1; turns < 3 {
						err = s.set.SendCommand(ended, versions.Command{Verb: "now", At: time.Now()})
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
		kill()
		<-done
		client.Close()
		if err = errors.Join(err, ended.Err()); err != nil {
			return fmt.Errorf("after %d turns: %w", turns, err)
		}
	}
	return s.judge(ended)
}

// judge says what is wrong with a set that is idle: tokens that are good, and are
// not the primary's, versions that had two.
func (s *shop) judge(ctx context.Context) error {
	held, err := s.set.Read(ctx)
	if err != nil {
		return err
	}
	primary, _ := held.Primary()
	tokens := map[string]token{}
	if kept, err := os.ReadFile(s.path); err != nil || json.Unmarshal(kept, &tokens) != nil {
		return fmt.Errorf("the service's file cannot be read: %w", err)
	}
	for name, is := range tokens {
		if good := !is.Revoked; good != (name == set+"/"+primary.ID) || good && is.Hash != hash(primary.Parts["token"].Bytes()) {
			return fmt.Errorf("%s is %+v, where %s is the primary", name, is, primary.ID)
		}
	}
	had := map[string]secret.Value{}
	numbers, reading := s.set.Conjur.Versions(ctx, set)
	for _, n := range numbers {
		text, r := s.set.Conjur.VariableAt(ctx, set, n)
		doc, err := versions.Parse(text.Bytes())
		if err := errors.Join(reading.Err, r.Err, err); err != nil {
			return err
		}
		for _, v := range doc.Versions {
			if now := v.Parts["token"]; now.Len() > 0 {
				if was, known := had[v.ID]; known && !was.Equal(now) {
					return fmt.Errorf("%s had two tokens", v.ID)
				}
				had[v.ID] = now
			}
		}
	}
	return reading.Err
}

func dice(seed, n int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), uint64(n))) }

// TestATokenIsMadeAndNobodyKnows: the engine dies after the service has made a
// token, before it is recorded. The next one gets another, and the first is no good.
func TestATokenIsMadeAndNobodyKnows(t *testing.T) {
	services := &faults.Plan{At: 0, Kind: faults.KillAfter, Dice: dice(1, 1)}
	s := newShop(t, faults.None(), services)
	if err := s.survives(services); err != nil {
		t.Error(err)
	}
}

// TestFaultsAtEachBoundary kills, cuts off and leaves without an answer an engine
// at its requests to Conjur and to the service, while a set begins and is rotated
// twice.
func TestFaultsAtEachBoundary(t *testing.T) {
	calmConjur, calmService := faults.None(), faults.None()
	if err := newShop(t, calmConjur, calmService).survives(calmConjur, calmService); err != nil {
		t.Fatal(err)
	}
	turns := make(chan struct{}, 8)
	var all sync.WaitGroup
	for seed := range seeds() {
		for kind := range faults.Kinds {
			d := dice(seed, int(kind))
			for _, both := range []bool{false, true} {
				conjurs, services := faults.None(), &faults.Plan{At: d.IntN(calmService.Requests()), Kind: kind, Dice: dice(seed, d.Int())}
				if both {
					conjurs = &faults.Plan{At: d.IntN(calmConjur.Requests()), Kind: kind, Dice: dice(seed, d.Int())}
				}
				s := newShop(t, conjurs, services)
				turns <- struct{}{}
				all.Go(func() {
					defer func() { <-turns }()
					if err := s.survives(conjurs, services); err != nil {
						t.Errorf("seed %d, %v at request %d of the service, %d of Conjur: %v", seed, kind, services.At, conjurs.At, err)
					}
				})
			}
		}
	}
	all.Wait()
}
