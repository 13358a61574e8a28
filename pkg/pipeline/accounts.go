package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/turns"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

const (
	// accountsLook is the time between checks of a service account. Accounts are not
	// watched: a missing account may appear, or an entry may be deleted.
	accountsLook = time.Minute
	// unknownLook replaces accountsLook until all Secrets are known.
	unknownLook = time.Second
	// accountTimeout bounds the work on one account.
	accountTimeout = 30 * time.Second
)

// accounts adds Secrets to the image pull secrets of service accounts. It checks an
// account when one of its Secrets changes, and periodically. The namespaces take turns.
type accounts struct {
	set      *records.Set
	cluster  *kube.Client
	known    func(namespace, secret string) bool // whether the watches of a Secret know all their Secrets
	events   *events
	troubles *health.Troubles
	log      *zap.Logger
	wake     wake.Wake

	mu      sync.Mutex
	touched map[targets.Key]bool // Secrets with pull accounts, now or earlier
	used    map[targets.Key]bool // the Secrets that ever had a pull account

	// Only Run uses these:
	of      map[targets.Key][]account       // the accounts of each Secret
	wanted  map[account]map[string]bool     // names of Secrets; kept until no Secret of ours remains in it
	turns   turns.Turns[account]            // the accounts in wanted
	missing map[targets.Key]map[string]bool // absent accounts, by Secret
	unsaid  map[string]map[targets.Key]bool // Secrets in missing to report, by namespace
}

// account is a service account.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

func newAccounts(set *records.Set, cluster *kube.Client, known func(namespace, secret string) bool, events *events, troubles *health.Troubles, log *zap.Logger) *accounts {
	return &accounts{
		set: set, cluster: cluster, known: known, events: events, troubles: troubles, log: log,
		touched: map[targets.Key]bool{}, used: map[targets.Key]bool{},
		of: map[targets.Key][]account{}, wanted: map[account]map[string]bool{},
		missing: map[targets.Key]map[string]bool{}, unsaid: map[string]map[targets.Key]bool{},
	}
}

// changed schedules a check of the accounts of a Secret that changed or was deleted. It
// ignores a Secret that never had a pull account.
func (a *accounts) changed(key targets.Key) {
	t, there := a.set.Get(key)
	a.mu.Lock()
	defer a.mu.Unlock()
	if there && len(t.Secret.PullFor) > 0 {
		a.used[key] = true
	}
	if a.used[key] {
		a.touched[key] = true
		a.wake.Rouse()
	}
	if !there {
		delete(a.used, key)
	}
}

// Run checks accounts until ctx ends.
func (a *accounts) Run(ctx context.Context) {
	a.wake.Loop(ctx, func() time.Duration {
		a.learn(time.Now())
		of, wait, due := a.turns.Take(time.Now())
		if due {
			a.look(ctx, of)
		}
		return wait
	})
}

// learn updates the accounts of the Secrets that changed.
func (a *accounts) learn(now time.Time) {
	a.mu.Lock()
	touched := a.touched
	a.touched = map[targets.Key]bool{}
	a.mu.Unlock()
	for key := range touched {
		before := a.of[key]
		delete(a.of, key)
		delete(a.missing, key)
		namespace, name := key.Secret()
		for _, of := range before {
			delete(a.wanted[of], name)
			a.turns.Put(of.namespace, of, now)
		}
		t, there := a.set.Get(key)
		if !there || t.Secret.Missing {
			continue
		}
		for _, account := range accountsOf(t) {
			if a.wanted[account] == nil {
				a.wanted[account] = map[string]bool{}
			}
			a.wanted[account][name] = true
			a.of[key] = append(a.of[key], account)
			a.turns.Put(namespace, account, now)
		}
	}
}

func accountsOf(t *targets.Target) (all []account) {
	for _, name := range t.Secret.PullFor {
		all = append(all, account{t.Secret.Namespace, name})
	}
	return all
}

// look updates one account and schedules its next check.
func (a *accounts) look(ctx context.Context, of account) {
	wanted := slices.Sorted(maps.Keys(a.wanted[of]))
	next := accountsLook
	keep := func(secret string) bool {
		is := a.known(of.namespace, secret)
		if !is {
			next = unknownLook
		}
		t, there := a.set.Get(targets.KubeSecretKey(of.namespace, secret))
		return !is || there && t.Secret.Unread != ""
	}
	done := a.update(ctx, of, wanted, keep)
	now := time.Now()
	if done && len(wanted) == 0 && next == accountsLook {
		delete(a.wanted, of)
	} else {
		a.turns.Put(of.namespace, of, now.Add(next))
	}
	a.summarize(of.namespace, now)
}

// update updates one account, and reports whether no work on it remains.
func (a *accounts) update(ctx context.Context, of account, wanted []string, keep func(string) bool) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	added, removed, err := a.cluster.SetPullSecrets(ctx, of.namespace, of.name, wanted, keep)
	missing := apierrors.IsNotFound(err)
	switch {
	case ctx.Err() != nil && err != nil:
		return false
	case missing:
		err = nil
	}
	a.note(of, wanted, missing)
	a.troubles.Report("pull secrets of "+of.String(), err)
	for _, secret := range wanted {
		if err != nil {
			a.events.event(targets.KubeSecretKey(of.namespace, secret), corev1.EventTypeWarning, reasonNoPull, err.Error())
		}
	}
	if len(added)+len(removed) > 0 {
		a.log.Info("Pull secrets of a service account changed", zap.Stringer("account", of), zap.String("added", strings.Join(added, " ")), zap.String("removed", strings.Join(removed, " ")))
	}
	return err == nil
}

// note records whether the account of some Secrets is missing.
func (a *accounts) note(of account, secrets []string, missing bool) {
	for _, secret := range secrets {
		key := targets.KubeSecretKey(of.namespace, secret)
		if a.missing[key][of.name] == missing {
			continue
		}
		if a.missing[key] == nil {
			a.missing[key] = map[string]bool{}
		}
		if a.missing[key][of.name] = true; !missing {
			delete(a.missing[key], of.name)
		}
		if a.unsaid[of.namespace] == nil {
			a.unsaid[of.namespace] = map[targets.Key]bool{}
		}
		a.unsaid[of.namespace][key] = true
	}
}

// summarize reports the missing accounts of each Secret if they have changed. It waits
// until no account of the namespace is due.
func (a *accounts) summarize(namespace string, now time.Time) {
	if a.turns.Due(namespace, now) {
		return
	}
	for key := range a.unsaid[namespace] {
		var err error
		if names := slices.Sorted(maps.Keys(a.missing[key])); len(names) > 0 {
			err = fmt.Errorf("there is no service account %s in the namespace %q; create it, or correct its name where the Secret is said to be for it", brief.List(names), namespace)
			a.events.event(key, corev1.EventTypeWarning, reasonNoPull, err.Error())
		}
		a.troubles.Report("service accounts of "+string(key), err)
	}
	delete(a.unsaid, namespace)
}
