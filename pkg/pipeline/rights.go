package pipeline

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
func (s *shown) right(a access) right {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rights[a]
}

// askRights asks Conjur about the permissions that are unknown or stale. It asks for all
// identities concurrently.
func (r *rotating) askRights(ctx context.Context, all []access) {
	slices.SortFunc(all, func(a, b access) int {
		return cmp.Or(cmp.Compare(a.identity, b.identity), cmp.Compare(a.variable, b.variable))
	})
	s := r.shown
	var asking sync.WaitGroup
	for _, a := range slices.Compact(slices.Clone(all)) {
		before := s.right(a)
		if !before.asked.IsZero() && time.Since(before.asked) < rightFor {
			continue
		}
		asking.Go(func() {
			may, known := r.mayRead(ctx, a)
			if ctx.Err() != nil {
				return // that says nothing about the permission
			}
			now := right{may: may, known: known, asked: time.Now(), since: before.since}
			if known || before.since.IsZero() {
				now.since = now.asked
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.rights[a] = now
		})
	}
	asking.Wait()
}

// mayRead asks Conjur as an identity whether it may read a variable. A denial counts only
// if the server knows the identity, because any server can answer with a bare status.
func (r *rotating) mayRead(ctx context.Context, a access) (may, known bool) {
	lanes := r.of.lanes.all()
	i := slices.IndexFunc(lanes, func(l *lane) bool { return l.identity.Name == a.identity })
	if i < 0 {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, r.of.settings.config().Conjur.HTTPTimeout)
	defer cancel()
	client := lanes[i].client
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
func (r *rotating) identityOf(record records.Record) string {
	if identity, ok := r.of.settings.config().IdentityOf(record.Spec.Secret.Namespace, record.Spec.Secret.Name); ok {
		return identity.Name
	}
	return ""
}

// identitiesOf names the identities that serve Secrets of a namespace.
func (r *rotating) identitiesOf(namespace string) (names []string) {
	for _, identity := range r.of.settings.config().Identities {
		if slices.ContainsFunc(identity.Secrets, func(s string) bool { return strings.HasPrefix(s, namespace+"/") }) {
			names = append(names, identity.Name)
		}
	}
	if identity, ok := r.of.settings.config().IdentityOf(namespace, ""); ok {
		names = append(names, identity.Name)
	}
	return names
}
