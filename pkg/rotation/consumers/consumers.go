// Package consumers finds out which consumer has which version of a set. It asks Pods and
// checks whether workloads were restarted. If neither is possible, it relies on elapsed
// time. Silence opens no gate.
package consumers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

const (
	// defaultWait covers the kubelet's sync period and cache at their defaults.
	defaultWait = 3 * time.Minute
	// defaultAgain is the time between the two checks of the Pods.
	defaultAgain = 10 * time.Second
)

// Config says how to find the state of the consumers of one set. All given conditions
// must hold.
type Config struct {
	Set string // the variable's id
	// Wait is the minimum time after all Secrets of the set show a step. 0 means 3
	// minutes for Pods that use one of the Secrets and that no other setting covers.
	Wait      time.Duration
	Restarted []string // workloads, each as "deployment/name"
	Ask       []string // each "deployment/name:port/path", or a URL
	Namespace string   // of the workloads; empty: the namespace of the set's Secrets
	// Settle is the minimum time between the moment when all Secrets show a step and the
	// last check of Pods. Again is the minimum time after the first check; 0 means 10
	// seconds.
	Settle, Again time.Duration
	Unused        time.Duration // how long nobody may have used an old key; 0: no condition
	Migrate       string        // the suspended CronJob, as "cronjob/name"; empty: none

	Cluster *kube.Client     // nil: no cluster, so settings that need it must be empty
	Now     func() time.Time // Conjur's clock
}

// Consumers answers for the consumers of one set. It implements rotation.Consumers. Only
// one goroutine at a time may call its methods.
type Consumers struct {
	Config
	parsed
	client *http.Client

	followed map[stage]*progress
	unused   map[string]*watch // by the id of the version that will be removed
	migrated map[string]bool   // the ids of versions with a complete migration
	last     snapshot
	listed   time.Time // when Pods were last listed
	unasked  []string  // Pods that use a Secret of the set but are not asked
}

// stage identifies a version in its present state, for which consumers are followed.
type stage struct {
	id   string
	step uint64
}

// progress is the observations for a stage.
type progress struct {
	began  time.Time // when the stage was first seen; earlier answers do not count
	shown  time.Time // when all Secrets first showed the step
	again  time.Time // when the second check is due; zero: the first one has not succeeded
	proven bool      // the second check succeeded
}

// New returns the Consumers of a set. The error lists all faults of the configuration.
func New(config Config) (*Consumers, error) {
	config.Again = cmp.Or(config.Again, defaultAgain)
	parsed, err := parse(config)
	if err != nil {
		return nil, err
	}
	return &Consumers{
		Config: config, parsed: parsed, client: newClient(),
		followed: map[stage]*progress{}, unused: map[string]*watch{}, migrated: map[string]bool{},
	}, nil
}

// Introduced implements rotation.Consumers.
func (c *Consumers) Introduced(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown) rotation.Answer {
	c.forget(doc)
	return c.answer(ctx, doc, v, shown, false, "does not have "+v.ID, func(h Holding) bool { return slices.Contains(h.IDs, v.ID) })
}

// Left implements rotation.Consumers.
func (c *Consumers) Left(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown) rotation.Answer {
	c.forget(doc)
	primary, ok := doc.Primary()
	if !ok {
		return rotation.Answer{Open: true} // therefore none was used
	}
	a := c.answer(ctx, doc, v, shown, !settled(v), "still uses "+v.ID+" or an earlier one", func(h Holding) bool {
		used, _ := doc.Version(h.Primary)
		return h.Primary == primary.ID || used.Promoted.After(v.Promoted)
	})
	if !a.Open || v.Promoted.IsZero() { // a version that was never primary has made nothing
		return a
	}
	if !settled(v) {
		if a = c.migrate(ctx, readable(shown), v.ID, primary.ID); !a.Open {
			return a
		}
	}
	if c.Unused > 0 && c.asks() {
		return c.idle(v)
	}
	return a
}

// settled reports whether the document records that gate B of a version was open. A new
// leader relies on the observations of an earlier leader.
func settled(v versions.Version) bool {
	return !v.Left.IsZero() || v.State == versions.Revoking && !v.Forced
}

// forget drops the observations for versions that have changed their state.
func (c *Consumers) forget(doc *versions.Document) {
	maps.DeleteFunc(c.followed, func(at stage, _ *progress) bool {
		v, _ := doc.Version(at.id)
		return v.Step != at.step
	})
	over := func(id string) bool {
		v, _ := doc.Version(id)
		return v.State != versions.Retiring && v.State != versions.Revoking
	}
	maps.DeleteFunc(c.unused, func(id string, _ *watch) bool { return over(id) })
	maps.DeleteFunc(c.migrated, func(id string, _ bool) bool { return over(id) })
}

// answer finds out whether all consumers have reached v's state; has judges each
// consumer. Secrets that can no longer be followed get the same wait as Pods that are not
// asked. With all, the gate waits until the Secrets can be followed again.
func (c *Consumers) answer(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown, all bool, lacks string, has func(Holding) bool) rotation.Answer {
	secrets := readable(shown)
	if behind := behind(secrets, v.Step); len(behind) > 0 {
		return rotation.Answer{Waits: brief.List(behind)}
	}
	if a := c.unread(doc, shown, all); !a.Open {
		return a
	}
	p := c.progress(v, secrets)
	if !p.proven {
		if a := until(p.shown.Add(c.Wait), "%s for files to follow, of which %s have passed", brief.Duration(c.Wait), brief.Duration(time.Since(p.shown).Round(time.Second))); !a.Open {
			return a
		}
		if a := until(p.again, secondLook); !a.Open {
			return a
		}
	}
	if !c.asks() {
		return rotation.Answer{Open: true}
	}
	after := p.again
	if p.began.After(after) {
		after = p.began
	}
	seen := c.takeSnapshot(ctx, after, secrets)
	against, inUse := seen.against(lacks, has)
	switch wait := cmp.Or(c.Wait, defaultWait); {
	case against != "":
		p.again, p.proven = time.Time{}, false
		return rotation.Answer{Waits: against, InUse: inUse}
	case p.proven:
		return rotation.Answer{Open: true}
	case len(seen.unasked) > 0 && time.Since(p.shown) < wait:
		return shut(p.shown.Add(wait), "%s", seen.others())
	case p.again.IsZero() && seen.pods:
		p.again = seen.at.Add(c.Again)
		if settled := p.shown.Add(c.Settle); len(secrets) > 0 && settled.After(p.again) {
			p.again = settled
		}
		return shut(p.again, secondLook)
	}
	p.proven = true
	return rotation.Answer{Open: true}
}

// progress returns the observations for a version's stage so far.
func (c *Consumers) progress(v versions.Version, secrets []rotation.Shown) *progress {
	at := stage{v.ID, v.Step}
	p := c.followed[at]
	if p == nil {
		p = &progress{began: time.Now(), shown: time.Now(), proven: settled(v)}
		if len(secrets) == 0 { // consumers read the set from Conjur
			p.shown = p.shown.Add(v.Since.Sub(c.Now()))
		}
		c.followed[at] = p
	}
	return p
}

// readable returns the Secrets that can be followed.
func readable(shown []rotation.Shown) (secrets []rotation.Shown) {
	for _, s := range shown {
		if s.Unread == "" {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// behind names the Secrets that do not show a step yet.
func behind(secrets []rotation.Shown, step uint64) (names []string) {
	for _, s := range secrets {
		if s.Step < step {
			names = append(names, fmt.Sprintf("%s has step %d, not %d", s, s.Step, step))
		}
	}
	return names
}

// unread answers for the Secrets that can no longer be followed: decision 034.
func (c *Consumers) unread(doc *versions.Document, shown []rotation.Shown, all bool) rotation.Answer {
	a := rotation.Answer{Open: true}
	var last time.Time
	var names []string
	for _, s := range shown {
		if s.Unread == "" || !s.Counts(doc) {
			continue
		}
		if s.Since.After(last) {
			last = s.Since
		}
		names = append(names, fmt.Sprintf("%s: %s", s, s.Unread))
	}
	switch text := "what shows the set and cannot be followed: " + brief.List(names); {
	case len(names) == 0:
	case all:
		a = rotation.Answer{Waits: text + "; give Syncer its rights there, or take the namespace out of confirm.namespaces"}
	default:
		a = until(last.Add(cmp.Or(c.Wait, defaultWait)), "%s", text)
	}
	return a
}

// secondLook is the reason that a gate gives after the first check of the Pods.
const secondLook = "a second look at the Pods"

// until returns an answer that is open from that time on.
func until(at time.Time, format string, args ...any) rotation.Answer {
	if !time.Now().Before(at) {
		return rotation.Answer{Open: true}
	}
	return shut(at, format, args...)
}

func shut(until time.Time, format string, args ...any) rotation.Answer {
	return rotation.Answer{Waits: fmt.Sprintf(format, args...), Until: until}
}

// Check returns all reasons why the consumers of a set cannot be followed. Objects may be
// missing or unreadable. Pods may not answer, may lack the primary, or are not asked. A
// migration may be unable to begin.
func (c *Consumers) Check(ctx context.Context, doc *versions.Document, shown []rotation.Shown) (problems []string) {
	primary, used := doc.Primary()
	secrets := readable(shown)
	problems = behind(secrets, primary.Step)
	if a := c.unread(doc, shown, true); !a.Open {
		problems = append(problems, a.Waits)
	}
	if c.asks() {
		seen := c.takeSnapshot(ctx, time.Now(), secrets)
		against, _ := seen.against("does not have "+primary.ID, func(h Holding) bool { return slices.Contains(h.IDs, primary.ID) })
		switch {
		case !used: // no consumer can have anything yet
			problems = append(problems, seen.broken...)
		case against != "":
			problems = append(problems, against)
			seen.unasked = nil // its message names them
		}
		if len(seen.unasked) > 0 {
			problems = append(problems, seen.others())
		}
	}
	if c.cronJob != "" {
		if err := c.tryMigration(ctx, secrets); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// Unasked returns the Pods that use a Secret of the set but are not asked, as seen within
// the last hour. If shown is nil, it is unknown what uses the set.
func (c *Consumers) Unasked(ctx context.Context, shown []rotation.Shown) []string {
	if shown != nil && c.hasPods() && time.Since(c.listed) > time.Hour {
		_ = c.lookAtPods(ctx, &snapshot{}, readable(shown)) // Check reports the errors
	}
	return c.unasked
}

// tryMigration asks the API server in a dry run whether it would accept the migration's
// Job.
func (c *Consumers) tryMigration(ctx context.Context, secrets []rotation.Shown) error {
	namespace, err := c.home(secrets)
	if err != nil {
		return fmt.Errorf("cronjob/%s: %w", c.cronJob, err)
	}
	name := jobName(c.cronJob, c.Set, "check")
	if _, err := c.Cluster.Batch.Jobs(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return wrap(err, "reading job/%s of namespace %s", name, namespace)
	}
	_, err = c.makeJob(ctx, namespace, name, map[string]string{"SYNCER_SET": c.Set}, metav1.DryRunAll)
	return err
}

const (
	longestAgo = 100 * 365 * 24 * 60 * 60 // in seconds: a consumer's report is not trusted
	watchEvery = time.Minute              // how often consumers are asked when they used a version
	watchGap   = 2 * time.Minute          // after a longer gap, use in the meantime is unknown
)

// watch records since when a version is known to be unused.
type watch struct {
	since time.Time
	last  time.Time // when all consumers were last asked
}

// idle finds out whether nobody has used a version for long enough. A restarted consumer
// has forgotten which versions it used. Therefore only time counts in which the consumers
// were asked regularly, or that the document records.
func (c *Consumers) idle(v versions.Version) rotation.Answer {
	w, seen := c.unused[v.ID], c.last
	if w == nil || seen.at.Sub(w.last) > watchGap {
		w = &watch{since: seen.at}
		if settled(v) {
			w.since = seen.at.Add(-c.Unused)
		}
		c.unused[v.ID] = w
	}
	w.last = seen.at
	inUse := false
	for _, g := range seen.groups {
		for _, m := range g.members {
			if ago, used := m.holding.Used[v.ID]; used {
				if at := seen.at.Add(-time.Duration(min(max(ago, 0), longestAgo)) * time.Second); at.After(w.since) {
					w.since, inUse = at, true
				}
			}
		}
	}
	a := until(w.since.Add(c.Unused), "%s without a use of %s, of which %s have passed", brief.Duration(c.Unused), v.ID, brief.Duration(time.Since(w.since).Round(time.Second)))
	if next := seen.at.Add(watchEvery); !a.Open && a.Until.After(next) {
		a.Until = next
	}
	a.InUse = !a.Open && inUse
	return a
}
