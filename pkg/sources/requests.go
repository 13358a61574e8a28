package sources

import (
	"context"
	"time"

	"github.com/secretsync/syncer/internal/wake"
)

// requestPause is the minimum time between two checks for a request. Each request causes
// a fetch, and an application may ask in a loop.
const requestPause = time.Second

// Application can request missing content.
type Application interface {
	// TakeRequested reports whether there is a request, and removes it.
	TakeRequested() (bool, error)
	// Requested is called for each request.
	Requested()
}

// Requests watches for an application's requests for missing content.
type Requests struct {
	// Folder is the folder in which the request appears, as a file.
	Folder string
	// Interval is the time between checks without an event.
	Interval time.Duration
	// Application is the application that may ask.
	Application Application
	// Changed, if not nil, is roused after events in the folder.
	Changed  *wake.Wake
	Reporter Reporter
}

// Run watches until ctx ends.
func (r *Requests) Run(ctx context.Context) {
	report := func(err error) { r.Reporter.Report("request watch", err) }
	watch(ctx, []string{r.Folder}, r.Interval, requestPause, report, func(event bool) {
		asked, err := r.Application.TakeRequested()
		r.Reporter.Report("request", err)
		if asked {
			r.Application.Requested()
		}
		if event && r.Changed != nil {
			r.Changed.Rouse()
		}
	})
}
