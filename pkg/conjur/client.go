// Package conjur sends requests, as one identity, to a server that speaks Conjur's
// protocol. It sends requests and reads answers. Package variables draws
// conclusions from several answers over time.
//
// # Requests
//
// A method of [Client] is one request. [Client.Variable] requests one value,
// [Client.Batch] several. [Client.List] requests a page of the list of variables. [Client.Whoami], [Client.Check]
// and [Client.Resource] ask questions that only Conjur can answer, with the token
// of an earlier request. [Client.Set] and [Client.SetAll] write. The library
// conjur-api-go builds the requests. This package sends them and implements
// everything below.
//
// # Answers
//
// Each method returns a [Reading]. It names the [Form] of the answer and the
// [Token] that was used. The form follows from the status of the response and from
// features of Conjur's answers alone: a body in its format, or unusual headers. A gateway's page that contains the number 404 is
// Unusable. Callers decide by the form, never by the text of an error. From the
// received data, an error contains only a message code and a name. Values are in
// [secret.Value]s. Bodies are overwritten after reading.
//
// # Tokens
//
// All requests share one access token. It is renewed after three quarters of its
// lifetime. One renewal serves all waiting requests. A 401 replaces the token once.
// After a failed login, the next one waits for a growing [retry.Rest]. After a slow
// login, the next request waits at random, because a whole fleet may wait. A 403 to a
// request that the server permits for every existing identity requires proof that
// the identity exists: a new token. Without it the error is an [IdentityError]. An
// [Authenticator] produces the credential; package authn implements all of them.
//
// # Limits
//
// Requests wait for a rate limit, and end at a timeout. Polls yield to the other requests.
// Retry-After pauses all requests. The client keeps two connections, so that a poll never
// delays a fetch.
// The length limit of a body depends on the request. Decoding keeps only the
// requested data, so an answer takes at most a small multiple of that limit. The
// client checks the CA file before each request, and uses it if it changed.
package conjur

import (
	"context"
	"net/http"
	"strings"

	"github.com/cyberark/conjur-api-go/conjurapi"
	"go.uber.org/zap"
)

// Client talks to one server as one identity. It is safe for concurrent use.
// Between calls its only goroutines are those of net/http for idle connections.
type Client struct {
	config    Config // with defaults filled in
	log       *zap.Logger
	api       *conjurapi.Client // builds requests and never sends them
	base      string            // the server's URL as completed by the builder
	transport *transport
	pace      *pace
	pauser    pauser
	tokens    *tokens
	replays   *replays // recognizes answers that a cache repeats
}

// New returns a Client. It checks the whole configuration and reads the CA
// certificates. It sends nothing and starts nothing.
func New(config Config) (*Client, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Client{config: config, log: config.Logger, pace: newPace(config.RateLimit)}
	var err error
	if c.transport, err = newTransport(&c.config, c.log); err != nil {
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
	c.tokens, c.replays = &tokens{client: c}, newReplays()
	return c, nil
}

// AwaitRate returns when the rate limit lets a request pass at once. Whoever collects
// variables for a batch calls it before, because more of them may arrive meanwhile. In the
// first seconds it lets 100 calls per second pass.
func (c *Client) AwaitRate(ctx context.Context) { c.pace.gather(ctx) }

// Reconnect closes the idle connections, so that the next request opens a new one.
// Behind a load balancer, that one may lead to another server.
func (c *Client) Reconnect() { c.transport.close() }

// Close closes the idle connections. No call may be in progress.
func (c *Client) Close() { c.transport.close() }

// identify sets the headers of every request: those that identify the client, and one
// that asks caches for an answer of the server.
func (c *Client) identify(req *http.Request) {
	req.Header.Set("Cache-Control", "no-cache")
	req.Header.Set("User-Agent", "syncer/"+c.config.Version)
	req.Header.Set(conjurapi.ConjurSourceHeader, c.api.GetTelemetryHeader())
}
