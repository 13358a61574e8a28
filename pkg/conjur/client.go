// Package conjur reads variables from a server that speaks Conjur's protocol.
// It answers two questions: what are these variables' values now (Fetch), and
// which of them changed since the last look (Changed). It never takes a
// failure for an answer: what the server did not say in its own form is
// Unknown.
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
	search  *rate.Limiter // of the requests that a budget pays for
	gate    gate
	trouble rest // while it is on, one failure of the server ends a call
	tokens  *tokens
	memory  *memory
	line    *lineLimit
	route   valuesRoute
	flights flights
	list    *Catalog // of what there may be, to look in where much is refused
	looks   rest     // between such looks

	polling chan struct{} // holds one element while a Changed is under way
	plan    plan          // owned by the Changed that is under way
}

// New makes a Client. It checks the whole configuration and reads the CA
// certificates, but sends nothing and starts nothing.
func New(config Config) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Client{
		config:  config,
		log:     config.Logger,
		limiter: rate.NewLimiter(config.RateLimit, config.RateBurst),
		search:  rate.NewLimiter(config.RateLimit/2, 2*config.RequestBudget),
		memory:  newMemory(config.rules()),
		line:    newLineLimit(config.MaxRequestLine),
		polling: make(chan struct{}, 1),
	}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	var err error
	if c.wire, err = newWire(&c.config, c.log); err != nil {
		return nil, err
	}
	if c.api, err = newBuilder(&c.config); err != nil {
		return nil, err
	}
	whoami, err := c.whoamiRequest()
	if err != nil {
		return nil, err
	}
	c.base = strings.TrimSuffix(whoami.URL.String(), "/whoami")
	c.tokens = &tokens{authenticate: c.authenticate, log: c.log}
	c.flights.load = c.load
	c.list = c.NewCatalog()
	c.list.mostPages, c.list.valued = mostPagesToLook, true
	return c, nil
}

// Close closes the idle connections. The Client must not be in use any more.
func (c *Client) Close() { c.wire.close() }

// identify sets the headers that say who is asking.
func (c *Client) identify(req *http.Request) {
	req.Header.Set("User-Agent", "syncer/"+c.config.Version)
	req.Header.Set(conjurapi.ConjurSourceHeader, c.api.GetTelemetryHeader())
}
