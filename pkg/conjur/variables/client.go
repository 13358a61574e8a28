// Package variables tracks the variables of one identity: their current values
// (Fetch), and which of them changed since the last poll (Changed). A failure is
// never a conclusion: without an answer in the server's own format, the verdict is
// Unknown, and nothing changes.
//
// The package sends requests through the interface [Conjur], in which a method is
// one request. This package draws conclusions from several answers over time.
// Package conjur sends the requests.
//
// # A call
//
// A [Client.Changed] is a poll. It requests all variables in use. Its chunks are
// stable from one poll to the next, so that an ETag answers for each (chunk.go). A
// [Client.Fetch] requests some values for delivery. Fetches that arrive during
// another share the next request (flight.go). Both are a call (call.go). A call has
// a budget of requests besides the first for each chunk, and a handler for the
// answers.
//
// A batch returns all values or none. A refused batch is narrowed (bisect.go):
// variables that the answer names are set aside, otherwise the chunk is halved. The
// list of variables determines the order of requests (bisect.go, trust.go), and
// proves nothing. A variable that is set aside is later requested individually
// (single.go). The list also defines the meaning of * (catalog.go).
//
// # Memory
//
// For each variable, memory (memory.go) holds a record without its value. The
// record contains the fingerprint of the delivered value, so that a poll can report a
// change, and the findings about its existence. Variables outside all polls are
// forgotten.
//
// # When a variable is gone
//
// An answer that calls a variable gone is an observation. Enough observations over
// time, by one identity and with a newer token, are a proof (proof.go,
// forbidden.go). If most variables are gone at once, the brake delays the proofs
// (brake.go). If it knows too little about the other variables to decide, they are
// requested (others.go). A value that a variable had before its current one is also
// held back for a while (steady.go). All these rules can change while the Client is
// in use: [Client.SetRules].
//
// # Locks
//
// One poll runs at a time and owns the plan. Fetches run concurrently. All share
// the memory, whose lock is never held during a request. A step numbers calls and
// observations, so that overlapping calls count as one.
package variables

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/conjur"
)

// Conjur sends requests. *conjur.Client implements it and documents each method.
type Conjur interface {
	Batch(ctx context.Context, b *conjur.Batch, etag string) conjur.Values
	Variable(ctx context.Context, id, etag string) conjur.Values
	List(ctx context.Context, length, offset int, etag string) (conjur.Page, conjur.Reading)
	Whoami(ctx context.Context, t *conjur.Token) (conjur.Identity, conjur.Reading)
	Check(ctx context.Context, t *conjur.Token, id, privilege string) conjur.Reading
	Resource(ctx context.Context, t *conjur.Token, id string) (conjur.Resource, conjur.Reading)
	Renew(ctx context.Context, moment time.Time) error
	AwaitRate(ctx context.Context)
	Reconnect()
	LineLength(ids ...string) int
}

// Config is the configuration of a Client besides Conjur. Zero fields have
// defaults.
type Config struct {
	Rules Rules
	// SearchRate is the number of requests per second that all budgets together may
	// use; default 25, which is half the rate of a conjur.Client.
	SearchRate rate.Limit
	// Listener, if set, is notified of holds.
	Listener Listener
	// Delivered reports whether a value of any of the variables may have been
	// delivered, and whether that is known yet. Nil means that it may. It is called
	// during a Fetch or Changed.
	Delivered func(ids []string) (may, known bool)
	// Users says who uses the variables, so that the Brake can tell tenants apart; nil:
	// there is one. It is called in the course of a Fetch or Changed.
	Users func() map[string]Use
	// Logger may be nil.
	Logger *zap.Logger
}

// Listener is notified of holds by the Brake.
type Listener interface {
	// Held is called when a hold begins and ends, during a Fetch or Changed. It
	// must not block.
	Held(HoldEvent)
}

// Rules say when to accept a conclusion. Zero fields have defaults.
type Rules struct {
	// Confirmations is the number of proofs, in separate calls, before the Verdict
	// is Gone; default 2. If there are several, the last must use an access token
	// that was requested after the first.
	Confirmations int
	// ConfirmAfter is the minimum time between two such proofs. Zero means that any
	// later call may confirm.
	ConfirmAfter time.Duration
	// Grace is the minimum time from the first such proof to the Verdict Gone. Zero
	// means that only ConfirmAfter and the caller's schedule apply.
	Grace time.Duration
	// Steady is how long a recent earlier value must be answered without another
	// value in between, before it is accepted. A value is recent for the same
	// period. One of several servers behind a load balancer may lag. Zero accepts
	// it at once.
	Steady time.Duration
	// Brake delays proofs if most variables disappear at once.
	Brake Brake
	// Once means that the process delivers once and has no polls. If a target holds
	// all variables, a Fetch then asks until each of them has an answer.
	Once bool
	// RequestBudget is the number of requests that one Changed, or one merged
	// Fetch, may spend on diagnosing refused batches and on variables that are
	// gone; default 32.
	RequestBudget int
}

// withDefaults returns the complete rules, or an error for invalid ones.
func (r Rules) withDefaults() (Rules, error) {
	for name, n := range map[string]int64{
		"number of confirmations": int64(r.Confirmations), "time between confirmations": int64(r.ConfirmAfter), "grace": int64(r.Grace),
		"steady time": int64(r.Steady), "hold of the brake": int64(r.Brake.Hold), "request budget": int64(r.RequestBudget),
	} {
		if n < 0 {
			return r, fmt.Errorf("%s must not be negative", name)
		}
	}
	if !(r.Brake.Share >= 0) { // also true for NaN
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

// Client tracks the variables of one identity. It is safe for concurrent use.
// Between calls it runs no goroutines.
type Client struct {
	conjur    Conjur
	listener  Listener
	delivered func(ids []string) (may, known bool)
	log       *zap.Logger
	bareLine  int           // length of a batch's request line without ids
	search    *rate.Limiter // for requests that a budget pays for
	trouble   retry.Rest    // while active, one server failure ends a call
	memory    *memory
	line      *lineLimit
	flights   flights
	list      *Catalog     // of all variables, to consult after many refusals
	looks     retry.Rest   // between such consultations
	fruitless atomic.Int32 // successive calls that searched in vain

	polling chan struct{} // holds one element during a Changed
	plan    plan          // owned by the Changed in progress
}

// New returns a Client that uses c. c must outlive it. New sends nothing and starts
// nothing.
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
	client.memory.users = config.Users
	client.flights.client = client
	client.list = client.NewCatalog()
	client.list.mostPages, client.list.valued = mostPagesToLook, true
	return client, nil
}

// SetRules changes the rules for later answers. The memory stays: fingerprints,
// ETags, incomplete proofs, and an active hold with its end, unless the brake is
// disabled. SetRules causes no requests.
func (c *Client) SetRules(rules Rules) error {
	rules, err := rules.withDefaults()
	if err != nil {
		return err
	}
	c.memory.setRules(rules)
	c.setBurst()
	return nil
}

// setBurst permits two budgets at once.
func (c *Client) setBurst() {
	budget, _ := c.memory.budget(0)
	c.search.SetBurst(2 * budget)
}

// encodedLen returns the length that a variable adds to a batch's request line.
func (c *Client) encodedLen(id string) int { return c.conjur.LineLength(id) - c.bareLine }

// Askable reports whether a variable with the id can be requested.
func Askable(id string) bool { return conjur.CheckID(id) == nil }
