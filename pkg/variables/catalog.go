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

// ErrNoVariables says that the server listed no variable at all. An identity
// that lost its rights sees the same as one that never had any, so nothing
// follows from it.
var ErrNoVariables = errors.New("the list of variables is empty")

const (
	// shortestPage ends the search for a length that the server accepts.
	shortestPage = 50
	// mostPages bounds a server that has a page for every offset.
	mostPages = 1000
)

// Catalog knows the ids of the variables that a Client's identity can see;
// it need not be allowed to read them. It is safe for use by several
// goroutines. Make it with Client.NewCatalog.
type Catalog struct {
	client *Client

	mostPages  int
	valued     bool          // leave out what says that it has no value
	refreshing chan struct{} // holds one element while a Refresh is under way
	// Owned by the Refresh that is under way:
	length int      // of a page
	pages  []page   // of the last good list
	odd    []string // ids in it that no request can ask for

	mu    sync.Mutex
	ids   []string
	unset map[string]bool
}

// page is one answer to a request for the list.
type page struct {
	etag   string
	length int // of the list in it
	ids    []string
	unset  map[string]bool
}

// NewCatalog returns a Catalog that knows of no variable yet.
func (c *Client) NewCatalog() *Catalog {
	return &Catalog{client: c, mostPages: mostPages, refreshing: make(chan struct{}, 1), length: conjur.LongestPage}
}

// IDs lists the variables of the last good list in ascending order, without
// account and kind; nil before there was one. The caller must not change it.
func (c *Catalog) IDs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids
}

// Unset are those of the IDs that are said to have no value. The caller must not
// change it.
func (c *Catalog) Unset() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unset
}

// Refresh asks for the whole list, page by page and conditionally, and
// reports whether it is another one than before, or others have a value. With an error, which an empty list
// is too, the last good list stays as it was. Calls do not overlap: a second
// one waits for the first.
func (c *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	select {
	case c.refreshing <- struct{}{}:
		defer func() { <-c.refreshing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	pages, err := c.read(ctx)
	if err != nil {
		return false, fmt.Errorf("listing the variables: %w", err)
	}
	var all []string
	unset := map[string]bool{}
	for _, p := range pages {
		all = append(all, p.ids...)
		maps.Copy(unset, p.unset)
	}
	ids, odd := askable(all)
	if len(ids) == 0 {
		return false, ErrNoVariables
	}
	c.pages = pages
	c.report(odd)
	return c.set(ids, unset), nil
}

// askable sorts ids, drops repeated ones, which a list that changes between
// two pages has, and takes out those that no request can ask for.
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

func (c *Catalog) set(ids []string, unset map[string]bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = !slices.Equal(ids, c.ids) || !maps.Equal(unset, c.unset)
	c.ids, c.unset = ids, unset
	return changed
}

// report logs, once, the variables that are left out of the list.
func (c *Catalog) report(odd []string) {
	if len(odd) > 0 && !slices.Equal(odd, c.odd) {
		c.client.log.Warn("Conjur lists variables that no request can ask for; they are left out",
			zap.Int("variables", len(odd)), zap.String("first", odd[0]))
	}
	c.odd = odd
}

// read asks for all pages, up to the first one that is not full.
func (c *Catalog) read(ctx context.Context) (pages []page, err error) {
	for len(pages) < c.mostPages {
		var known page
		if len(pages) < len(c.pages) {
			known = c.pages[len(pages)] // of another length, maybe; then its tag is another one too
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
			return pages, c.vouch(ctx, r.Token)
		}
	}
	return nil, fmt.Errorf("the list has more than %d pages", c.mostPages)
}

// vouch makes sure, for the first list, that it is ours: for what it lacks
// something else may be delivered.
func (c *Catalog) vouch(ctx context.Context, t *conjur.Token) error {
	if c.pages != nil || c.valued {
		return nil
	}
	_, r := c.client.conjur.Whoami(ctx, t)
	return r.Err
}

// shorten halves the pages. When they cannot get shorter, their length was
// not the reason.
func (c *Catalog) shorten() bool {
	c.length /= 2
	if c.length >= shortestPage {
		return true
	}
	c.length = conjur.LongestPage
	return false
}

// tooMany reports whether shorter pages may help: the server allows fewer
// variables in a page (it answers 422), or the page is too long to be read.
func tooMany(r conjur.Reading) bool {
	return r.Form == conjur.TooLarge || r.Status == http.StatusUnprocessableEntity
}

// listed asks for one page, unless it is still the one that is known.
func (c *Catalog) listed(ctx context.Context, offset int, known page) (page, conjur.Reading) {
	p, r := c.client.conjur.List(ctx, c.length, offset, known.etag)
	switch r.Form {
	case conjur.Unchanged:
		return known, r
	case conjur.Given:
		ids := p.IDs
		if c.valued {
			ids = slices.DeleteFunc(ids, func(id string) bool { return p.Unset[id] })
		}
		return page{etag: r.ETag, length: len(p.IDs), ids: ids, unset: p.Unset}, r
	}
	return page{}, r
}
