// Package conjur sends requests to a server that speaks Conjur's protocol, as
// one identity. It asks and reads answers; what follows from them over time is
// the business of package variables.
//
// # Requests
//
// A method of [Client] is one request: [Client.Batch] asks for several values,
// [Client.Variable] for one, [Client.Values] for several with a status for
// each, [Client.List] for a page of the list of variables. [Client.Whoami],
// [Client.Check] and [Client.Resource] ask what only Conjur can answer, with
// the very token that an earlier request was made with. [Client.Set] and
// [Client.SetAll] write. The library conjur-api-go builds the requests; sending
// them, and all that is said below, is ours.
//
// # Answers
//
// Each method returns a [Reading]. It names the [Form] of the answer and the
// [Token] that was used. A form follows from the status of the response itself
// and from what only Conjur sends with it: a body in its own words, or headers
// that nobody else combines. A gateway's page with the number 404 in it is
// Unusable. Whoever decides something asks for the form, never for the text of
// an error. An error holds nothing of what was received but a message code and
// a name; values are in [secret.Value]s, and bodies are overwritten once read.
//
// # Tokens
//
// All requests share one access token, which is renewed when three quarters of
// its life are over; one renewal serves all who wait. A 401 replaces it once.
// After a log-in that failed the next comes after a growing [retry.Rest]. A 403 to
// what the server grants every living identity has the identity prove that it
// lives, by a new token; else the error is an [IdentityError].
// An [Authenticator] makes the credential; package authn has them all.
//
// # Bounds
//
// Requests wait for a rate limit and end at a timeout. Retry-After closes a gate
// for all of them. Two connections are kept, so that a poll never delays a fetch.
// A body is read up to a bound that depends on what was asked, and decoding
// keeps only what was asked for, so an answer takes a small multiple of that
// bound at most. The CA file is looked at before each request, and a changed
// one is used.
package conjur

import (
	"net/http"
	"strings"

	"github.com/cyberark/conjur-api-go/conjurapi"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Client talks to one server as one identity. It is safe for use by several
// goroutines. Between calls it has no goroutine of its own but those of
// net/http that hold the idle connections.
type Client struct {
	config  Config // with its defaults filled in
	log     *zap.Logger
	api     *conjurapi.Client // builds requests; never sends one
	base    string            // the server's URL as the builder completes it
	wire    *wire
	limiter *rate.Limiter
	gate    gate
	tokens  *tokens
}

// New returns a Client. It checks the whole configuration and reads the CA
// certificates, but sends nothing and starts nothing.
func New(config Config) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Client{config: config, log: config.Logger, limiter: rate.NewLimiter(config.RateLimit, 2*int(config.RateLimit))}
	var err error
	if c.wire, err = newWire(&c.config, c.log); err != nil {
		return nil, err
	}
	if c.api, err = newBuilder(&c.config); err != nil {
		return nil, err
	}
	whoami, err := c.api.WhoAmIRequest()
	if err != nil {
		return nil, err
	}
	c.base = strings.TrimSuffix(whoami.URL.String(), "/whoami")
	c.tokens = &tokens{client: c, log: c.log}
	return c, nil
}

// Reconnect closes the idle connections, so that the next request goes over a
// new one: to another of several servers behind one address, maybe.
func (c *Client) Reconnect() { c.wire.close() }

// Close closes the idle connections. The Client must not be in use any more.
func (c *Client) Close() { c.wire.close() }

// identify sets the headers that say who is asking.
func (c *Client) identify(req *http.Request) {
	req.Header.Set("User-Agent", "syncer/"+c.config.Version)
	req.Header.Set(conjurapi.ConjurSourceHeader, c.api.GetTelemetryHeader())
}
