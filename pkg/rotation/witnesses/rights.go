package witnesses

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// rightFor is how long an answer about a permission counts as valid.
const rightFor = time.Minute

// access is one identity's access to one variable. It contains the identity's name.
type access struct{ identity, variable string }

// right records whether an access is permitted, if Conjur has answered.
type right struct {
	may, known bool
	asked      time.Time
	since      time.Time // when the answer was first unknown
}

// right returns the last answer.
func (w *Witnesses) right(a access) right {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rights[a]
}

// askRights asks Conjur about the permissions that are unknown or stale. It asks for all
// identities concurrently.
func (w *Witnesses) askRights(ctx context.Context, all []access) {
	slices.SortFunc(all, func(a, b access) int {
		return cmp.Or(cmp.Compare(a.identity, b.identity), cmp.Compare(a.variable, b.variable))
	})
	var asking sync.WaitGroup
	for _, a := range slices.Compact(slices.Clone(all)) {
		before := w.right(a)
		if !before.asked.IsZero() && time.Since(before.asked) < rightFor {
			continue
		}
		asking.Go(func() {
			may, known := w.mayRead(ctx, a)
			if ctx.Err() != nil {
				return // that says nothing about the permission
			}
			now := right{may: may, known: known, asked: time.Now(), since: before.since}
			if known || before.since.IsZero() {
				now.since = now.asked
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.rights[a] = now
		})
	}
	asking.Wait()
}

// mayRead asks Conjur as an identity whether it may read a variable. A denial counts only
// if the server knows the identity, because any server can answer with a bare status.
func (w *Witnesses) mayRead(ctx context.Context, a access) (may, known bool) {
	client := w.config.Process.Client(a.identity)
	if client == nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, w.config.Timeout())
	defer cancel()
	switch client.Check(ctx, nil, a.variable, conjur.Execute).Form {
	case conjur.Given:
		return true, true
	case conjur.No, conjur.Missing:
		_, reading := client.Whoami(ctx, nil)
		return false, reading.Form == conjur.Given
	}
	return false, false
}

// identityOf names the identity that serves a Secret.
func (w *Witnesses) identityOf(record records.Record) string {
	return w.config.Process.IdentityOf(record.Spec.Secret.Namespace, record.Spec.Secret.Name)
}
