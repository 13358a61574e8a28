package pipeline

import (
	"context"
	"time"
)

const (
	// waitingLook is the time between retries of Secrets that exceeded the budget of
	// their namespace. waitingMost bounds the Secrets of a namespace in one retry.
	waitingLook = 10 * time.Second
	waitingMost = 4
)

// waiting are the Secrets that wait for room in the budget of their namespace.
type waiting struct{ secrets *secrets }

// Run retries until ctx ends.
func (w waiting) Run(ctx context.Context) {
	every(ctx, waitingLook, func() {
		for _, key := range w.secrets.set.Waiting(waitingMost) {
			namespace, name := key.Secret()
			for _, watch := range w.secrets.watches() {
				if watch.Follows(namespace, name) {
					w.secrets.troubles.Report("waiting secrets of namespace "+namespace, watch.Reread(ctx, namespace, name))
				}
			}
		}
	})
}
