// Package variables knows the variables of one identity: what their values are
// now (Fetch), and which of them changed since the last look (Changed). It never
// takes a failure for an answer: what the server did not say in its own form is
// Unknown, and touches nothing.
//
// It asks through the interface [Conjur], of which a method is one request. What
// follows from the answers over time is here; how to ask is in package conjur.
//
// # A call
//
// A [Client.Changed] is a poll: it asks for all variables in use, in chunks that
// stay the same from one poll to the next, so that an ETag answers for each
// (plan.go, chunk.go). A [Client.Fetch] asks for some values, for whoever is to
// deliver them; those that come while one is under way share the next (flight.go).
// Both are a call (call.go), which has a budget of requests beyond the first one
// for each chunk, and a handler that takes the answers.
//
// A batch is all or nothing. One that is refused is narrowed (narrow.go): what the
// answer names is set aside, else the chunk is halved. The list of variables says
// in which order to ask (look.go, trust.go), and proves nothing. A variable that is
// set aside is asked for by itself, when its turn comes (single.go). The list is
// also what * stands for (catalog.go).
//
// # What is remembered
//
// A variable has a record in memory (memory.go), never its value: the fingerprint of
// what was delivered, so that a poll can report a change, and what is known of
// whether it is there. Variables that no poll is about are forgotten.
//
// # When a variable is gone
//
// An answer that calls a variable gone is an observation; enough of them, spaced,
// on one identity and by a newer token, are a proof (proof.go, forbidden.go). When
// most variables are gone at once, the brake holds the proofs back (brake.go); where
// too little is known of the others for it to decide, they are asked for (others.go).
// A value that a variable had before its last is held back too for a while
// (steady.go). The rules for all of this can change while the Client is in use:
// [Client.SetRules].
//
// # Locks
//
// One poll runs at a time and owns the plan; fetches run beside it. All share the
// memory, whose lock is never held over a request. A step numbers calls and
// observations, so that calls that overlap count as one look.
package variables

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/retry"
)

// Conjur is what asks: a *conjur.Client, whose methods say what each of these
// does.
type Conjur interface {
	Batch(ctx context.Context, b *conjur.Batch, etag string) conjur.Values
	Variable(ctx context.Context, id, etag string) conjur.Values
	Values(ctx context.Context, ids []string) conjur.Values
	List(ctx context.Context, length, offset int, etag string) (conjur.Page, conjur.Reading)
	Whoami(ctx context.Context, t *conjur.Token) (conjur.Identity, conjur.Reading)
	Check(ctx context.Context, t *conjur.Token, id, privilege string) conjur.Reading
	Resource(ctx context.Context, t *conjur.Token, id string) (conjur.Resource, conjur.Reading)
	Renew(ctx context.Context, moment time.Time) error
	Reconnect()
	LineLength(ids ...string) int
}

// Config is what a Client needs beside Conjur. Zero fields take their defaults.
type Config struct {
	Rules Rules
	// SearchRate is how many requests a second all budgets together may use;
	// default 25, which is half of what a conjur.Client sends.
	SearchRate rate.Limit
	// Listener, if set, hears of holds.
	Listener Listener
	// Delivered reports whether a value of any of the variables may have been
	// delivered, and whether that is known yet; nil: it may. It is called in the
	// course of a Fetch or Changed.
	Delivered func(ids []string) (may, known bool)
	// Logger may be nil.
	Logger *zap.Logger
}

// Listener hears of holds by the Brake.
type Listener interface {
	// Held is called when a hold begins and ends, in the course of a Fetch or
	// Changed. It must not block.
	Held(HoldEvent)
}

// Rules say what is believed, and when. Zero fields take their defaults.
type Rules struct {
	// Confirmations is how often a variable must be proven gone, in separate
	// calls, before its Verdict is Gone; default 2. The last of several must
	// be made with an access token that was requested after the first.
	Confirmations int
	// ConfirmAfter is the time that must lie between two such proofs; zero:
	// any later call may confirm.
	ConfirmAfter time.Duration
	// Grace is the least time from the first such proof to the one by which
	// its Verdict becomes Gone; zero: as ConfirmAfter and the caller's own
	// pace have it.
	Grace time.Duration
	// Steady is how long a value must be answered, without another between, that
	// the variable had a while ago, no longer than this, before another: one of
	// several servers behind an address may lag behind. Zero: it is believed at
	// once.
	Steady time.Duration
	// Brake holds back what the proofs say when most variables go at once.
	Brake Brake
	// RequestBudget is how many requests one Changed, or one merged Fetch, may
	// spend on finding out what is wrong with refused batches and on variables
	// that are gone; default 32.
	RequestBudget int
}

// withDefaults returns the rules complete, or an error if one is impossible.
func (r Rules) withDefaults() (Rules, error) {
	for name, n := range map[string]int64{
		"number of confirmations": int64(r.Confirmations), "time between confirmations": int64(r.ConfirmAfter), "grace": int64(r.Grace),
		"steady time": int64(r.Steady), "hold of the brake": int64(r.Brake.Hold), "request budget": int64(r.RequestBudget),
	} {
		if n < 0 {
			return r, fmt.Errorf("%s must not be negative", name)
		}
	}
	if !(r.Brake.Share >= 0) { // nor is it a number, maybe
		return r, errors.New("share of the brake must not be negative")
	}
	r.Confirmations = orDefault(r.Confirmations, 2)
	r.RequestBudget = orDefault(r.RequestBudget, 32)
	r.Brake = r.Brake.withDefaults()
	return r, nil
}

func orDefault[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// Client knows the variables of one identity. It is safe for use by several
// goroutines. Between calls it has no goroutine of its own.
type Client struct {
	conjur    Conjur
	listener  Listener
	delivered func(ids []string) (may, known bool)
	log       *zap.Logger
	bareLine  int           // the length of a batch's request line without any id
	search    *rate.Limiter // of the requests that a budget pays for
	trouble   retry.Rest    // while it is on, one failure of the server ends a call
	memory    *memory
	line      *lineLimit
	route     atomic.Int32 // to a status for each variable; see values.go
	flights   flights
	list      *Catalog     // of what there may be, to look in where much is refused
	looks     retry.Rest   // between such looks
	fruitless atomic.Int32 // calls in a row that asked on and heard nothing

	polling chan struct{} // holds one element while a Changed is under way
	plan    plan          // owned by the Changed that is under way
}

// New returns a Client that asks c, which outlives it. It sends nothing and
// starts nothing.
func New(c Conjur, config Config) (*Client, error) {
	rules, err := config.Rules.withDefaults()
	if err != nil {
		return nil, err
	}
	client := &Client{
		conjur:   c,
		listener: config.Listener, delivered: config.Delivered,
		log:      orDefault(config.Logger, zap.NewNop()),
		bareLine: c.LineLength(),
		search:   rate.NewLimiter(orDefault(config.SearchRate, 25), 2*rules.RequestBudget),
		memory:   newMemory(rules),
		line:     newLineLimit(maxRequestLine),
		polling:  make(chan struct{}, 1),
	}
	client.flights.client = client
	client.list = client.NewCatalog()
	client.list.mostPages, client.list.valued = mostPagesToLook, true
	return client, nil
}

// SetRules changes the rules from the next answer on. What is known stays as it
// is: fingerprints and ETags, the proofs gathered so far, and a hold that is on
// with its end, unless the brake is switched off. Nothing is asked anew.
func (c *Client) SetRules(rules Rules) error {
	rules, err := rules.withDefaults()
	if err != nil {
		return err
	}
	c.memory.setRules(rules)
	c.search.SetBurst(2 * rules.RequestBudget)
	return nil
}

// encodedLen is what a variable adds to the request line of a batch.
func (c *Client) encodedLen(id string) int { return c.conjur.LineLength(id) - c.bareLine }

// Askable reports whether a variable can have the id, so that it may be asked
// for.
func Askable(id string) bool { return conjur.CheckID(id) == nil }
