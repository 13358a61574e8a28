package removal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Times of the histories are ten to thirty times shorter than usual, so that a history is
// short.
const (
	interval = 2 * time.Second
	holdTime = 30 * time.Second
	steady   = 3 * interval
)

// parts is a sink in memory. It reports removals and writes before they happen.
type parts struct {
	removing func(*targets.Target)
	writing  func(t *targets.Target, whole []byte)

	mu      sync.Mutex
	content map[targets.Key]map[string]string
	members map[targets.Key][]string
	lost    map[targets.Key]bool // somebody deleted it
}

func (p *parts) Read(_ context.Context, r records.Record) (sinks.State, error) {
	t := r.Spec
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lost, t.Key)
	state := sinks.State{Members: p.members[t.Key]}
	for name, value := range p.content[t.Key] {
		if state.Parts == nil {
			state.Parts = map[string]secret.Value{}
		}
		state.Parts[name] = secret.New([]byte(value))
	}
	return state, nil
}

func (p *parts) Apply(_ context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	t := r.Spec
	switch {
	case c.Empty():
	case c.Parts == nil:
		p.removing(t)
	default:
		p.writing(t, c.Parts[sinks.WholeFile].Bytes())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Members != nil {
		p.members[t.Key] = c.Members
	}
	if c.Empty() {
		return records.Sight{}, nil
	}
	delete(p.content, t.Key)
	if c.Parts != nil {
		p.content[t.Key] = map[string]string{}
	}
	for name, value := range c.Parts {
		p.content[t.Key][name] = string(value.Bytes())
	}
	return records.Sight{}, nil
}

// drop deletes the content of a target, as another client would.
func (p *parts) drop(key targets.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.content[key] != nil {
		delete(p.content, key)
		p.lost[key] = true
	}
}

func (p *parts) Altered() []targets.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.lost))
}

// whole returns the content of a target that is one file; "" if there is none.
func (p *parts) whole(key targets.Key) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.content[key][sinks.WholeFile]
}

// pipeline is a process made of the real parts, connected like those of the binary.
type pipeline struct {
	set     *records.Lane
	sink    *parts
	dial    *web
	grace   time.Duration
	settled func(workers.Result)

	end func()
}

// start runs a process that polls until its context ends.
func (p *pipeline) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	client, values, q, pool, listing := p.parts(-1)
	poll := &sources.Poll{
		Interval: interval, Deadline: 2 * requestTimeout, Users: p.set, Values: values,
		Results: p.sink, Lister: listing, Queue: enqueuer{q}, Reporter: unheard{}, Heart: unheard{},
	}
	var wg sync.WaitGroup
	wg.Go(func() { pool.Run(ctx) })
	q.Add(queue.Hint{Trigger: "start", Wakes: true}, p.set.Keys()...)
	wg.Go(func() { poll.Run(ctx) })
	p.end = func() { cancel(); wg.Wait(); client.Close() }
}

type enqueuer struct{ *queue.Queue }

func (q enqueuer) Enqueue(h queue.Hint, keys ...targets.Key) { q.Add(h, keys...) }

// unheard is a Reporter and a Heart that do nothing.
type unheard struct{}

func (unheard) Report(string, error) {}
func (unheard) Beat() (bool, error)  { return false, nil }
func (unheard) Stuck() bool          { return false }

// once runs a process that delivers once, with a few retries.
func (p *pipeline) once(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, _, q, pool, _ := p.parts(4)
	defer client.Close()
	var wg sync.WaitGroup
	wg.Go(func() { pool.Run(ctx) })
	q.Add(queue.Hint{Trigger: "start", Wakes: true}, p.set.Keys()...)
	_ = q.WaitDone(ctx)
	cancel()
	wg.Wait()
}

const requestTimeout = 3 * time.Second

func (p *pipeline) parts(retries int) (*conjur.Client, *variables.Client, *queue.Queue, *workers.Pool, *listing) {
	p.set.Renew()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: "http://conjur.test", Account: account, Dial: p.dial.dial, HTTPTimeout: requestTimeout,
		Authenticator: authn.APIKey{Login: "host/web", Key: secret.New([]byte("key"))},
		RateLimit:     1e6,
	})
	if err != nil {
		panic(err)
	}
	values, err := variables.New(client, variables.Config{SearchRate: 1e6, Rules: variables.Rules{
		ConfirmAfter: interval / 2, Grace: p.grace, Steady: steady, Brake: variables.Brake{Hold: holdTime},
	}})
	if err != nil {
		panic(err)
	}
	l := &listing{catalog: values.NewCatalog(), set: p.set}
	q := queue.New(queue.Config{
		Backoff: retry.Backoff{First: interval / 2, Max: interval}, Limit: retries,
		Permanent: func(err error) bool { return workers.Permanent(err, retries < 0) },
	})
	pool := workers.NewPool(workers.PoolConfig{
		Work: q, Workers: 2, Timeout: 3 * requestTimeout, Grace: time.Second,
		Syncer: &workers.Syncer{
			Targets: p.set, Values: values, Templates: noTemplates{}, Sink: p.sink, Lister: l,
			Policy: workers.Policy{RemoveRevoked: true}, Log: zap.NewNop(),
		},
		Listener: p,
	})
	return client, values, q, pool, l
}

// Started and Settled implement workers.Listener.
func (p *pipeline) Started(queue.Item)        {}
func (p *pipeline) Settled(o workers.Outcome) { p.settled(o.Result) }

// revoked returns the variables that a result reports as gone.
func revoked(r workers.Result) []string {
	var e *workers.RevokedError
	if errors.As(r.Err, &e) {
		return e.Variables
	}
	return nil
}
