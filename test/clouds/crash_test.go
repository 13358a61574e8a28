package clouds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

// TestACrashAtEachRequest kills, cuts off and leaves without an answer an engine at each
// of its requests to Conjur and to the cloud. It leaves no orphan, loses no key and is
// never stuck.
func TestACrashAtEachRequest(t *testing.T) {
	for name, start := range doubles {
		t.Run(name, func(t *testing.T) {
			calm := faults.None()
			if err := newTrial(t, start, calm, false).survives(); err != nil {
				t.Fatal(err)
			}
			turns := make(chan struct{}, 40)
			var all sync.WaitGroup
			var orphans atomic.Int64
			trials := 0
			for seed := range seeds() {
				for at := range calm.Requests() {
					for kind := range faults.Kinds {
						if (at*int(faults.Kinds)+int(kind)+seed)%every() != 0 {
							continue
						}
						trials++
						turns <- struct{}{}
						p := &faults.Plan{At: at, Kind: kind, Dice: rand.New(rand.NewPCG(uint64(seed), uint64(trials)))}
						tr := newTrial(t, start, p, trials%4 == 0)
						all.Go(func() {
							defer func() { <-turns }()
							if err := tr.survives(); err != nil {
								t.Errorf("seed %d, %v at request %d: %v", seed, kind, at, err)
							}
							orphans.Add(int64(len(tr.Ended())) - 1)
						})
					}
				}
			}
			all.Wait()
			t.Logf("%d trials, in which %d keys were created and not recorded, and are gone", trials, orphans.Load())
		})
	}
}

// trial is a set in a separate cloud, and the faults that its engines meet.
type trial struct {
	*site
	double
	plan *faults.Plan
}

// newTrial starts the cloud. A throttled one refuses some requests.
func newTrial(t *testing.T, start func(testing.TB, func(http.Handler) http.Handler) double, p *faults.Plan, throttled bool) *trial {
	tr := &trial{newSite(t), start(t, p.Before("")), p}
	tr.Intercept(p.Before("engine"))
	if tr.Lag = lag / 4; throttled {
		tr.Throttle(17)
	}
	return tr
}

// survives runs engines, each until it is killed, until the set has begun and was
// rotated once, and judges what is left. It closes the cloud.
func (tr *trial) survives() error {
	s, d := tr.site, tr.double
	defer d.Close()
	ended, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	first := ""
	for {
		ctx, kill := context.WithCancel(ended)
		tr.plan.KillBy(kill)
		client := s.client("engine")
		config := brisk(client)
		config.DeleteAfter, config.Consistent = lag, 10*lag // requests of a killed engine may be on their way
		engine := s.engine(client, d.keys(config), nil, nil)
		done := make(chan struct{})
		go func() { defer close(done); engine.Run(ctx) }()
		finished, err := s.advance(ctx, ended, &first)
		kill()
		<-done
		client.Close()
		doc, unread := s.Look(context.Background())
		switch {
		case err != nil && ctx.Err() == nil, unread != nil:
			return fmt.Errorf("%w, %w", err, unread)
		case finished:
			d.Throttle(0)
			tr.plan.Rest() // the judge signs in
			return s.judge(d)
		case ended.Err() != nil:
			return fmt.Errorf("it is stuck: %s; there are %d keys", settest.Told(doc), len(d.Keys()))
		}
	}
}

// advance steers the set until it is rotated or the engine is killed.
func (s *site) advance(ctx, ended context.Context, first *string) (finished bool, err error) {
	for ctx.Err() == nil {
		doc, err := s.Look(ended)
		if err != nil {
			return false, err
		}
		primary, _ := doc.Primary()
		switch idle := settest.Idle(doc, *first); {
		case idle && *first != "":
			return true, nil
		case idle:
			if err := s.Begin(ended); err != nil {
				return false, err
			}
			*first = primary.ID
		}
		settest.Sleep(ctx)
	}
	return false, nil
}

// judge says what is wrong with a set that is idle: keys that it does not know, a key that
// is lost, another key under the id of a version.
func (s *site) judge(d double) error {
	ctx := context.Background()
	doc, err := s.Look(ctx)
	if err != nil {
		return err
	}
	primary, _ := doc.Primary()
	if keys := d.Keys(); len(keys) != 1 || keys[0].ID != d.id(primary) || !keys[0].Active {
		return fmt.Errorf("the primary has %s, and there are %d keys", d.id(primary), len(keys))
	}
	if err := d.signIn(primary); err != nil {
		return err
	}
	was := map[string]string{}
	numbers, reading := s.reader.Versions(ctx, set)
	for _, n := range numbers {
		value, reading := s.reader.VariableAt(ctx, set, n)
		if reading.Err != nil {
			return reading.Err
		}
		doc, err := versions.Parse(value.Bytes())
		if err != nil {
			return err
		}
		for _, v := range doc.Versions {
			has := d.id(v)
			if had := was[v.ID]; had != "" && has != "" && had != has {
				return fmt.Errorf("%s has had two keys", v.ID)
			}
			if has != "" {
				was[v.ID] = has
			}
		}
	}
	return reading.Err
}
