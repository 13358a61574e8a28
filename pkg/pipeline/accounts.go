package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/wake"
)

const (
	// accountsLook is the time between looks at service accounts, which are not
	// watched: one that was missing may be there, or an entry gone.
	accountsLook = time.Minute
	// unknownLook is that while it is not known which Secrets there are.
	unknownLook = time.Second
	// accountTimeout bounds what is done to one of them.
	accountTimeout = 30 * time.Second
)

// accounts has service accounts name the Secrets that images are pulled with. What
// each is to have is read off the definitions at each look.
type accounts struct {
	*secrets
	wake wake.Wake
	used atomic.Bool      // some Secret is for an account, or was
	seen map[account]bool // those that may have Secrets of ours; Run's only
}

// account is a service account.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

func newAccounts(s *secrets) *accounts {
	return &accounts{secrets: s, seen: map[account]bool{}}
}

// changed has the accounts looked at, as a Secret is another or, for nil, gone.
// Where no Secret was ever for an account there is nothing to do.
func (a *accounts) changed(t *targets.Target) {
	if t != nil && len(t.Secret.PullFor) > 0 {
		a.used.Store(true)
	}
	if !a.used.Load() {
		return
	}
	a.wake.Rouse()
}

// Run looks until ctx ends.
func (a *accounts) Run(ctx context.Context) {
	look := time.NewTimer(accountsLook)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-a.wake.C():
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if a.used.Load() && !a.look(ctx) {
			look.Reset(unknownLook)
		} else {
			look.Reset(accountsLook)
		}
	}
}

// look brings the accounts up to date, and reports whether all was known that it
// takes.
func (a *accounts) look(ctx context.Context) (known bool) {
	known = true
	wanted, unread := map[account][]string{}, map[targets.Key]bool{}
	for _, r := range a.set.Records() {
		s := r.Spec.Secret
		unread[r.Spec.Key] = s.Unread != ""
		for _, name := range s.PullFor {
			if of := (account{s.Namespace, name}); !s.Missing {
				wanted[of], a.seen[of] = append(wanted[of], s.Name), true
			}
		}
	}
	for of := range a.seen {
		keep := func(secret string) bool {
			is := a.known(of.namespace, secret)
			known = known && is
			return !is || unread[targets.KubeSecretKey(of.namespace, secret)]
		}
		if a.bring(ctx, of, wanted[of], keep) && wanted[of] == nil {
			delete(a.seen, of)
		}
	}
	return known
}

// known reports whether all is known of a Secret that the configuration has us
// follow.
func (a *accounts) known(namespace, secret string) bool {
	for _, w := range a.watches() {
		if w.Follows(namespace, secret) && w.Complete() != nil {
			return false
		}
	}
	return true
}

// bring brings one account up to date, and reports whether nothing of it is left
// to be done.
func (a *accounts) bring(ctx context.Context, of account, wanted []string, keep func(string) bool) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	added, removed, err := a.host.cluster.SetPullSecrets(ctx, of.namespace, of.name, wanted, keep)
	switch {
	case ctx.Err() != nil && err != nil:
		return false
	case apierrors.IsNotFound(err) && wanted == nil:
		err = nil
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("there is no service account %q in the namespace %q; create it, or correct its name where the Secret is said to be for it", of.name, of.namespace)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: a Role must grant the verbs get and patch for serviceaccounts in the namespace %s", err, of.namespace)
	}
	a.troubles.Report("pull secrets of "+of.String(), err)
	for _, secret := range wanted {
		if err != nil {
			a.news.event(targets.KubeSecretKey(of.namespace, secret), corev1.EventTypeWarning, reasonNoPull, err.Error())
		}
	}
	if len(added)+len(removed) > 0 {
		a.Log.Info("Pull secrets of a service account changed", zap.Stringer("account", of), zap.String("added", strings.Join(added, " ")), zap.String("removed", strings.Join(removed, " ")))
	}
	return err == nil
}
