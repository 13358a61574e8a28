package sources

import (
	"context"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostPatience limits how long a poll waits for the list.
const mostPatience = 5 * time.Second

// listing lists the variables for a Poll, one request at a time.
type listing struct {
	*Poll
	running sync.WaitGroup
	found   chan listed // from the list in progress; nil: none
}

// listed is the result of listing.
type listed struct {
	keys []targets.Key
	err  error
}

// awaitList starts listing, unless a list is in progress. It waits only a limited time for
// the result: a server that lists slowly must not delay rotations.
func (l *listing) awaitList(ctx context.Context, interval time.Duration) []targets.Key {
	if l.Lister == nil {
		return nil
	}
	switch {
	case l.found != nil:
	case !l.Lister.Lists():
		l.Reporter.Report("list", nil)
		return nil
	default:
		found := make(chan listed, 1)
		l.found = found
		l.running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, l.Deadline)
			defer cancel()
			keys, err := l.Lister.Relist(ctx)
			found <- listed{keys, err}
		})
	}
	patience := time.NewTimer(min(interval/2, mostPatience))
	defer patience.Stop()
	select {
	case found := <-l.found:
		l.found = nil
		if ctx.Err() == nil {
			l.Reporter.Report("list", found.err)
		}
		return found.keys
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil
}
