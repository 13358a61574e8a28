package sources

import (
	"context"
	"time"
)

// requestPause is the least time between two looks for a request: each is a
// fetch, and an application may ask in a loop.
const requestPause = time.Second

// Application is who asks for what is missing.
type Application interface {
	// TakeRequested reports whether there is a request, and takes it away.
	TakeRequested() (bool, error)
	// Requested is called for each request.
	Requested()
}

// Requests watches for an application that asks for what is missing.
type Requests struct {
	// Folder is where the request appears, as a file.
	Folder string
	// Interval is the time between looks without an event.
	Interval time.Duration
	// Application asks.
	Application Application
	Reporter    Reporter
}

// Run watches until ctx ends.
func (r *Requests) Run(ctx context.Context) {
	report := func(err error) { r.Reporter.Report("request watch", err) }
	watch(ctx, []string{r.Folder}, r.Interval, requestPause, report, func() {
		asked, err := r.Application.TakeRequested()
		r.Reporter.Report("request", err)
		if asked {
			r.Application.Requested()
		}
	})
}
