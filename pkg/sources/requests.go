package sources

import (
	"context"
	"time"
)

// requestPause is the least time between two looks for a request: each is a
// fetch, and an application may ask in a loop.
const requestPause = time.Second

// Requests watches for an application that asks for what is missing.
type Requests struct {
	// Folder is where the request appears, as a file.
	Folder string
	// Interval is the time between looks without an event.
	Interval time.Duration
	// Take tells whether there is a request, and takes it away.
	Take func() (bool, error)
	// Taken is called for each request.
	Taken  func()
	Report Report
}

// Run watches until ctx ends.
func (r *Requests) Run(ctx context.Context) {
	report := func(err error) { r.Report("request watch", err) }
	watch(ctx, []string{r.Folder}, r.Interval, requestPause, report, func() {
		asked, err := r.Take()
		r.Report("request", err)
		if asked {
			r.Taken()
		}
	})
}
