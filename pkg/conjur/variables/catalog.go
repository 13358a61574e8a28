package variables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
)

// ErrNoVariables means that the server listed no variables. An identity that lost
// its privileges sees the same as one that never had any. Therefore no conclusion
// is possible.
var ErrNoVariables = errors.New("the list of variables is empty")

const (
	// shortestPage ends the search for an accepted page length.
	shortestPage = 50
	// mostPages limits a server that has a page for every offset.
	mostPages = 1000
)

// Catalog knows the ids of the variables that a Client's identity can see. The
// identity may lack the privilege to read them. It is safe for concurrent use.
// Create it with Client.NewCatalog.
type Catalog struct {
	client *Client

	mostPages  int
	valued     bool          // omit variables that are listed without a value
	refreshing chan struct{} // holds one element during a Refresh
	// Owned by the Refresh in progress:
	length int      // of a page
	pages  []page   // of the last valid list
	odd    []string // ids in it that cannot be requested

	mu      sync.Mutex
	ids     []string
	unset   map[string]bool
	readers map[string]string // see conjur.Page; only if valued
}

// page is one answer to a request for the list.
type page struct {
	etag   string
	length int // of the list in it
	ids    []string
	unset  map[string]bool

	readers map[string]string
}

// NewCatalog returns an empty Catalog.
func (c *Client) NewCatalog() *Catalog {
	return &Catalog{client: c, mostPages: mostPages, refreshing: make(chan struct{}, 1), length: conjur.LongestPage}
}

// IDs lists the variables of the last valid list in ascending order, without
// account and kind. It returns nil before the first list. The caller must not
// modify the result.
func (c *Catalog) IDs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids
}

// known returns the IDs and who may read them.
func (c *Catalog) known() (ids []string, readers map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids, c.readers
}

// Unset returns the IDs that are listed without a value. The caller must not modify
// the result.
func (c *Catalog) Unset() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unset
}

// Refresh requests the whole list, page by page and conditionally. It reports
// whether the ids, or the ids without a value, changed. On an error the last valid
// list remains. An empty list is an error. Calls do not overlap: a second call
// waits for the first.
func (c *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	select {
	case c.refreshing <- struct{}{}:
		defer func() { <-c.refreshing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	pages, err := c.readPages(ctx)
	if err != nil {
		return false, fmt.Errorf("listing the variables: %w", err)
	}
	var all []string
	unset, readers := map[string]bool{}, map[string]string{}
	for _, p := range pages {
		all = append(all, p.ids...)
		maps.Copy(unset, p.unset)
		maps.Copy(readers, p.readers)
	}
	ids, odd := askable(all)
	if len(ids) == 0 {
		return false, ErrNoVariables
	}
	c.pages = pages
	c.report(odd)
	if !c.valued {
		c.client.memory.holdsAll()
		c.client.setBurst()
		c.reportUnset(unset)
	}
	return c.set(ids, unset, readers), nil
}

// askable sorts ids and removes duplicates, which occur if the list changes between
// two pages. It separates the ids that cannot be requested.
func askable(all []string) (ids, odd []string) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(all))) {
		if conjur.CheckID(id) == nil {
			ids = append(ids, id)
		} else {
			odd = append(odd, id)
		}
	}
	return ids, odd
}

func (c *Catalog) set(ids []string, unset map[string]bool, readers map[string]string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = !slices.Equal(ids, c.ids) || !maps.Equal(unset, c.unset)
	c.ids, c.unset, c.readers = ids, unset, readers
	return changed
}

// report logs, once, the variables that are omitted from the list.
func (c *Catalog) report(odd []string) {
	if len(odd) > 0 && !slices.Equal(odd, c.odd) {
		c.client.log.Warn("Conjur lists variables with ids that no request can contain; they are left out",
			zap.Int("variables", len(odd)), zap.String("first", odd[0]))
	}
	c.odd = odd
}

// reportUnset logs that variables without a value are left out, when they change.
func (c *Catalog) reportUnset(unset map[string]bool) {
	if len(unset) == 0 || maps.Equal(unset, c.Unset()) {
		return
	}
	ids := slices.Sorted(maps.Keys(unset))
	c.client.log.Info("Conjur lists variables without a value; targets with all variables leave them out",
		zap.Int("variables", len(ids)), zap.Strings("names", ids[:min(len(ids), mostNamed)]))
}

// readPages requests all pages, up to the first one that is not full.
func (c *Catalog) readPages(ctx context.Context) (pages []page, err error) {
	for len(pages) < c.mostPages {
		var known page
		if len(pages) < len(c.pages) {
			known = c.pages[len(pages)] // its length may differ, but then its ETag differs too
		}
		p, r := c.listed(ctx, len(pages)*c.length, known)
		if tooMany(r) && c.shorten() {
			pages = nil
			continue
		}
		if r.Err != nil {
			return nil, r.Err
		}
		if n := len(pages); n > 0 && len(p.ids) > 0 && slices.Equal(p.ids, pages[n-1].ids) {
			return nil, errors.New("the server gives the same page for every offset")
		}
		pages = append(pages, p)
		if p.length < c.length {
			return pages, c.verifyIdentity(ctx, r.Token)
		}
	}
	return nil, fmt.Errorf("the list has more than %d pages", c.mostPages)
}

// verifyIdentity verifies that the first list belongs to this identity. For a missing
// variable, another value may be delivered instead.
func (c *Catalog) verifyIdentity(ctx context.Context, t *conjur.Token) error {
	if c.pages != nil || c.valued {
		return nil
	}
	_, r := c.client.conjur.Whoami(ctx, t)
	return r.Err
}

// shorten halves the page length. It returns false if the length cannot be the
// reason.
func (c *Catalog) shorten() bool {
	c.length /= 2
	if c.length >= shortestPage {
		return true
	}
	c.length = conjur.LongestPage
	return false
}

// tooMany reports whether shorter pages may help. Either the server permits fewer
// variables per page (it answers 422), or the page exceeds the read limit.
func tooMany(r conjur.Reading) bool {
	return r.Form == conjur.TooLarge || r.Status == http.StatusUnprocessableEntity
}

// listed requests one page, unless the known page is current.
func (c *Catalog) listed(ctx context.Context, offset int, known page) (page, conjur.Reading) {
	p, r := c.client.conjur.List(ctx, c.length, offset, known.etag)
	switch r.Form {
	case conjur.Unchanged:
		return known, r
	case conjur.Given:
		read := page{etag: r.ETag, length: len(p.IDs), ids: p.IDs, unset: p.Unset}
		if c.valued {
			read.ids = slices.DeleteFunc(p.IDs, func(id string) bool { return p.Unset[id] })
			read.readers = p.Readers
		}
		return read, r
	}
	return page{}, r
}
