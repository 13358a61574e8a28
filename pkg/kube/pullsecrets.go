package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/fairqueue"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

const (
	// accountInterval is the time between checks of a service account. Accounts are not
	// watched: a missing account may appear, or an entry may be deleted.
	accountInterval = time.Minute
	// unknownInterval replaces accountInterval until all Secrets are known.
	unknownInterval = time.Second
	// accountTimeout bounds the work on one account.
	accountTimeout = 30 * time.Second
)

// reasonNoPull is the reason of the Events about service accounts.
const reasonNoPull = "PullSecretFailed"

// PullSecrets adds Secrets to the image pull secrets of service accounts. It checks an
// account when one of its Secrets changes, and periodically. The namespaces take turns.
type PullSecrets struct {
	set      *records.Set
	client   *Client
	known    func(namespace, secret string) bool
	recorder *Recorder
	reporter Reporter
	log      *zap.Logger
	wake     wake.Wake

	mu      sync.Mutex
	touched map[targets.Key]bool // Secrets with pull accounts, now or earlier
	used    map[targets.Key]bool // the Secrets that ever had a pull account

	// Only Run uses these:
	of      map[targets.Key][]account       // the accounts of each Secret
	wanted  map[account]map[string]bool     // names of Secrets; kept until no Secret of ours remains in it
	turns   fairqueue.Delayed[account]      // the accounts in wanted
	missing map[targets.Key]map[string]bool // absent accounts, by Secret
	unsaid  map[string]map[targets.Key]bool // Secrets in missing to report, by namespace
}

// account is a service account.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

// NewPullSecrets returns what adds the Secrets of a set that name a service account. known
// reports whether the watches of a Secret know all their Secrets.
func (c *Client) NewPullSecrets(set *records.Set, known func(namespace, secret string) bool, recorder *Recorder, reporter Reporter, log *zap.Logger) *PullSecrets {
	return &PullSecrets{
		set: set, client: c, known: known, recorder: recorder, reporter: reporter, log: log,
		touched: map[targets.Key]bool{}, used: map[targets.Key]bool{},
		of: map[targets.Key][]account{}, wanted: map[account]map[string]bool{},
		missing: map[targets.Key]map[string]bool{}, unsaid: map[string]map[targets.Key]bool{},
	}
}

// Changed schedules a check of the accounts of a Secret that changed or was deleted. It
// ignores a Secret that never had a pull account.
func (a *PullSecrets) Changed(key targets.Key) {
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
func (a *PullSecrets) Run(ctx context.Context) {
	a.wake.Loop(ctx, func() time.Duration {
		a.learn(time.Now())
		of, wait, due := a.turns.Take(time.Now())
		if due {
			a.updateAccount(ctx, of)
		}
		return wait
	})
}

// learn updates the accounts of the Secrets that changed.
func (a *PullSecrets) learn(now time.Time) {
	a.mu.Lock()
	touched := a.touched
	a.touched = map[targets.Key]bool{}
	a.mu.Unlock()
	for key := range touched {
		before := a.of[key]
		delete(a.of, key)
		namespace, name := key.Secret()
		if len(a.missing[key]) > 0 {
			a.reportLater(namespace, key) // it may name others now
		}
		delete(a.missing, key)
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

// updateAccount updates one account and schedules its next check.
func (a *PullSecrets) updateAccount(ctx context.Context, of account) {
	wanted := slices.Sorted(maps.Keys(a.wanted[of]))
	next := accountInterval
	keep := func(secret string) bool {
		is := a.known(of.namespace, secret)
		if !is {
			next = unknownInterval
		}
		t, there := a.set.Get(targets.KubeSecretKey(of.namespace, secret))
		return !is || there && t.Secret.Unread != ""
	}
	done := a.update(ctx, of, wanted, keep)
	now := time.Now()
	if done && len(wanted) == 0 && next == accountInterval {
		delete(a.wanted, of)
	} else {
		a.turns.Put(of.namespace, of, now.Add(next))
	}
	a.summarize(of.namespace, now)
}

// update updates one account, and reports whether no work on it remains.
func (a *PullSecrets) update(ctx context.Context, of account, wanted []string, keep func(string) bool) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	added, removed, err := a.client.SetPullSecrets(ctx, of.namespace, of.name, wanted, keep)
	missing := apierrors.IsNotFound(err)
	switch {
	case ctx.Err() != nil && err != nil:
		return false
	case missing:
		err = nil
	}
	a.recordMissing(of, wanted, missing)
	a.reporter.Report("pull secrets of "+of.String(), err)
	for _, secret := range wanted {
		hindrance := err
		if missing {
			hindrance = errors.New("there is no such service account")
		}
		a.set.Hinder(targets.KubeSecretKey(of.namespace, secret), of.name, hindrance)
		if err != nil {
			a.warn(targets.KubeSecretKey(of.namespace, secret), err)
		}
	}
	if len(added)+len(removed) > 0 {
		a.log.Info("Pull secrets of a service account changed", zap.Stringer("account", of), zap.String("added", strings.Join(added, " ")), zap.String("removed", strings.Join(removed, " ")))
	}
	return err == nil
}

// warn reports an error as an Event on a Secret.
func (a *PullSecrets) warn(key targets.Key, err error) {
	a.recorder.Event(ReferenceTo(a.set, key), corev1.EventTypeWarning, reasonNoPull, err.Error())
}

// recordMissing records whether the account of some Secrets is missing.
func (a *PullSecrets) recordMissing(of account, secrets []string, missing bool) {
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
		a.reportLater(of.namespace, key)
	}
}

// reportLater makes summarize report the missing accounts of a Secret.
func (a *PullSecrets) reportLater(namespace string, key targets.Key) {
	if a.unsaid[namespace] == nil {
		a.unsaid[namespace] = map[targets.Key]bool{}
	}
	a.unsaid[namespace][key] = true
}

// summarize reports the missing accounts of each Secret if they have changed. It waits
// until no account of the namespace is due.
func (a *PullSecrets) summarize(namespace string, now time.Time) {
	if a.turns.Due(namespace, now) {
		return
	}
	for key := range a.unsaid[namespace] {
		var err error
		if names := slices.Sorted(maps.Keys(a.missing[key])); len(names) > 0 {
			err = fmt.Errorf("there is no service account %s in the namespace %q; create it, or correct its name where the Secret is said to be for it", brief.List(names), namespace)
			a.warn(key, err)
		}
		a.reporter.Report("service accounts of "+string(key), err)
	}
	delete(a.unsaid, namespace)
}

// mostConflicts limits the immediate retries of a write that conflicted with another
// writer's.
const mostConflicts = 5

// SetPullSecrets adds the wanted Secrets to the imagePullSecrets of a service account. It
// removes the others that an earlier call has added, except those for which keep reports
// true. Entries that somebody else has added stay. It returns the added and the removed
// Secrets.
//
// The API server replaces the list as a whole, so a single item has no owner. Therefore
// the account itself notes, in the same write, which items Syncer added. A write is valid
// only for the state that was read.
func (c *Client) SetPullSecrets(ctx context.Context, namespace, account string, wanted []string, keep func(secret string) bool) (added, removed []string, err error) {
	accounts := c.Core.ServiceAccounts(namespace)
	for range mostConflicts {
		var found *corev1.ServiceAccount
		if found, err = accounts.Get(ctx, account, metav1.GetOptions{}); err != nil {
			break
		}
		var patch []byte
		if patch, added, removed = pullSecretsPatch(found, wanted, keep); patch == nil {
			return nil, nil, nil
		}
		_, err = accounts.Patch(ctx, account, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: targets.FieldManager})
		if err == nil {
			return added, removed, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return nil, nil, explain("pull secrets of the service account "+namespace+"/"+account, err, right{namespace, "serviceaccounts", "get and patch"})
}

// pullSecretsPatch returns the merge patch that brings an account up to date; nil if it
// is up to date.
func pullSecretsPatch(account *corev1.ServiceAccount, wanted []string, keep func(secret string) bool) (patch []byte, added, removed []string) {
	ours := pullSecretsOf(account)
	has := func(secret string) bool {
		return slices.ContainsFunc(account.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == secret })
	}
	var list []corev1.LocalObjectReference
	var stay []string
	for _, secret := range ours {
		if has(secret) && (slices.Contains(wanted, secret) || keep(secret)) {
			stay = append(stay, secret)
		}
	}
	for _, r := range account.ImagePullSecrets {
		if slices.Contains(ours, r.Name) && !slices.Contains(stay, r.Name) {
			removed = append(removed, r.Name)
		} else {
			list = append(list, r)
		}
	}
	for _, secret := range wanted {
		if !has(secret) {
			list, added, stay = append(list, corev1.LocalObjectReference{Name: secret}), append(added, secret), append(stay, secret)
		}
	}
	slices.Sort(stay)
	if len(added)+len(removed) == 0 && slices.Equal(stay, ours) {
		return nil, nil, nil
	}
	var note any // nil removes the annotation
	if len(stay) > 0 {
		note = strings.Join(stay, ",")
	}
	change := map[string]any{
		"metadata": map[string]any{
			"uid": account.UID, "resourceVersion": account.ResourceVersion, "annotations": map[string]any{targets.PullSecretsAnnotation: note},
		},
	}
	if len(added)+len(removed) > 0 {
		change["imagePullSecrets"] = list // null removes the field
	}
	patch, _ = json.Marshal(change) // contains only names
	return patch, added, removed
}

// pullSecretsOf returns the pull Secrets of an account that Syncer has added, in
// ascending order.
func pullSecretsOf(account *corev1.ServiceAccount) []string {
	names := strings.FieldsFunc(account.Annotations[targets.PullSecretsAnnotation], func(r rune) bool { return r == ',' })
	slices.Sort(names)
	return names
}
